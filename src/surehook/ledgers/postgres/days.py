"""The days that have partitions: their sizes, and what was done to them."""

from __future__ import annotations

from typing import NamedTuple

from surehook.core.instants import DAY_MS
from surehook.ledgers.postgres.partitions import TABLES, first_id
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query

# A day with fewer bytes is pruned row by row: that takes seconds, and blocks nobody.
LARGE_BYTES = 16 << 20
# Comments on partitions: the bodies of its events are gone; it holds what was needed when its day was dropped.
BARE = "without bodies"
KEPT = "kept"


class Day(NamedTuple):
    """The partitions of one day. `size` counts the bytes of its rows."""

    number: int
    size: int = 0
    notes: frozenset[str] = frozenset()
    tables: tuple[str, ...] = ()

    @property
    def is_bare(self) -> bool:
        return BARE in self.notes

    @property
    def goes_whole(self) -> bool:
        """Return True for a large day that is not itself the rest of one."""
        return self.size >= LARGE_BYTES and KEPT not in self.notes and len(self.tables) == len(TABLES)

    @property
    def span(self) -> tuple[bytes, bytes]:
        """Return the lowest id of the day, and that of the next."""
        return first_id(self.number), first_id(self.number + 1)

    def is_before(self, instant: int) -> bool:
        """Return True if every id of the day was made for an earlier instant."""
        return (self.number + 1) * DAY_MS <= instant


async def days(session: PostgresSession) -> list[Day]:
    """List the days that have partitions, oldest first."""
    found: dict[int, Day] = {}
    for row in await session.rows(query("partitions"), list(TABLES)):
        table = row["parent"]
        number = row["name"].removeprefix(f"{table}_day_")
        if number.isdecimal():
            day = found.get(int(number), Day(int(number)))
            notes = day.notes | {row["note"]} if row["note"] else day.notes
            found[day.number] = Day(day.number, day.size + row["bytes"], notes, (*day.tables, table))
    return [found[number] for number in sorted(found)]
