"""What the SQL ledgers share, without a connection: changes of the configuration in plain statements, and lists in
SQLAlchemy Core.

    changing.py    a change as a generator of statements
    steps.py       a list as a generator of statements
    values.py      configuration rows to values and back
    lines.py       rows of history to values
    ends.py        the ends of the ids
    paging.py      one page of a list: spans of ids and bounded looks
    deliveries.py, lists.py, configured.py    the lists themselves

Importing these imports SQLAlchemy (changing.py, values.py and lines.py do not): only lists do so, when first asked for.
"""
