"""The days that have partitions: how large they are, and what has become of them."""

from __future__ import annotations

from typing import NamedTuple

from surehook.core.instants import DAY_MS
from surehook.ledgers.postgres.partitions import TABLES, first_id
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query

# A day with fewer bytes is pruned row by row: that takes seconds, and stops nobody.
LARGE_BYTES = 16 << 20
BARE = "without bodies"  # the comment of a day's events once their bodies are gone
KEPT = "kept"  # … of partitions that hold what was needed when the day went


class Day(NamedTuple):
    """The partitions of one day, as far as there are any."""

    number: int
    size: int = 0  # bytes of its rows
    notes: frozenset[str] = frozenset()
    tables: tuple[str, ...] = ()

    @property
    def is_bare(self) -> bool:
        return BARE in self.notes

    @property
    def goes_whole(self) -> bool:
        """Large, and not what has already been left of a large one."""
        return self.size >= LARGE_BYTES and KEPT not in self.notes and len(self.tables) == len(TABLES)

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
    for row in await session.rows(query("partitions"), list(TABLES)):
        table = row["parent"]
        number = row["name"].removeprefix(f"{table}_day_")
        if number.isdecimal():
            day = found.get(int(number), Day(int(number)))
            notes = day.notes | {row["note"]} if row["note"] else day.notes
            found[day.number] = Day(day.number, day.size + row["bytes"], notes, (*day.tables, table))
    return [found[number] for number in sorted(found)]
