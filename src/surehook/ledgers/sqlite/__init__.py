"""The ledger in one SQLite file: one server, one writer, readers beside it.

    ledger.py      the object for the ports; picks the work and the worker that runs it
    sessions.py    the sessions and their workers, opening and closing
    workers.py     the calling thread, or a thread of its own
    session.py     one connection: statements, transactions, errors translated in one place
    driver.py      the binding
    statements.py  the hot statements of queries/, written for whole batches
    file.py        the lock, the file, the free space

Everything else is one role a file, as functions on a session that run whole, one after another.
"""

from surehook.ledgers.sqlite.driver import Driver
from surehook.ledgers.sqlite.ledger import SqliteLedger

__all__ = ["Driver", "SqliteLedger"]
