"""Retiring one day: what is still needed of it is copied beside it, in slices, and then takes the day's place.

Everybody works on while the copies are made. A copy that is made once stays good, because what happens to the day
from before the first slice on is noted: by triggers on its partitions (rows that come late, lines of unfinished
deliveries), and by one on `replayed`, since a replay is the only way in which an event of before comes to be needed
again. A note is the ten bytes with which an event's id and those of its deliveries begin. Making the triggers waits
for whoever writes these tables, so whatever is not noted was committed before, and is seen by the slices.

Then comes one short transaction that nobody else is in: it goes by the notes alone, drops the day and puts the copies
into its place. So how long everybody waits does not depend on how much is needed. Where it cannot be had (a dump, a
forgotten session), copies and notes stay, and the next round goes on from there, in whatever process.

Pages behind which everything new must lie were the first way: what was freed within a page is used again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from surehook.core.instants import HOUR_MS
from surehook.ledgers.postgres.briefly import in_brief_locks
from surehook.ledgers.postgres.days import BARE, KEPT, Day
from surehook.ledgers.postgres.partitions import PARTITION_LOCK, TABLES, name
from surehook.ledgers.postgres.places import drop_places, keep_place, places
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query

LOCK_TRIES = 5
ALONE_MS = 1_000  # for one statement while accepts stand still; what takes longer waits for another round
# Copies up to this many rows go among the kept ones, which takes as long as inserting them; more are a day again.
MOVED_ROWS = 5_000
SLICE_MS = HOUR_MS  # of ids: one statement's work
_RETIRING = "retiring"
_COPYING = "copying "


class Retirement:
    """A way to retire a day: `tables` are copied in this order, each by the statement of its name; `catch_up` copies
    what the notes tell of, and takes the notes away."""

    def __init__(self, name: str, *, tables: tuple[str, ...], catch_up: str) -> None:
        self.name = name
        self.tables = tables
        self.catch_up = catch_up

    async def run(self, session: Session, day: Day, *, before: int) -> bool:
        """Begin or go on; False where nobody can be alone with the day now."""
        if not await self._begin(session, day, before):
            return False
        for table in self.tables:
            await self._copy(session, day, table, before)
        async with session.writing():  # most of it while others work
            await session.run(_of(day, self.catch_up))

        async def swap() -> None:
            await session.run(_of(day, self.catch_up))
            for table in self.tables:
                await session.say(f"drop table {name(table, day.number)}")
                await self._put(session, table, day)
            await session.say("drop trigger retiring on replayed")
            await drop_places(session, _RETIRING, *(_COPYING + table for table in TABLES))

        return await _alone(session, swap)

    async def _put(self, session: Session, table: str, day: Day) -> None:
        """Let the copy of a table take the place of the day's, which is gone."""
        await _attach(session, table, day, note=self.name)

    # -- the copies -------------------------------------------------------------------------------------

    async def _begin(self, session: Session, day: Day, before: int) -> bool:
        """Make the tables for the copies, and have noted what happens from now on; or go on with those that are good."""
        noting = [*(name(table, day.number) for table in self.tables), "replayed"]
        (state,) = await session.rows(query("retiring_state"), noting)
        mine = f"{day.number} {self.name} {state['columns']}".split()
        found = (await places(session)).get(_RETIRING)
        place = " ".join([*mine, str(before)]).encode()
        # A partition that the version before has put into the day's place has no trigger, and copies that were made
        # before a table got another column do not fit it.
        if found is not None and state["noting"] == len(noting):
            *others, until = found.decode().split()
            # Copies that were made for a shorter life may lack what is to be kept by now.
            if others == mine and int(until) <= before:
                async with session.writing():
                    await keep_place(session, _RETIRING, place)
                return True

        async def begin() -> None:
            if found is not None:  # another way or day that came to no end
                await session.say("drop trigger if exists retiring on replayed")
                other = int(found.split()[0])
                for table in TABLES:
                    await session.say(f"drop table if exists {_copy(table, other)}")
                    await session.say(f"drop trigger if exists retiring on {name(table, other)}")
            low, high = (bound.hex() for bound in day.span)
            for table in self.tables:
                partition, copy, key = name(table, day.number), _copy(table, day.number), TABLES[table]
                # `…_left_…` is of the version before.
                await session.say(f"drop table if exists {copy}, {table}_left_{day.number}")
                await session.say(
                    f"create table {copy} (like {partition} including defaults including indexes)"
                )
                # With it, attaching the table has nothing to look up.
                within = f"{key} >= '\\x{low}' and {key} < '\\x{high}'"
                await session.say(f"alter table {copy} add constraint {copy}_within check ({within})")
                await _note(session, partition, "insert", f"('{table}')")
            await _note(
                session, "replayed", "insert or update", "('replayed')",
                when=f"when (new.original >= '\\x{low}' and new.original < '\\x{high}')",
            )  # fmt: skip
            await session.say("delete from retiring_note")
            await drop_places(session, *(_COPYING + table for table in TABLES))
            await keep_place(session, _RETIRING, place)

        return await in_brief_locks(session, begin, tries=LOCK_TRIES)

    async def _copy(self, session: Session, day: Day, table: str, before: int) -> None:
        """What is needed of a table, slice by slice of ids, from where it ended last."""
        statement = _of(day, f"left_{self.name}_{table}")
        if "{columns}" in statement:
            statement = statement.replace("{columns}", await session.value(query("left_columns")))
        low, high = day.span
        at = (await places(session)).get(_COPYING + table, low)
        while at < high:
            end = min(high, (int.from_bytes(at[:6], "big") + SLICE_MS).to_bytes(6, "big") + bytes(10))
            async with session.writing():
                await session.run(statement, at, end, before)
                await keep_place(session, _COPYING + table, end)
            at = end
        await session.say(f"analyze {_copy(table, day.number)}")


class Dropping(Retirement):
    """The day goes; what is still needed stays, among the kept rows or, where it is much, as a day of kept ones."""

    def __init__(self) -> None:
        # Histories first: which events are needed follows from them.
        super().__init__("drop", tables=("attempt", "event"), catch_up="left_drop_more")

    async def _put(self, session: Session, table: str, day: Day) -> None:
        copy = _copy(table, day.number)
        many = f"select count(*) > {MOVED_ROWS} from (select 1 from {copy} limit {MOVED_ROWS + 1}) t"
        if await session.value(many):
            await _attach(session, table, day, note=KEPT)
            return
        await session.say(f"insert into {table}_kept select * from {copy}")
        await session.say(f"drop table {copy}")


class Undressing(Retirement):
    """The day's events are written anew without the bodies that nobody needs. An update would write every row once
    more too, and give no page back to the disk before the day itself goes."""

    def __init__(self) -> None:
        super().__init__("bare", tables=("event",), catch_up="left_bare_more")

    async def _put(self, session: Session, table: str, day: Day) -> None:
        await _attach(session, table, day, note=BARE)


def _copy(table: str, day: int) -> str:
    return f"{table}_stays_{day}"


def _of(day: Day, statement: str) -> str:
    return query(statement).replace("{day}", str(day.number))


async def _note(session: Session, table: str, events: str, argument: str, *, when: str = "") -> None:
    await session.say(
        f"create trigger retiring after {events} on {table} for each row {when} "
        f"execute function note_retiring{argument}"
    )


async def _attach(session: Session, table: str, day: Day, *, note: str) -> None:
    copy, partition = _copy(table, day.number), name(table, day.number)
    low, high = (bound.hex() for bound in day.span)
    await session.say(
        f"alter table {table} attach partition {copy} for values from ('\\x{low}') to ('\\x{high}')"
    )
    await session.say(f"alter table {copy} rename to {partition}")
    await session.say(f"comment on table {partition} is '{note}'")


async def _alone(session: Session, swap: Callable[[], Awaitable[None]]) -> bool:
    """Do it in a transaction that nobody else is in; False where that cannot be had soon."""

    async def alone() -> None:
        await session.say(f"set local statement_timeout = {ALONE_MS}")
        await session.value(query("lock"), PARTITION_LOCK)
        await session.say("lock table only event, only attempt, only replayed in access exclusive mode")
        await swap()

    return await in_brief_locks(session, alone, tries=LOCK_TRIES)
