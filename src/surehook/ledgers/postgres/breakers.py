"""Breakers that are open or half-open, a row each until they close. Closings are stored for a day, so that a late write
undoes nothing newer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import astuple

from surehook.core.model import BreakerRow
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query


async def keep_breakers(session: PostgresSession, breakers: Iterable[BreakerRow]) -> None:
    """Write changes. The last one of each breaker wins, and keys are sorted so that no two writers deadlock."""
    last = {(row.tenant, row.key): row for row in breakers}
    rows = [last[key] for key in sorted(last)]
    closed = [(row.tenant, row.key, row.generation) for row in rows if row.state == "closed"]
    others = [astuple(row) for row in rows if row.state != "closed"]
    if closed:
        columns = [list(column) for column in zip(*closed, strict=True)]
        await session.run(query("breakers_closed"), *columns)
        await session.run(query("breakers_drop"), *columns)
    if others:
        await session.run(query("breakers_keep"), *map(list, zip(*others, strict=True)))


async def breakers(session: PostgresSession, asked: Sequence[tuple[str, str]]) -> list[BreakerRow]:
    rows = list(await session.rows(query("breakers")))
    if asked:
        rows += await session.rows(query("breaker_closings"), *map(list, zip(*asked, strict=True)))
    return [BreakerRow(*row) for row in rows]
