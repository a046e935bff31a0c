"""SQLite's transactions ended from outside, also while a statement is under way.

What a connection is told waits for its statement, also a rollback; so one that goes on is ended. SQLite asks from time to time
whether it shall go on (`set_progress_handler`), and the connection's brake, once set, says no. Its `interrupt` is the second
resort, for what does little and takes long, such as a function in Python: as long as rows of another statement are to be
fetched, an interrupt ends all that is said after it as well, also the rollback.

The connection is first told to write nothing (`query_only`), which SQLite looks at as each statement begins: what its owner says
after the rollback would be a transaction of its own.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from contextlib import suppress

from sqlalchemy import Connection
from sqlalchemy.util import await_only

from surehook.inbox.sql.driver_connections import (
    AiosqliteConnection,
    driver,
    in_transaction,
    of_aiosqlite,
    pooled,
)

INTERRUPT_S = 0.2  # that a statement under way has to end by itself
END_S = 0.3  # for the end after it; not long enough where SQLite waits for another process, which nobody ends
# Of SQLite's machine, 20 ms of a plain statement: at each look it waits for the interpreter, which busy threads keep for 5 ms.
STEPS = 500_000
TRIES = 20  # of a rollback, beside what its owner says in the same moment
_BRAKE = "surehook_inbox_brake"  # in a connection's `info`
_NO_MORE = "PRAGMA query_only=ON"
_NOTHING = "PRAGMA query_only"


def brake_of(connection: Connection) -> threading.Event:
    """The brake of a connection, which has one from the first call on; that is its owner's."""
    info = pooled(connection).info
    brake: threading.Event | None = info.get(_BRAKE)
    if brake is None:
        brake = threading.Event()
        if connection.dialect.is_async:
            await_only(of_aiosqlite(connection).set_progress_handler(brake.is_set, STEPS))
        else:
            driver(connection).set_progress_handler(brake.is_set, STEPS)
        info[_BRAKE] = brake
    return brake


def _known_brake(connection: Connection) -> threading.Event:
    """The brake of a connection that a handler had; to give one to another would wait for what it is at."""
    brake: threading.Event | None = pooled(connection).info.get(_BRAKE)
    return brake or threading.Event()


def ended(end: Callable[[], bool], interrupt: Callable[[], object]) -> bool:
    """Call `end` in a thread of its own; its answer. False where SQLite goes on all the same: it is done after that."""
    said = Future[bool]()

    def run() -> None:
        try:
            said.set_result(end())
        except BaseException as error:
            said.set_exception(error)

    try:
        threading.Thread(target=run, name="surehook-inbox-cut", daemon=True).start()
    except RuntimeError:  # no thread to be had
        run()
    if wait([said], timeout=INTERRUPT_S).not_done:
        with suppress(Exception):  # it has ended, and the connection is closed
            interrupt()
        wait([said], timeout=END_S)
    return said.done() and said.result()


def roll_back(own: sqlite3.Connection) -> None:
    """Roll back a connection of another thread. Raises what the driver raises."""
    for left in reversed(range(TRIES)):
        try:
            own.execute(_NO_MORE)
            own.rollback()
            return
        # The answer was its owner's, or an interrupt's.
        except (sqlite3.Error, SystemError):
            if not left:
                raise


async def rolled_back(own: AiosqliteConnection, brake: threading.Event) -> None:
    """Roll back. Whatever becomes of the task that asks for it, it is done."""
    brake.set()
    await _all_told(own, own.execute(_NO_MORE), own.rollback())


async def _stopped(own: AiosqliteConnection, brake: threading.Event) -> None:
    brake.set()
    try:
        await _all_told(own, own.execute(_NOTHING))
    finally:
        brake.clear()


def end_statement(connection: Connection) -> bool:
    """End what a coroutine has left under way at aiosqlite: by the driver's connection, which says nothing of it. True if the
    transaction went with it: where a statement that writes is ended, SQLite rolls back all of it."""
    with suppress(Exception):  # it is lost already, or closed
        had_begun = in_transaction(connection)
        await_only(_stopped(of_aiosqlite(connection), _known_brake(connection)))
        return had_begun and not in_transaction(connection)
    return False


def end_transaction(connection: Connection) -> None:
    """Roll back as a task is cancelled in a statement. SQLAlchemy closes the connection next, which waits for the statement, and
    rolls nothing back while somebody has a cursor of it."""
    # It is closed in any case, and the first cancellation is on its way.
    with suppress(Exception, asyncio.CancelledError):
        await_only(rolled_back(of_aiosqlite(connection), _known_brake(connection)))


async def _all_told(own: AiosqliteConnection, *said: Awaitable[object]) -> None:
    """Wait until all of it is done. It is in aiosqlite's queue at once, so that nothing else comes before or between; and a
    task that is cancelled waits all the same, since it closes the connection next. Raises CancelledError after that."""
    telling = {asyncio.ensure_future(one) for one in said}
    cancelled: asyncio.CancelledError | None = None
    while telling:
        try:
            done, telling = await asyncio.wait(telling, timeout=INTERRUPT_S)
            for one in done:
                one.exception()
            if telling and not done:
                with suppress(Exception):  # it is closed
                    await own.interrupt()
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
