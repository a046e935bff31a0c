"""Errors of asyncpg and the server, translated to the ledger's.

    deadlock, serialization                       Again: the sessions run the work once more
    data the server refuses (classes 22, 23, 54)  Unstorable, for the caller inside the ledger to handle
    disk full (53100)                             LedgerFull
    connection lost, server going down            Lost: its meaning depends on what was under way (`session.py`)
    anything else                                 LedgerUnavailable: the statement was rolled back

A fatal error during a writing statement tells nothing about its outcome: in the extended protocol the commit follows the
statement's own answer, and a server that goes down while it waits for a standby has committed already.
"""

from __future__ import annotations

import asyncio

import asyncpg

from surehook.core.errors import LedgerError, LedgerFull, LedgerUnavailable, said
from surehook.ledgers.common.errors import Unstorable

DEADLOCK, SERIALIZATION, DISK_FULL = "40P01", "40001", "53100"
_DATA_CLASSES = ("22", "23", "54")
# Connection trouble, and everything that ends the session from the server's side.
_LOST_CLASSES = ("08",)
_LOST_CODES = frozenset(("57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04", "53300"))


class TransactionConflict(LedgerUnavailable):
    """Two transactions conflicted, and this one was rolled back."""


class Lost(LedgerUnavailable):
    """The connection is gone, or its state cannot be known."""


def translated(error: BaseException) -> BaseException:
    """Return the ledger's error for one of asyncpg's; others are returned as they are."""
    if isinstance(error, LedgerError):
        return error
    if isinstance(error, asyncpg.PostgresError):
        return _of_server(error)
    if isinstance(error, asyncpg.InternalClientError):
        # Its own text names an internal state.
        return Lost("the connection to the database was lost in the middle of an answer")
    if isinstance(error, (OSError, TimeoutError, asyncio.IncompleteReadError)):
        return Lost(f"the connection to the database was lost: {said(error)}")
    if isinstance(error, asyncpg.InterfaceError):
        return Lost(f"the connection to the database cannot be used: {error}")
    if isinstance(error, (OverflowError, UnicodeError)):
        return Unstorable(str(error))
    return error


def _of_server(error: asyncpg.PostgresError) -> LedgerUnavailable:
    code: str = getattr(error, "sqlstate", None) or ""
    if code in (DEADLOCK, SERIALIZATION):
        return TransactionConflict(f"the database asks to try again: {error}")
    if code == DISK_FULL:
        return LedgerFull(f"the database's disk is full: {error}")
    if code[:2] in _LOST_CLASSES or code in _LOST_CODES:
        return Lost(f"the database ended the connection: {error}")
    if code[:2] in _DATA_CLASSES:
        return Unstorable(str(error))
    return LedgerUnavailable(f"the database refused a statement: {error} ({code})")
