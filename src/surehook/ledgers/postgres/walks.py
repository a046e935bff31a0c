"""Walks of retention that remove rows one by one, so that rows which stay cost nothing afterwards.

There are two walks. The first goes through the small days in the order of ids, from a mark up to the rows that are old by
now, and so through what has become old since the last round. Rows that it leaves behind the mark are kept (dead letters,
events of unfinished deliveries) or were finished late. The second goes round and round through all of these, and through the
`_kept` partitions, a thousand rows per round: a million kept rows are looked through in a day or two.

The positions are stored in the ledger (`cursors.py`), so a start does not begin anew. Rows that are found to be old are
removed at once and do not count: if a million dead letters are dismissed, they are gone within an hour.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from surehook.core.ids import floor
from surehook.core.instants import HOUR_MS, MINUTE_MS
from surehook.ledgers.common.indexes import AHEAD_MS
from surehook.ledgers.postgres.cursors import Cursors
from surehook.ledgers.postgres.days import Day
from surehook.ledgers.postgres.partitions import name
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query

# Rows that one step looks at: some milliseconds.
STEP_ROWS = 500
# Kept rows that one round looks at without removing any, and the partitions that it looks into.
KEPT_ROWS = 1_000
KEPT_LOOKS = 8
# Rows after the mark that one round looks at without removing any.
FRESH_ROWS = 20_000
# A mark stays so far behind, since deliveries with first retries end after their ids were made.
SETTLED_MS = 10 * MINUTE_MS
# A mark is saved again once it has moved so far.
SAVED_MS = HOUR_MS
KEPT_WALK = "kept"
# Bytes of a history row's number in a position, after its delivery.
_SEQ = 8


class LookResult(NamedTuple):
    """The result of a look: the number of rows, the position of the last one, and the keys of those to remove."""

    rows: int
    last: bytes
    old: list[bytes]


class WalkedTable(NamedTuple):
    """The rows of `table` that a walk is about. The ledger stores its position under `name`."""

    name: str
    table: str
    # Takes a partition, the positions after and below which to look, and the instant before which rows are old.
    look: Callable[[PostgresSession, str, bytes, bytes, int], Awaitable[LookResult]]
    remove: Callable[[PostgresSession, str, Sequence[bytes]], Awaitable[int]]


class Fresh:
    """The first walk, of one kind."""

    def __init__(self, kind: WalkedTable) -> None:
        self.kind = kind
        # The position in the middle of a round.
        self._at: bytes | None = None
        self._vain = 0

    async def step(
        self, session: PostgresSession, days: Sequence[Day], cursors: Cursors, *, before: int, limit: int
    ) -> tuple[int, bool]:
        """Remove some of the next rows. Return how many, and True at the end of a round."""
        settled, ceiling = floor(before - SETTLED_MS), _ceiling(before)
        mark = min(cursors.of(self.kind.name), settled)
        at = mark if self._at is None else self._at
        day = _next_day(days, self.kind, at, ceiling)
        if day is None or self._vain >= FRESH_ROWS:
            self._at, self._vain = None, 0
            await cursors.move(session, self.kind.name, min(max(at, mark), settled), apart_ms=SAVED_MS)
            return 0, True
        partition = name(self.kind.table, day.number)
        seen = await self.kind.look(session, partition, at, min(ceiling, day.span[1]), before)
        removed = await _remove(session, self.kind, partition, seen.old[:limit])
        self._vain += seen.rows - len(seen.old)
        if len(seen.old) > limit:
            self._at = _behind(seen.old[limit - 1])
        else:
            self._at = seen.last if seen.rows == STEP_ROWS else day.span[1]
        return removed, False


class Kept:
    """The second walk, of all kinds: through the `_kept` partitions, and the days behind the marks."""

    def __init__(self) -> None:
        self._vain = self._looks = self._ends = 0
        # The position in the middle of a round.
        self._place: bytes | None = None
        # This round began within a part.
        self._is_within = False

    async def step(
        self,
        session: PostgresSession,
        days: Sequence[Day],
        cursors: Cursors,
        *,
        befores: dict[WalkedTable, int],
        limit: int,
    ) -> tuple[int, bool]:
        """Remove some of the next rows. Return how many, and True at the end of a round."""
        parts = [
            (number, day)
            for number, kind in enumerate(befores)
            for day in (None, *(day for day in days if _is_walked(day, kind) and day.span[0] < cursors.of(kind.name)))
        ]  # fmt: skip
        keys = [_key(number, day) for number, day in parts]
        cursor = cursors.of(KEPT_WALK) if self._place is None else self._place
        which = next((which for which, key in enumerate(keys) if key >= cursor[:_KEY]), 0)
        at = cursor[_KEY:] if keys[which] == cursor[:_KEY] else b""
        if self._place is None:
            self._is_within = at != b""
        number, day = parts[which]
        kind = list(befores)[number]
        before = befores[kind]
        below = _ceiling(before) if day is None else min(cursors.of(kind.name), day.span[1])
        partition = f"{kind.table}_kept" if day is None else name(kind.table, day.number)
        seen = await kind.look(session, partition, at, below, before)
        removed = await _remove(session, kind, partition, seen.old[:limit])
        self._vain += seen.rows - len(seen.old)
        self._looks += not seen.old
        if len(seen.old) > limit:
            self._place = keys[which] + _behind(seen.old[limit - 1])
            return removed, False
        if seen.rows == STEP_ROWS:
            self._place = keys[which] + seen.last
        else:
            self._place = keys[(which + 1) % len(keys)]
            self._ends += 1
        # At most once round, including the beginning of the part in which it began.
        once_round = len(keys) + self._is_within
        if self._vain < KEPT_ROWS and self._looks < KEPT_LOOKS and self._ends < once_round:
            return removed, False
        await cursors.move(session, KEPT_WALK, self._place)
        self._vain = self._looks = self._ends = 0
        self._place = None
        return removed, True


_KEY = 5


def _key(number: int, day: Day | None) -> bytes:
    """Return the key that sorts the parts of the second walk."""
    return bytes((number,)) + (0 if day is None else day.number).to_bytes(_KEY - 1, "big")


def _is_walked(day: Day, kind: WalkedTable) -> bool:
    return kind.table in day.tables and not day.goes_whole


def _next_day(days: Sequence[Day], kind: WalkedTable, at: bytes, ceiling: bytes) -> Day | None:
    for day in days:
        if _is_walked(day, kind) and day.span[1] > at and day.span[0] < ceiling:
            return day
    return None


def _behind(key: bytes) -> bytes:
    """Return the position after every row of this key."""
    return key + b"\xff" * _SEQ


def _ceiling(before: int) -> bytes:
    """Exclusive upper id bound for rows older than `before`, allowing for ids minted ahead of the clock."""
    return floor(before + AHEAD_MS)


async def _remove(session: PostgresSession, kind: WalkedTable, partition: str, keys: Sequence[bytes]) -> int:
    if not keys:
        return 0
    async with session.writing():
        return await kind.remove(session, partition, keys)


# -- the kinds ----------------------------------------------------------------------------------------------


async def _look_at_finished(
    session: PostgresSession, partition: str, after: bytes, below: bytes, before: int
) -> LookResult:
    """Look at history rows, and find finished deliveries other than dead letters."""
    seq = int.from_bytes(after[16:], "big") if len(after) > 16 else -1
    parameters = (after[:16], min(seq, (1 << 63) - 1), below, before, STEP_ROWS)
    (row,) = await session.rows(_over(partition, "prune_finished"), *parameters)
    last = row["last"] + row["last_seq"].to_bytes(_SEQ, "big") if row["rows"] else after
    return LookResult(row["rows"], last, row["old"])


async def _remove_finished(session: PostgresSession, partition: str, deliveries: Sequence[bytes]) -> int:
    await session.run(_over(partition, "prune_history"), deliveries)
    await session.run(query("prune_replayed"), deliveries)
    await session.run(query("prune_dismissed"), deliveries)
    return len(deliveries)


async def _look_at_events(
    session: PostgresSession, partition: str, after: bytes, below: bytes, before: int
) -> LookResult:
    return await _look_along(session, partition, after, below, before, bodies=False)


async def _look_at_bodies(
    session: PostgresSession, partition: str, after: bytes, below: bytes, before: int
) -> LookResult:
    return await _look_along(session, partition, after, below, before, bodies=True)


async def _look_along(
    session: PostgresSession, partition: str, after: bytes, below: bytes, before: int, *, bodies: bool
) -> LookResult:
    statement = _over(partition, "prune_events")
    (row,) = await session.rows(statement, after[:16], below, before, bodies, STEP_ROWS)
    return LookResult(row["rows"], row["last"] or after, row["old"])


async def _remove_events(session: PostgresSession, partition: str, events: Sequence[bytes]) -> int:
    return await _locked(session, partition, "prune_event", events)


async def _remove_bodies(session: PostgresSession, partition: str, events: Sequence[bytes]) -> int:
    return await _locked(session, partition, "prune_body", events)


async def _locked(session: PostgresSession, partition: str, remove: str, events: Sequence[bytes]) -> int:
    """Lock events, and remove those that are still old: a new delivery may have come in between."""
    await session.rows(_over(partition, "prune_lock"), events)
    return await session.run(_over(partition, remove), events)


def _over(partition: str, statement: str) -> str:
    return query(statement).replace("{partition}", partition)


FINISHED = WalkedTable("stories", "attempt", _look_at_finished, _remove_finished)
EVENTS = WalkedTable("events", "event", _look_at_events, _remove_events)
BODIES = WalkedTable("bodies", "event", _look_at_bodies, _remove_bodies)
