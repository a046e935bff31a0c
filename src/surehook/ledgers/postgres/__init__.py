"""The book in PostgreSQL: any number of nodes, each a stateless client.

    ledger.py      the object for the three ports; picks the work and the session it runs on
    desk.py        sessions by purpose, opening and closing
    session.py     one connection: statements, transactions, what a loss means
    errors.py      what the server says, in the ledger's words
    partitions.py  days of `event` and `attempt`

Everything else is one role a file, as functions on a session.
"""
