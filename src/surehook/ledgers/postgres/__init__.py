"""The ledger in PostgreSQL: any number of nodes, each a stateless client.

    ledger.py      the object for the ports; picks the work and the session it runs on
    sessions.py    sessions by purpose, opening and closing
    session.py     one connection: statements, transactions, the meaning of a loss
    errors.py      the server's errors, translated
    partitions.py  days of `event` and `attempt`

Everything else is one role a file, as functions on a session.
"""
