"""The parts that the SQL ledgers share, without a connection.

    statements.py  the steps of work written once: plain statements and notes of changes
    sessions.py    the sessions that a ledger runs them on
    registry.py, reading.py             the methods of the ports
    configuration.py, changing.py       the configuration: what is read of it, and changes
    values.py, attempts.py, replays.py  rows to values and back
    steps.py       lists as generators of SQLAlchemy statements
    indexes.py     the indexes that lists can use, and the bounds of ids
    paging.py      one page of a list: spans of ids, and bounds on what is read
    deliveries.py, lists.py, configured.py    the lists themselves

Lists compose their statements with SQLAlchemy. It is imported when a list is first asked for, and by no other part.
"""
