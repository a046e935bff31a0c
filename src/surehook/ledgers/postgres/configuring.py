"""Changes of the configuration, in one transaction or one statement each; its one row keeps them one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from surehook.ledgers.common.changing import Changing, Note, Noted, Refused, Statement
from surehook.ledgers.postgres.errors import Unstorable
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query
from surehook.ports.registry import NOTES_KEPT

R = TypeVar("R")
TEXTS_KEPT = 1_000  # a change has a text for each set of fields


async def change(session: Session, begin: Callable[[], Changing[R]]) -> R:
    steps = begin()
    step = next(steps)
    if isinstance(step, Noted):  # it is all
        return await _follow(session, steps, step)
    async with session.writing(query("lock_configuration")):
        return await _follow(session, steps, step)


async def _follow(session: Session, steps: Changing[R], step: Statement | Note | Noted) -> R:
    try:
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


async def _done(session: Session, step: Statement | Note | Noted) -> Sequence[Any]:
    if isinstance(step, Statement):
        return await session.rows(_numbered(step.sql), *step.parameters)
    if isinstance(step, Note):
        return await session.rows(query("note"), step.kind, step.key, NOTES_KEPT)
    return await session.change(_at_once(step.sql, step.returning), *step.parameters, *step.note, NOTES_KEPT)


@lru_cache(maxsize=TEXTS_KEPT)
def _at_once(sql: str, returning: str) -> str:
    """The change and its note as one statement, a transaction of its own: the configuration is locked before the row is, as
    in every other change, and the version goes up where there is such a row."""
    return _numbered(
        "with locked as materialized (select version from configuration for no key update), "
        f"changed as ({sql} and exists (select from locked) returning {returning}), "
        "raised as (update configuration set version = version + 1 where exists (select from changed) returning version), "
        "noted as (insert into configuration_change (version, kind, key) "
        "select r.version, ?::text, ?::bytea from raised r), "
        "dropped as (delete from configuration_change n using raised r where n.version <= r.version - ?::bigint) "
        "select * from changed"
    )


@lru_cache(maxsize=TEXTS_KEPT)
def _numbered(sql: str) -> str:
    """The text with its places as this driver wants them."""
    first, *others = sql.split("?")
    return first + "".join([f"${number}{part}" for number, part in enumerate(others, 1)])
