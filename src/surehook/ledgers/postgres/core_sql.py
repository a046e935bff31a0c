"""Work of `ledgers/common` on the ledger's own sessions.

Importing this module imports SQLAlchemy: only lists do, when first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg

from surehook.ledgers.common import configured, deliveries, lists
from surehook.ledgers.common.compiling import Compiler
from surehook.ledgers.common.steps import Statement, Steps
from surehook.ledgers.postgres.indexing import indexed
from surehook.ledgers.postgres.session import Session
from surehook.ports.reading import DeliveryFilter, EventFilter
from surehook.ports.registry import Page

__all__ = [
    "compiled",
    "configured",
    "deliveries",
    "lists",
    "look",
    "look_at_dead_letters",
    "look_at_deliveries",
    "look_at_events",
]

P = ParamSpec("P")
R = TypeVar("R")
_compile = Compiler(PGDialect_asyncpg())  # type: ignore[no-untyped-call]


async def look(session: Session, work: Callable[P, Steps[R]], *args: P.args, **kwargs: P.kwargs) -> R:
    """Follow reading work in one snapshot."""
    async with session.snapshot():
        return await _follow(session, work(*args, **kwargs))


async def look_at_deliveries(
    session: Session, where: DeliveryFilter, *, limit: int, after: bytes | None
) -> Page:
    """A list of deliveries, along the indexes of days that are over."""
    walked = await _walked(session)
    return await look(session, deliveries.deliveries, where, limit=limit, after=after, walked=walked)


async def look_at_dead_letters(
    session: Session, where: DeliveryFilter, *, limit: int, after: bytes | None
) -> Page:
    walked = await _walked(session)
    return await look(session, deliveries.dead_letters, where, limit=limit, after=after, walked=walked)


async def look_at_events(session: Session, where: EventFilter, *, limit: int, after: bytes | None) -> Page:
    its = await indexed(session)
    below, looks = its.below["event"], its.looks["event"]
    return await look(session, lists.events, where, limit=limit, after=after, below=below, looks=looks)


async def _walked(session: Session) -> deliveries.Walked:
    its = await indexed(session)
    return deliveries.Walked(
        its.below["attempt"],
        looks=its.looks["attempt"],
        subjects_below=its.below["event"]["subject"],
        event_looks=its.looks["event"],
        receipts=its.receipts,
    )


def compiled(statement: Statement) -> tuple[str, list[Any]]:
    """The statement's text and its parameters in order."""
    form, parameters = _compile(statement)
    return form.string, [parameters[name] for name in form.positiontup or ()]


async def _follow(session: Session, steps: Steps[R]) -> R:
    try:
        statement = next(steps)
        while True:
            sql, parameters = compiled(statement)
            statement = steps.send(await session.rows(sql, *parameters))
    except StopIteration as end:
        answer: R = end.value
        return answer
