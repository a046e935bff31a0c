"""The one place where errors of drivers become the inbox's own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy.exc import (
    DBAPIError,
    DisconnectionError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from surehook.core.errors import SurehookError
from surehook.inbox.sql.contention import is_contended, sqlstate
from surehook.inbox.trouble import is_connecting, next_step
from surehook.ports.inbox import Contended, StoreError, StoreUnavailable

# SQLSTATE classes: connection, insufficient resources, operator intervention, system error, transaction rollback (deadlock,
# serialization), lock_not_available, and transactions that were idle, or open, for too long.
_AWAY = ("08", "53", "57", "58", "40", "55P03", "25P03", "25P04")
_OURS = "surehook_inbox"


def step(said: str) -> str | None:
    """Suggest what to do about a database's error; about tables only where they are ours: a handler may lack its own."""
    return next_step(said) if _OURS in said or is_connecting(said) else None


@contextmanager
def plainly() -> Iterator[None]:
    """Raise what a person can mend without its causes: its sentence says all, and the tracebacks of three libraries above it are
    more than a hundred lines, as a program starts."""
    try:
        yield
    except StoreError as error:
        if next_step(str(error)) is None:
            raise
        raise error.with_traceback(None) from None


@contextmanager
def translated(step: Callable[[str], str | None] = step) -> Iterator[None]:
    """Errors of the database that pass with time become StoreUnavailable, others StoreError; ours stay as they are. `step` says
    what to do about one."""
    try:
        yield
    except SurehookError:
        raise
    except (DisconnectionError, PoolTimeout, OSError) as error:
        raise StoreUnavailable(_first_line(error, step)) from error
    except DBAPIError as error:
        raise _ours(error)(_first_line(error, step)) from error
    except SQLAlchemyError as error:
        raise StoreError(_first_line(error, step)) from error


def _ours(error: DBAPIError) -> type[StoreError]:
    if is_contended(error):
        return Contended
    return StoreUnavailable if is_away(error) else StoreError


def is_locked(error: DBAPIError) -> bool:
    """Tell whether another connection holds SQLite's file."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF == sqlite3.SQLITE_BUSY


def is_away(error: DBAPIError) -> bool:
    """Tell whether the database, and not the statement, is at fault."""
    if error.connection_invalidated:
        return True
    if isinstance(error, IntegrityError):
        return False
    state = sqlstate(error)
    if state is not None:
        return state.startswith(_AWAY)
    return isinstance(error, OperationalError | InterfaceError)


def _first_line(error: BaseException, step: Callable[[str], str | None]) -> str:
    """Without the statement and its parameters, which are people's data."""
    cause = getattr(error, "orig", None) or error
    said = f"{cause.__class__.__name__}: {cause}".splitlines()[0][:300]
    return f"{said}; {help}" if (help := step(said)) else said
