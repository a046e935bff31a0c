"""Lists of `ledgers/common` on one session.

Importing this module imports SQLAlchemy, which takes most of a second: only lists do, when first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg

# Imported here, and not by the first list that needs it, so that all of it is there at once.
from surehook.ledgers.common import configured, deliveries, lists  # noqa: F401
from surehook.ledgers.common.compiling import Compiler
from surehook.ledgers.common.statements import Row
from surehook.ledgers.common.steps import Statement, Steps
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.steps import follow

R = TypeVar("R")
_compile = Compiler(PGDialect_asyncpg())  # type: ignore[no-untyped-call]


async def look(session: PostgresSession, begin: Callable[[], Steps[R]]) -> R:
    """Read a list in one snapshot."""
    async with session.snapshot():
        return await follow(session, begin(), _rows)


def compiled(statement: Statement) -> tuple[str, list[object]]:
    """Return the statement's text, and its parameters in order."""
    form, parameters = _compile(statement)
    return form.string, [parameters[name] for name in form.positiontup or ()]


async def _rows(session: PostgresSession, statement: Statement) -> Sequence[Row]:
    sql, parameters = compiled(statement)
    return await session.rows(sql, *parameters)
