"""Work of `ledgers/common` on the ledger's own connections.

Importing this module imports SQLAlchemy: only lists do, when first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from sqlalchemy.dialects.sqlite.base import SQLiteDialect

from surehook.ledgers.common import configured, deliveries, lists
from surehook.ledgers.common.compiling import Compiler
from surehook.ledgers.common.steps import Statement, Steps
from surehook.ledgers.sqlite.session import Session

__all__ = ["compiled", "configured", "deliveries", "lists", "look"]

P = ParamSpec("P")
R = TypeVar("R")
_compile = Compiler(SQLiteDialect(paramstyle="named"))


def look(session: Session, work: Callable[P, Steps[R]], *args: P.args, **kwargs: P.kwargs) -> R:
    """Follow reading work in one snapshot."""
    with session.snapshot():
        return _follow(session, work(*args, **kwargs))


def compiled(statement: Statement) -> tuple[str, dict[str, Any]]:
    """The statement's text and its parameters by name."""
    form, parameters = _compile(statement)
    return form.string, parameters


def _follow(session: Session, steps: Steps[R]) -> R:
    try:
        statement = next(steps)
        while True:
            statement = steps.send(session.rows(*compiled(statement)))
    except StopIteration as end:
        answer: R = end.value
        return answer
