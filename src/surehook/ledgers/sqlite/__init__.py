"""The book in one SQLite file: one server, one writer, readers beside it.

    ledger.py      the object for the three ports; picks the work and where it runs
    workers.py     on the calling thread, or on a thread of its own
    session.py     one connection: transactions, and errors made ours in one place
    driver.py      what is needed of a binding
    statements.py  the hot statements of queries/, written for whole batches
    place.py       the lock, the disk, the room left

Everything else is one role a file, as functions on a session that run whole, one after another.
"""

from surehook.ledgers.sqlite.driver import Driver
from surehook.ledgers.sqlite.ledger import SqliteLedger

__all__ = ["Driver", "SqliteLedger"]
