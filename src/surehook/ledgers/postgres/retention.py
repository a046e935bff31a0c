"""Retention by the day: a large day that is old enough is dropped whole, and the rows that are still needed stay.

Still needed are the histories of deliveries that are unfinished, dead and not dealt with, or finished only lately, and the
events of the first two. `retiring.py` copies them and puts the copies in the day's place, into the `_kept` partition or as a
day of kept rows; from then on they are removed row by row (`prune.py`). Bodies whose own life is over are removed likewise.

`DETACH … CONCURRENTLY` would wait without making others wait, but cannot run in one transaction with the copying, nor beside
a default partition.
"""

from __future__ import annotations

from collections.abc import Sequence

from surehook.ledgers.postgres.brief_locks import in_brief_locks
from surehook.ledgers.postgres.days import Day
from surehook.ledgers.postgres.partitions import DAYS_BEHIND, PARTITION_LOCK, day_of, name
from surehook.ledgers.postgres.retiring import LOCK_TRIES, Dropping, Undressing
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query

ROUND_MS = 60_000


async def retire_one(
    session: PostgresSession, days: Sequence[Day], *, events_before: int, bodies_before: int, now: int
) -> bool:
    """Drop the oldest large day whose life is over, or its bodies; False if there is none, or it cannot be locked now."""
    for day in _over(days, now):
        if day.goes_whole and day.is_before(events_before):
            return await _drop(session, day, before=events_before)
        if day.goes_whole and day.is_before(bodies_before) and not day.is_bare:
            return await Undressing().run(session, day, before=bodies_before)
    return False


async def drop_one_empty(
    session: PostgresSession, days: Sequence[Day], *, events_before: int, now: int
) -> None:
    """Drop a day that has become empty, row by row. Each round checks one day in turn: checking all would cost more with each."""
    small = [day for day in _over(days, now) if not day.goes_whole and day.is_before(events_before)]
    if small and await _is_empty(session, day := small[now // ROUND_MS % len(small)]):
        await _drop_empty(session, day)


def _over(days: Sequence[Day], now: int) -> list[Day]:
    """Return the days that `make_days` would not create again."""
    return [day for day in days if day.number < day_of(now) - DAYS_BEHIND]


async def _drop(session: PostgresSession, day: Day, *, before: int) -> bool:
    if not await Dropping().run(session, day, before=before):
        return False
    # Rows about histories that are gone.
    async with session.writing():
        for statement in ("left_replayed", "left_dismissed"):
            await session.run(query(statement), *day.span)
    return True


async def _is_empty(session: PostgresSession, day: Day) -> bool:
    for table in day.tables:
        if await session.value(f"select exists (select 1 from {name(table, day.number)})"):
            return False
    return True


async def _drop_empty(session: PostgresSession, day: Day) -> None:
    async def drop() -> None:
        await session.value(query("lock"), PARTITION_LOCK)
        # In the order in which everybody locks them.
        for table in ("event", "attempt"):
            if table in day.tables:
                await session.say(f"lock table only {table} in access exclusive mode")
        if await _is_empty(session, day):
            for table in day.tables:
                await session.say(f"drop table {name(table, day.number)}")

    await in_brief_locks(session, drop, tries=LOCK_TRIES)
