"""The workflow of documents: transition tables, and what an event means for a document by its table. Pure.

table_values.py  the fields of a table      check.py    its flaws
table.py         a checked table            flow.py     its states: what lies before what
data.py          tables as JSON and TOML    signing.py  the ready table for signing
values.py        arrival, document, step    read.py     a message's body as an arrival
decide.py        one decision               draft.py    the document while it is made
queue.py         early events and gaps      rules.py    the meaning of one event
undo.py          moves taken back           explain.py  a history for people
"""
