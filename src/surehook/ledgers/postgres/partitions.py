"""Days as partitions: `event` by its id, `attempt` by its delivery's id, both of which begin with an instant.

Days are made some time ahead, by whichever node looks first, under a lock. A day that nobody made in time
costs nothing but order: its rows lie in the `_kept` partition beside those that outlived their day, and are
moved when the day is made.

Making a day is attaching a table: only the `_kept` partition is locked against others, for as long as it takes
to see that it holds nothing of the day; the wait for that lock is bounded, since everybody behind it waits too.
"""

from __future__ import annotations

from surehook.core.errors import LedgerUnavailable
from surehook.core.instants import DAY_MS
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query

DAYS_AHEAD = 7  # made before they are needed: a week without a node that may create tables
DAYS_BEHIND = 1  # ids that publishers made yesterday are common after midnight
PARTITION_LOCK = 0x5375_7265_4461
LOCK_WAIT_MS = 500
TABLES = {"event": "id", "attempt": "delivery"}


def day_of(millis: int) -> int:
    """The number of an instant's day since 1970."""
    return millis // DAY_MS


def first_id(day: int) -> bytes:
    """The lowest id of a day."""
    return (day * DAY_MS).to_bytes(6, "big") + bytes(10)


def name(table: str, day: int) -> str:
    """The partition's name: the day's number sorts and parses without a calendar."""
    return f"{table}_day_{day}"


async def make_days(session: Session, *, now: int) -> None:
    """Make the partitions of the days around `now` that are missing."""
    today = day_of(now)
    wanted = {
        name(table, day): (table, day)
        for day in range(today - DAYS_BEHIND, today + DAYS_AHEAD + 1)
        for table in TABLES
    }
    there = await _there(session, list(wanted))
    for missing in [wanted[one] for one in wanted if one not in there]:
        await _make(session, *missing)


async def _there(session: Session, names: list[str]) -> set[str]:
    return {row[0] for row in await session.rows(query("days"), names)}


async def _make(session: Session, table: str, day: int) -> None:
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


async def try_to_make_days(session: Session, *, now: int) -> bool:
    """Make them where it can be done now; there is a week to do it in."""
    try:
        await make_days(session, now=now)
    except LedgerUnavailable:
        return False
    return True
