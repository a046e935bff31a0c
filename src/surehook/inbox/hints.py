"""Hints for errors that handlers usually raise in their first hour: a note beneath the error in its traceback.

The errors are known by name: SQLAlchemy is touched in one room, and an application may have its own.
"""

from __future__ import annotations

import inspect

_OF_SESSIONS = frozenset({"add", "add_all", "delete", "flush", "get", "merge", "query", "refresh"})


def add(error: BaseException) -> None:
    """Note the next step on an error, where there is a usual one."""
    if (found := hint(error)) is not None:
        error.add_note(f"hint: {found}")


def hint(error: BaseException) -> str | None:
    """The next step, or None."""
    if type(error).__name__ == "ObjectNotExecutableError":
        return "SQL as text is tx.execute(text(…)), of sqlalchemy"
    if not isinstance(error, AttributeError):
        return None
    if inspect.iscoroutine(error.obj):
        return f"{error.obj.__qualname__}(…) was not awaited: (await tx.execute(…)).{error.name}"
    kinds = [kind.__name__ for kind in type(error.obj).__mro__]  # on SQLite it is one of ours
    kind = next((one for one in kinds if one in ("Connection", "AsyncConnection")), None)
    if error.name in _OF_SESSIONS and kind is not None:
        return f"a {kind} has no `{error.name}`: sessions=True of the inbox makes tx an ORM session"
    return None
