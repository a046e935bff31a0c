"""Work of `ledgers/common` on one session: each step is run and answered with its rows.

Work is handed in as a function that begins it, since it may have to run again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import lru_cache
from typing import TypeVar

from surehook.ledgers.common.errors import Unstorable
from surehook.ledgers.common.statements import (
    Changing,
    ChangingStep,
    DataRefused,
    Note,
    Noted,
    Query,
    Reading,
    ReadingStep,
    Row,
    Statement,
)
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query
from surehook.ports.registry import NOTES_KEPT

R = TypeVar("R")
S = TypeVar("S")
# A change has a text for each set of fields.
TEXTS_KEPT = 1_000


async def read(session: PostgresSession, begin: Callable[[], Reading[R]]) -> R:
    return await follow(session, begin(), _read)


async def read_page(session: PostgresSession, begin: Callable[[], Reading[R]]) -> R:
    """Read with all statements in one snapshot."""
    async with session.snapshot():
        return await follow(session, begin(), _read)


async def follow(
    session: PostgresSession,
    steps: Generator[S, Sequence[Row], R],
    run: Callable[[PostgresSession, S], Awaitable[Sequence[Row]]],
    *,
    begun: S | None = None,
    refusals: tuple[type[Exception], ...] = (),
) -> R:
    """Run the steps of some work, and return its answer.

    begun     the first step, if it was taken already
    refusals  errors that are thrown into the work as `DataRefused`
    """
    try:
        step = next(steps) if begun is None else begun
        while True:
            try:
                rows = await run(session, step)
            except refusals as error:
                step = steps.throw(DataRefused(str(error)))
            else:
                step = steps.send(rows)
    except StopIteration as end:
        answer: R = end.value
        return answer


async def _read(session: PostgresSession, step: ReadingStep) -> Sequence[Row]:
    if isinstance(step, Statement):
        return await session.rows(_numbered(step.sql), *step.parameters)
    if isinstance(step, Query):
        return await session.rows(query(step.name), *step.parameters)
    return await session.rows(query(step.name), step.keys)


async def change(session: PostgresSession, begin: Callable[[], Changing[R]]) -> R:
    """Change the configuration in one transaction, or in one statement. The lock on its one row makes changes take turns."""
    steps = begin()
    step = next(steps)
    if isinstance(step, Noted):
        # It is all there is to the change.
        return await follow(session, steps, _change, begun=step, refusals=(Unstorable,))
    async with session.writing(query("lock_configuration")):
        return await follow(session, steps, _change, begun=step, refusals=(Unstorable,))


async def _change(session: PostgresSession, step: ChangingStep) -> Sequence[Row]:
    if isinstance(step, Statement):
        return await session.rows(_numbered(step.sql), *step.parameters)
    if isinstance(step, Note):
        return await session.rows(query("note"), step.kind, step.key, NOTES_KEPT)
    return await session.change(_noted(step.sql, step.returning), *step.parameters, *step.note, NOTES_KEPT)


@lru_cache(maxsize=TEXTS_KEPT)
def _noted(sql: str, returning: str) -> str:
    """Write a change and its note as one statement, which is a transaction of its own.

    It locks the configuration before the row, as every other change does, and raises the version if there is such a row.
    """
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
    """Replace each `?` by `$1`, `$2`, and so on, as asyncpg wants them."""
    first, *others = sql.split("?")
    return first + "".join([f"${number}{part}" for number, part in enumerate(others, 1)])
