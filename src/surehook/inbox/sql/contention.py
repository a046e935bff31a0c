"""Errors that say that others wanted the same rows, so that the same transaction may succeed at once."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError

# SQLSTATE: transaction rollback (deadlock, serialization), lock_not_available.
_CONTENDED = ("40", "55P03")
_CONTENDED_MYSQL = (1205, 1213)  # lock wait timeout, deadlock: their drivers tell numbers only


def is_contended(error: BaseException) -> bool:
    """Tell whether it is such an error, of a statement."""
    if not isinstance(error, DBAPIError):
        return False
    state = sqlstate(error)
    if state is not None:
        return state.startswith(_CONTENDED)
    return bool(error.orig and error.orig.args and error.orig.args[0] in _CONTENDED_MYSQL)


NO_STATEMENT = "26000"  # somebody has taken the prepared statements of a connection away


def sqlstate(error: DBAPIError) -> str | None:
    """The SQLSTATE of an error, where its driver tells it."""
    return state_of(error.orig)


def state_of(error: BaseException | None) -> str | None:
    """The SQLSTATE of a driver's error."""
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    return state if isinstance(state, str) else None
