"""Hints for errors that handlers usually raise in their first hour: a note beneath the error in its traceback.

The errors are known by name: SQLAlchemy is touched in one room, and an application may have its own.
"""

from __future__ import annotations

import inspect

from surehook.core.errors import causes

_OF_SESSIONS = frozenset({"add", "add_all", "delete", "flush", "get", "merge", "query", "refresh"})


# The SQLSTATE of PostgreSQL's "current transaction is aborted", and what its drivers have it in.
_ABORTED, _STATES = "25P02", ("sqlstate", "pgcode")


def add(error: BaseException, *, handler: str | None = None) -> None:
    """Note the next step on an error, where there is a usual one. `handler`: whose it is, where its traceback does not say."""
    if (found := hint(error)) is not None:
        error.add_note(f"hint: {found}" if handler is None else f"hint: {handler}: {found}")


def hint(error: BaseException) -> str | None:
    """The next step, or None."""
    if type(error).__name__ == "ObjectNotExecutableError":
        return "SQL as text is tx.execute(text(…)), of sqlalchemy"
    if any(getattr(one, name, None) == _ABORTED for one in causes(error) for name in _STATES):
        return (
            "a statement before this one has failed, and that was caught: PostgreSQL takes no other then. Put tx.begin_nested() "
            "(in Django transaction.atomic()) around what may fail"
        )
    if any(type(one).__name__ == "PendingRollbackError" for one in causes(error)):
        return (
            "a statement or a flush before this one has failed, and that was caught: its transaction takes no other then. Put "
            "tx.begin_nested() around what may fail"
        )
    if not isinstance(error, AttributeError):
        return None
    if inspect.iscoroutine(error.obj):
        return f"{error.obj.__qualname__}(…) was not awaited: (await tx.execute(…)).{error.name}"
    kinds = [kind.__name__ for kind in type(error.obj).__mro__]  # on SQLite it is one of ours
    kind = next((one for one in kinds if one in ("Connection", "AsyncConnection")), None)
    if error.name in _OF_SESSIONS and kind is not None:
        return f"a {kind} has no `{error.name}`: sessions=True of the inbox makes tx an ORM session"
    return None
