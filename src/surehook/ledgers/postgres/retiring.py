"""Retiring a day: the rows that are still needed are copied in slices, and the copies then replace the day.

Work goes on while the copies are made. A copy stays valid, because all changes of the day are noted from before the first
slice on: by triggers on its partitions (late rows, history rows of unfinished deliveries), and by one on `replayed`, since
only a replay can make an old event needed again. A note is the ten bytes with which the ids of an event and of its
deliveries begin. Creating the triggers waits for everybody who writes these tables, so what is not noted was committed
before, and the slices see it.

Then one short, exclusive transaction copies what the notes name, drops the day and attaches the copies in its place. So the
time that everybody waits does not depend on the number of rows that are needed. If the locks cannot be had (a dump, a
forgotten session), copies and notes stay, and the next round goes on from there, in any process.

An earlier design noted the last page of each table instead. It failed, because space freed within a page is used again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from surehook.core.instants import HOUR_MS
from surehook.ledgers.postgres.brief_locks import in_brief_locks
from surehook.ledgers.postgres.cursors import drop_cursors, read_cursors, save_cursor
from surehook.ledgers.postgres.days import BARE, KEPT, Day
from surehook.ledgers.postgres.partitions import PARTITION_LOCK, TABLES, name
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query

LOCK_TRIES = 5
# The longest statement while accepts stand still. What takes longer waits for another round.
ALONE_MS = 1_000
# Copies with at most so many rows are inserted into the `_kept` partition, others become a day again.
MOVED_ROWS = 5_000
# The span of ids that one statement copies.
SLICE_MS = HOUR_MS
_RETIRING = "retiring"
_COPYING = "copying "


class Retirement:
    """A way to retire a day.

    tables    the tables to copy, in this order, each by the statement of its name
    catch_up  the statement that copies the rows of the notes, and deletes the notes
    """

    def __init__(self, name: str, *, tables: tuple[str, ...], catch_up: str) -> None:
        self.name = name
        self.tables = tables
        self.catch_up = catch_up

    async def run(self, session: PostgresSession, day: Day, *, before: int) -> bool:
        """Begin or continue; False if the day cannot be locked now."""
        if not await self._begin(session, day, before):
            return False
        for table in self.tables:
            await self._copy(session, day, table, before)
        # Most of the notes are handled while others work.
        async with session.writing():
            await session.run(_of(day, self.catch_up))

        async def swap() -> None:
            await session.run(_of(day, self.catch_up))
            for table in self.tables:
                await session.say(f"drop table {name(table, day.number)}")
                await self._put(session, table, day)
            await session.say("drop trigger retiring on replayed")
            await drop_cursors(session, _RETIRING, *(_COPYING + table for table in TABLES))

        return await _alone(session, swap)

    async def _put(self, session: PostgresSession, table: str, day: Day) -> None:
        """Replace the dropped partition of a table by its copy."""
        await _attach(session, table, day, note=self.name)

    # -- the copies -------------------------------------------------------------------------------------

    async def _begin(self, session: PostgresSession, day: Day, before: int) -> bool:
        """Create the tables for the copies and the triggers that note changes, unless valid ones exist."""
        noting = [*(name(table, day.number) for table in self.tables), "replayed"]
        (state,) = await session.rows(query("retiring_state"), noting)
        mine = f"{day.number} {self.name} {state['columns']}".split()
        found = (await read_cursors(session)).get(_RETIRING)
        place = " ".join([*mine, str(before)]).encode()
        # A partition that an older version attached has no trigger, and copies made before a table got another column do
        # not fit it.
        if found is not None and state["noting"] == len(noting):
            *others, until = found.decode().split()
            # Copies that were made with a shorter retention may lack rows that are to be kept now.
            if others == mine and int(until) <= before:
                async with session.writing():
                    await save_cursor(session, _RETIRING, place)
                return True

        async def begin() -> None:
            if found is not None:
                # Another way, or another day, was not finished.
                await session.say("drop trigger if exists retiring on replayed")
                other = int(found.split()[0])
                for table in TABLES:
                    await session.say(f"drop table if exists {_copy(table, other)}")
                    await session.say(f"drop trigger if exists retiring on {name(table, other)}")
            low, high = (bound.hex() for bound in day.span)
            for table in self.tables:
                partition, copy, key = name(table, day.number), _copy(table, day.number), TABLES[table]
                # `_left_` was an older version's.
                await session.say(f"drop table if exists {copy}, {table}_left_{day.number}")
                await session.say(
                    f"create table {copy} (like {partition} including defaults including indexes)"
                )
                # With this constraint attaching the table need not read it.
                within = f"{key} >= '\\x{low}' and {key} < '\\x{high}'"
                await session.say(f"alter table {copy} add constraint {copy}_within check ({within})")
                await _note(session, partition, "insert", f"('{table}')")
            await _note(
                session, "replayed", "insert or update", "('replayed')",
                when=f"when (new.original >= '\\x{low}' and new.original < '\\x{high}')",
            )  # fmt: skip
            await session.say("delete from retiring_note")
            await drop_cursors(session, *(_COPYING + table for table in TABLES))
            await save_cursor(session, _RETIRING, place)

        return await in_brief_locks(session, begin, tries=LOCK_TRIES)

    async def _copy(self, session: PostgresSession, day: Day, table: str, before: int) -> None:
        """Copy the needed rows of a table, slice by slice of ids, from where the last call ended."""
        statement = _of(day, f"left_{self.name}_{table}")
        if "{columns}" in statement:
            statement = statement.replace("{columns}", await session.value(query("left_columns")))
        low, high = day.span
        at = (await read_cursors(session)).get(_COPYING + table, low)
        while at < high:
            end = min(high, (int.from_bytes(at[:6], "big") + SLICE_MS).to_bytes(6, "big") + bytes(10))
            async with session.writing():
                await session.run(statement, at, end, before)
                await save_cursor(session, _COPYING + table, end)
            at = end
        await session.say(f"analyze {_copy(table, day.number)}")


class Dropping(Retirement):
    """Drops the day. Rows that are still needed go to the `_kept` partition or, if they are many, become a day again."""

    def __init__(self) -> None:
        # Histories first, since they decide which events are needed.
        super().__init__("drop", tables=("attempt", "event"), catch_up="left_drop_more")

    async def _put(self, session: PostgresSession, table: str, day: Day) -> None:
        copy = _copy(table, day.number)
        many = f"select count(*) > {MOVED_ROWS} from (select 1 from {copy} limit {MOVED_ROWS + 1}) t"
        if await session.value(many):
            await _attach(session, table, day, note=KEPT)
            return
        await session.say(f"insert into {table}_kept select * from {copy}")
        await session.say(f"drop table {copy}")


class Undressing(Retirement):
    """Rewrites the day's events without the bodies that nobody needs.

    An update would write every row once more too, and would free no disk space before the day itself is dropped.
    """

    def __init__(self) -> None:
        super().__init__("bare", tables=("event",), catch_up="left_bare_more")

    async def _put(self, session: PostgresSession, table: str, day: Day) -> None:
        await _attach(session, table, day, note=BARE)


def _copy(table: str, day: int) -> str:
    return f"{table}_stays_{day}"


def _of(day: Day, statement: str) -> str:
    return query(statement).replace("{day}", str(day.number))


async def _note(session: PostgresSession, table: str, events: str, argument: str, *, when: str = "") -> None:
    await session.say(
        f"create trigger retiring after {events} on {table} for each row {when} "
        f"execute function note_retiring{argument}"
    )


async def _attach(session: PostgresSession, table: str, day: Day, *, note: str) -> None:
    copy, partition = _copy(table, day.number), name(table, day.number)
    low, high = (bound.hex() for bound in day.span)
    await session.say(
        f"alter table {table} attach partition {copy} for values from ('\\x{low}') to ('\\x{high}')"
    )
    await session.say(f"alter table {copy} rename to {partition}")
    await session.say(f"comment on table {partition} is '{note}'")


async def _alone(session: PostgresSession, swap: Callable[[], Awaitable[None]]) -> bool:
    """Run `swap` in an exclusive transaction; False if the locks cannot be had soon."""

    async def alone() -> None:
        await session.say(f"set local statement_timeout = {ALONE_MS}")
        await session.value(query("lock"), PARTITION_LOCK)
        await session.say("lock table only event, only attempt, only replayed in access exclusive mode")
        await swap()

    return await in_brief_locks(session, alone, tries=LOCK_TRIES)
