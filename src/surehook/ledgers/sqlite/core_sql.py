"""Statements of SQLAlchemy Core as text and parameters, for the ledger's own connections.

Importing this module imports SQLAlchemy: only management calls and lists do, when first made.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ClauseElement
from sqlalchemy.dialects.sqlite.base import SQLiteDialect

from surehook.ledgers.sqlite.session import Session

_DIALECT = SQLiteDialect(paramstyle="named")


def compiled(statement: ClauseElement) -> tuple[str, dict[str, Any]]:
    """The statement's text and its parameters by name."""
    form = statement.compile(dialect=_DIALECT)
    return form.string, dict(form.params)


def rows(session: Session, statement: ClauseElement) -> list[tuple[Any, ...]]:
    return session.rows(*compiled(statement))


def run(session: Session, statement: ClauseElement) -> int:
    return session.run(*compiled(statement))
