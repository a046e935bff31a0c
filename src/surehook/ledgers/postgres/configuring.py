"""Changes of the configuration, in one transaction each; its one row keeps them one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from surehook.ledgers.common.changing import Changing, Note, Refused, Statement
from surehook.ledgers.postgres.errors import Unstorable
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query
from surehook.ports.registry import NOTES_KEPT

R = TypeVar("R")
TEXTS_KEPT = 1_000  # a change has a text for each set of fields


async def change(session: Session, begin: Callable[[], Changing[R]]) -> R:
    async with session.writing(query("lock_configuration")):
        return await _follow(session, begin())


async def _follow(session: Session, steps: Changing[R]) -> R:
    try:
        step = next(steps)
        while True:
            try:
                rows = await _done(session, step)
            except Unstorable as error:
                step = steps.throw(Refused(str(error)))
            else:
                step = steps.send(rows)
    except StopIteration as end:
        answer: R = end.value
        return answer


async def _done(session: Session, step: Statement | Note) -> Sequence[Any]:
    if isinstance(step, Statement):
        return await session.rows(_numbered(step.sql), *step.parameters)
    return await session.rows(query("note"), step.kind, step.key, NOTES_KEPT)


@lru_cache(maxsize=TEXTS_KEPT)
def _numbered(sql: str) -> str:
    """The text with its places as this driver wants them."""
    first, *others = sql.split("?")
    return first + "".join([f"${number}{part}" for number, part in enumerate(others, 1)])
