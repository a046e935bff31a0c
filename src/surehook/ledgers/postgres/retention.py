"""Retention by the day: a large day that is old enough goes whole, and what is still needed stays.

Needed are the histories of deliveries that are unfinished, dead and not dealt with, or finished only lately, and
the events of the first two. They are copied to tables beside the day while everybody works on: nothing of it is
changed any more, only added to. Then comes one short transaction that nobody else is in: it copies what was added
meanwhile, drops the day, and puts the copies into its place, among the `_kept` rows, or as a smaller day where
they are many.

Everybody waits for that transaction, and it waits for everybody: for no longer than `LOCK_WAIT_MS`, since others
queue behind it. Where somebody holds a table for long (a dump, a forgotten session), it gives up, and the day is
tried again in the next round. `DETACH … CONCURRENTLY` would wait without being waited for, but not in a
transaction with the copying, and never beside a default partition.

Bodies whose own life is over go the same way: the day's events are written anew without them. An update would
write every row once more too, and give no page back to the disk before the day itself goes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from surehook.core.instants import DAY_MS
from surehook.ledgers.postgres.briefly import in_brief_locks
from surehook.ledgers.postgres.partitions import DAYS_BEHIND, PARTITION_LOCK, TABLES, day_of, first_id, name
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query

# A day with fewer bytes is pruned row by row: that takes seconds, and stops nobody.
LARGE_BYTES = 16 << 20
LOCK_TRIES = 5
ALONE_MS = 1_000  # for one statement while accepts stand still; what takes longer waits for another round
# A day that more deliveries than this still need stays whole until they are fewer: looking through their copies once
# more, with everybody waiting, takes some 10 µs each (measured: 0.15 s for 20,000 of 300,000).
NEEDING_MOST = 50_000
# Copies up to this many rows go among the kept ones, which takes as long as inserting them; more are a day again.
MOVED_ROWS = 5_000
BARE = "without bodies"  # a day's comment once they are gone


class Day(NamedTuple):
    """The partitions of one day, as far as there are any."""

    number: int
    size: int = 0  # bytes of its rows
    is_bare: bool = False
    tables: tuple[str, ...] = ()

    @property
    def is_large(self) -> bool:
        return self.size >= LARGE_BYTES

    @property
    def span(self) -> tuple[bytes, bytes]:
        """The lowest id of the day, and the lowest of the next."""
        return first_id(self.number), first_id(self.number + 1)

    def is_before(self, instant: int) -> bool:
        """Whether every id of the day was made for an earlier instant."""
        return (self.number + 1) * DAY_MS <= instant


async def days(session: Session) -> list[Day]:
    """The days that have partitions, oldest first."""
    found: dict[int, Day] = {}
    for table in TABLES:
        for row in await session.rows(query("partitions"), table):
            number = row["name"].removeprefix(f"{table}_day_")
            if number.isdecimal():
                day = found.get(int(number), Day(int(number)))
                is_bare = day.is_bare or row["note"] == BARE
                found[day.number] = Day(day.number, day.size + row["bytes"], is_bare, (*day.tables, table))
    return [found[number] for number in sorted(found)]


async def retire_one(session: Session, *, events_before: int, bodies_before: int, now: int) -> bool:
    """Drop the oldest large day that is past its life, or take its bodies; False where there is none, or it cannot
    be had now. Old days that row by row have become empty are dropped on the way."""
    for day in await days(session):
        if day.number >= day_of(now) - DAYS_BEHIND:  # `make_days` would make it again
            return False
        if await session.value(query("left_many"), *day.span, NEEDING_MOST):
            continue
        if day.is_before(events_before) and day.is_large:
            return await _drop(session, day, before=events_before)
        if day.is_before(events_before) and await _is_empty(session, day):
            await _drop(session, day, before=events_before)
        elif day.is_before(bodies_before) and day.is_large and not day.is_bare and "event" in day.tables:
            return await _undress(session, day, before=bodies_before)
    return False


async def _is_empty(session: Session, day: Day) -> bool:
    for table in day.tables:
        if await session.value(f"select exists (select 1 from {name(table, day.number)})"):
            return False
    return True


async def _drop(session: Session, day: Day, *, before: int) -> bool:
    # Histories first: which events are needed follows from them.
    tables = [table for table in ("attempt", "event") if table in day.tables]
    async with session.writing():
        pages = await _begin_copies(session, day, tables)
        for table in tables:
            await session.run(_of(day, f"left_{table}"), *day.span, before)
            await session.say(f"analyze {_copy(table, day)}")

    async def swap() -> None:
        for table in tables:
            await session.run(_of(day, f"left_{table}_rest"), *day.span, before, pages[table])
        for table in tables:
            await session.say(f"drop table {name(table, day.number)}")
            await _put_back(session, table, day)

    if not await _alone(session, swap):
        return False
    async with session.writing():  # what was known about histories that are gone
        for statement in ("left_replayed", "left_dismissed"):
            await session.run(query(statement), *day.span)
    return True


async def _undress(session: Session, day: Day, *, before: int) -> bool:
    columns = await session.value(query("left_columns"))
    async with session.writing():
        pages = await _begin_copies(session, day, ["event"])
        await session.run(_of(day, "left_bare").replace("{columns}", columns), *day.span, before)

    async def swap() -> None:
        await session.run(_of(day, "left_bare_bodies"), *day.span)
        await session.run(_of(day, "left_bare_rest"), pages["event"])
        await session.say(f"drop table {name('event', day.number)}")
        await _attach(session, "event", day)
        await session.say(f"comment on table {name('event', day.number)} is '{BARE}'")

    return await _alone(session, swap)


# -- the copies ---------------------------------------------------------------------------------------------


def _copy(table: str, day: Day) -> str:
    return f"{table}_left_{day.number}"


def _of(day: Day, statement: str) -> str:
    return query(statement).replace("{day}", str(day.number))


async def _begin_copies(session: Session, day: Day, tables: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Make the tables for them; where the partitions end now, since what is added later lies behind."""
    pages = {}
    for table in tables:
        partition, copy, key = name(table, day.number), _copy(table, day), TABLES[table]
        low, high = (bound.hex() for bound in day.span)
        await session.say(f"drop table if exists {copy}")
        await session.say(f"create table {copy} (like {partition} including defaults including indexes)")
        # With it, attaching the table has nothing to look up.
        within = f"{key} >= '\\x{low}' and {key} < '\\x{high}'"
        await session.say(f"alter table {copy} add constraint {copy}_within check ({within})")
        pages[table] = (max(0, await session.value(query("pages"), partition) - 1), 0)
    return pages


async def _put_back(session: Session, table: str, day: Day) -> None:
    copy = _copy(table, day)
    if (
        await session.value(f"select count(*) from (select 1 from {copy} limit {MOVED_ROWS + 1}) t")
        > MOVED_ROWS
    ):
        await _attach(session, table, day)
        return
    await session.say(f"insert into {table}_kept select * from {copy}")
    await session.say(f"drop table {copy}")


async def _attach(session: Session, table: str, day: Day) -> None:
    copy, partition = _copy(table, day), name(table, day.number)
    low, high = (bound.hex() for bound in day.span)
    await session.say(
        f"alter table {table} attach partition {copy} for values from ('\\x{low}') to ('\\x{high}')"
    )
    await session.say(f"alter table {copy} rename to {partition}")


# -- alone --------------------------------------------------------------------------------------------------


async def _alone(session: Session, swap: Callable[[], Awaitable[None]]) -> bool:
    """Do it in a transaction that nobody else is in; False where that cannot be had soon."""

    async def alone() -> None:
        await session.say(f"set local statement_timeout = {ALONE_MS}")
        await session.value(query("lock"), PARTITION_LOCK)
        await session.say("lock table only event, only attempt in access exclusive mode")
        await swap()

    return await in_brief_locks(session, alone, tries=LOCK_TRIES)
