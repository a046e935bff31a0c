"""Lists of `ledgers/common` on one session.

Importing this module imports SQLAlchemy, which takes most of a second: only lists do, when first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlalchemy.dialects.sqlite.base import SQLiteDialect

# Imported here, and not by the first list that needs it, so that all of it is there at once.
from surehook.ledgers.common import configured, deliveries, lists  # noqa: F401
from surehook.ledgers.common.compiling import Compiler
from surehook.ledgers.common.statements import Row
from surehook.ledgers.common.steps import Statement, Steps
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.steps import follow

R = TypeVar("R")
_compile = Compiler(SQLiteDialect(paramstyle="named"))


def look(session: SqliteSession, begin: Callable[[], Steps[R]]) -> R:
    """Read a list in one snapshot."""
    with session.snapshot():
        return follow(session, begin(), _rows)


def compiled(statement: Statement) -> tuple[str, dict[str, object]]:
    """Return the statement's text, and its parameters by name."""
    form, parameters = _compile(statement)
    return form.string, parameters


def _rows(session: SqliteSession, statement: Statement) -> Sequence[Row]:
    return session.rows(*compiled(statement))
