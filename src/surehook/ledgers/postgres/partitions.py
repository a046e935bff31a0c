"""Days as partitions: `event` by its id, `attempt` by its delivery's id, both of which begin with an instant.

Days are created ahead of time, by whichever node looks first, under a lock. If a day was not created in time, its rows lie
in the `_kept` partition, beside rows that outlived their day, and are moved when it is created.

Creating a day means attaching a table. Only the `_kept` partition is locked, for as long as it takes to check that it holds
nothing of the day. The wait for that lock is bounded, since everybody behind it waits too.
"""

from __future__ import annotations

from surehook.core.errors import LedgerUnavailable
from surehook.core.instants import DAY_MS
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query

# Days created ahead: for a week no node need be able to create tables.
DAYS_AHEAD = 7
# Ids that publishers made yesterday are common after midnight.
DAYS_BEHIND = 1
PARTITION_LOCK = 0x5375_7265_4461
LOCK_WAIT_MS = 500
TABLES = {"event": "id", "attempt": "delivery"}


def day_of(millis: int) -> int:
    """Return the number of an instant's day since 1970."""
    return millis // DAY_MS


def first_id(day: int) -> bytes:
    """Return the lowest id of a day."""
    return (day * DAY_MS).to_bytes(6, "big") + bytes(10)


def name(table: str, day: int) -> str:
    """Return the name of a partition. The number of the day sorts and parses without a calendar."""
    return f"{table}_day_{day}"


async def make_days(session: PostgresSession, *, now: int) -> None:
    """Create the missing partitions of the days around `now`."""
    today = day_of(now)
    wanted = {
        name(table, day): (table, day)
        for day in range(today - DAYS_BEHIND, today + DAYS_AHEAD + 1)
        for table in TABLES
    }
    there = await _there(session, list(wanted))
    for missing in [wanted[one] for one in wanted if one not in there]:
        await _make(session, *missing)


async def _there(session: PostgresSession, names: list[str]) -> set[str]:
    return {row[0] for row in await session.rows(query("days"), names)}


async def _make(session: PostgresSession, table: str, day: int) -> None:
    made = name(table, day)
    low, high = first_id(day).hex(), first_id(day + 1).hex()
    key = TABLES[table]
    async with session.writing():
        await session.say(f"set local lock_timeout = {LOCK_WAIT_MS}")
        await session.value(query("lock"), PARTITION_LOCK)
        if await _there(session, [made]):
            return
        await session.say(
            f"create table {made} (like {table} including defaults including constraints including compression)"
        )
        within = f"{key} >= '\\x{low}' and {key} < '\\x{high}'"
        await session.say(
            f"with moved as (delete from {table}_kept where {within} returning *) "
            f"insert into {made} select * from moved"
        )
        await session.say(
            f"alter table {table} attach partition {made} for values from ('\\x{low}') to ('\\x{high}')"
        )


async def try_to_make_days(session: PostgresSession, *, now: int) -> bool:
    """Create the days if that is possible now. There is a week to do it in."""
    try:
        await make_days(session, now=now)
    except LedgerUnavailable:
        return False
    return True
