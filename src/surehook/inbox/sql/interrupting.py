"""SQLite's transactions ended from outside, also while a statement is under way.

What a connection is told waits for its statement, also a rollback; so one that goes on is interrupted. Not at once: as long as
rows of another one are to be fetched, an interrupt would end the rollback, too.

The connection is first told to write nothing (`query_only`), which SQLite looks at as each statement begins: what its owner says
after the rollback would be a transaction of its own.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress

from sqlalchemy import Connection
from sqlalchemy.util import await_only

from surehook.inbox.sql.driver_connections import AiosqliteConnection, of_aiosqlite

INTERRUPT_S = 0.1  # that a statement under way has to end by itself
END_S = 0.4  # for the end after it; not long enough where SQLite waits for another process, which nobody interrupts
_NO_MORE = "PRAGMA query_only=ON"
_NOTHING = "PRAGMA query_only"


def bounded(end: Callable[[], bool], interrupt: Callable[[], object]) -> bool:
    """Call `end` in a thread of its own, and interrupt what it waits for; its answer. True where it waits all the same: it is
    done after that."""
    ended = Future[bool]()

    def run() -> None:
        try:
            ended.set_result(end())
        except BaseException as error:
            ended.set_exception(error)

    threading.Thread(target=run, name="surehook-inbox-cut", daemon=True).start()
    for seconds in (INTERRUPT_S, END_S):
        if wait([ended], timeout=seconds).done:
            return ended.result()
        with suppress(Exception):  # it has ended, and the connection is closed
            interrupt()
    return True


def roll_back(own: sqlite3.Connection) -> None:
    """Roll back a connection of another thread. Raises what the driver raises."""
    own.execute(_NO_MORE)
    own.rollback()


async def rolled_back(own: AiosqliteConnection) -> None:
    """Roll back. Raises what the driver raises."""
    await _told(own, _NO_MORE)
    await own.rollback()


def end_statement(connection: Connection) -> None:
    """End what a task was waiting for at aiosqlite as it was cancelled: by the driver's connection, which says nothing of it."""
    with suppress(Exception):  # it is lost already, or closed
        await_only(_told(of_aiosqlite(connection), _NOTHING))


def end_transaction(connection: Connection) -> None:
    """Roll back as a task is cancelled in a statement. SQLAlchemy closes the connection next, which waits for the statement, and
    rolls nothing back while somebody has a cursor of it."""
    with suppress(Exception):  # closed it is in any case
        await_only(rolled_back(of_aiosqlite(connection)))


async def _told(own: AiosqliteConnection, statement: str) -> None:
    telling = asyncio.ensure_future(own.execute(statement))
    # Again: an interrupt ends what is under way, and not what is about to begin.
    while not (await asyncio.wait({telling}, timeout=INTERRUPT_S))[0]:
        await own.interrupt()
    await telling
