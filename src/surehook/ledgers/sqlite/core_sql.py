"""Work of `ledgers/common` on the ledger's own connections.

Importing this module imports SQLAlchemy: only management calls and lists do, when first made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from sqlalchemy import ClauseElement
from sqlalchemy.dialects.sqlite.base import SQLiteDialect

from surehook.ledgers.common import deliveries, lists, registry
from surehook.ledgers.common.compiling import Compiler
from surehook.ledgers.common.steps import Refused, Steps
from surehook.ledgers.sqlite.session import Session, Unstorable

__all__ = ["change", "compiled", "deliveries", "lists", "look", "registry"]

P = ParamSpec("P")
R = TypeVar("R")
_compile = Compiler(SQLiteDialect(paramstyle="named"))


def look(session: Session, work: Callable[P, Steps[R]], *args: P.args, **kwargs: P.kwargs) -> R:
    """Follow reading work in one snapshot."""
    with session.snapshot():
        return _follow(session, work(*args, **kwargs))


def change(session: Session, work: Callable[P, Steps[R]], *args: P.args, **kwargs: P.kwargs) -> R:
    """Follow changing work in one transaction; the one writer sees to it that no other runs beside it."""
    with session.writing():
        return _follow(session, work(*args, **kwargs))


def compiled(statement: ClauseElement) -> tuple[str, dict[str, Any]]:
    """The statement's text and its parameters by name."""
    form, parameters = _compile(statement)
    return form.string, parameters


def _follow(session: Session, steps: Steps[R]) -> R:
    try:
        statement = next(steps)
        while True:
            try:
                rows = session.rows(*compiled(statement))
            except Unstorable as error:
                statement = steps.throw(Refused(str(error)))
            else:
                statement = steps.send(rows)
    except StopIteration as end:
        answer: R = end.value
        return answer
