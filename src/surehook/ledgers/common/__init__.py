"""What the SQL ledgers share: management and lists, in SQLAlchemy Core, without a connection.

    steps.py       a piece of work as a generator of statements
    values.py      configuration rows to values and back
    lines.py       rows of history to values
    ends.py        the ends of the ids
    paging.py      one page of a list: spans of ids and bounded looks
    deliveries.py, lists.py, registry.py    the work itself

Importing these imports SQLAlchemy (values.py and lines.py do not): only management calls and lists do so, when first made.
"""
