"""Retention row by row: what no whole day can take away, oldest first, a few hundred rows at a time.

`retention.py` drops days that are large and old. This walks what is left: days with few rows, the day that an
instant cuts in two where it is small, and the `_kept` partitions, where rows lie that outlived their day. A walk
keeps its place between calls until it has come to the end, and each step is a short transaction. One node at a
time prunes, by a lock that its session holds.

Deleting is safe beside everything else: an event's row is locked before the last look for somebody who needs it,
and whoever makes a new delivery of an old event (`replays.py`) holds that row as well.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from surehook.core.ids import floor
from surehook.core.limits import EVENT_ID_AHEAD_S
from surehook.ledgers.postgres.partitions import day_of, name
from surehook.ledgers.postgres.retention import days
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query

AHEAD_MS = EVENT_ID_AHEAD_S * 1_000
# Rows one step walks over: some milliseconds.
STEP_ROWS = 500
STEP_PAGES = 64  # of keys, where the table itself is walked
NODES_KEPT_MS = 24 * 3_600_000  # a buried node's row answers nothing that its absence would not
ADDED_UP_FROM = 500  # changes of the count of dead letters: added up once they are more
PRUNE_LOCK = 0x5375_7265_5072

_Place = Any
_Walk = Callable[..., Awaitable[tuple[int, _Place]]]


class _Along(NamedTuple):
    """A place in a walk through several partitions: which one, and the last key seen there."""

    partition: int = 0
    key: bytes = b""
    seq: int = -1


class Pruning:
    """The walks over histories, events, bodies, keys, notices and receipts, one after another."""

    def __init__(self) -> None:
        self._walks: tuple[_Walk, ...] = (_stories, _events, _bodies, _keys, _notices, _receipts)
        self._walk = 0
        self._place: _Place = None

    async def step(
        self, session: Session, *, events_before: int, bodies_before: int, limit: int, now: int
    ) -> tuple[int, bool]:
        """Remove some of the next rows: how many, and whether all walks have come to their ends."""
        walk = self._walks[self._walk]
        before = bodies_before if walk is _bodies else events_before
        async with session.writing():
            removed, self._place = await walk(
                session, self._place, before=before, limit=min(limit, STEP_ROWS), now=now
            )
            if self._place is None:
                self._walk = (self._walk + 1) % len(self._walks)
                if self._walk == 0:
                    await session.run(query("prune_nodes"), now - NODES_KEPT_MS)
                    await session.run(query("prune_beats"))
        return removed, self._walk == 0 and self._place is None


async def add_dead_letters_up(session: Session) -> None:
    """Let the count of dead letters stay a sum of few changes."""
    if await session.value(query("many_dead_letter_changes"), ADDED_UP_FROM):
        await session.change(query("add_dead_letters_up"))


async def _partitions(session: Session, table: str, before: int) -> list[str]:
    """The partitions to walk: small days that begin before the instant, and what is kept beside them."""
    last = day_of(before + AHEAD_MS)
    small = sorted(day.number for day in await days(session) if day.number <= last and not day.is_large)
    return [*(name(table, number) for number in small), f"{table}_kept"]


async def _stories(
    session: Session, place: _Along | None, *, before: int, limit: int, now: int
) -> tuple[int, _Along | None]:
    """Finished deliveries with their histories, dead letters excepted."""
    place = place or _Along()
    partitions = await _partitions(session, "attempt", before)
    if place.partition >= len(partitions):
        return 0, None
    partition = partitions[place.partition]
    walked = await session.rows(
        _over(partition, "prune_stories"), place.key, place.seq, _ceiling(before), before, STEP_ROWS
    )
    old = [row["delivery"] for row in walked if row["is_old"]]
    going = old[:limit]
    if going:
        await session.run(_over(partition, "prune_story"), going)
        await session.run(query("prune_replayed"), going)
        await session.run(query("prune_dismissed"), going)
    if len(old) > limit:
        return limit, place._replace(key=going[-1], seq=_PAST_ALL)
    if len(walked) < STEP_ROWS:
        return len(going), _next(place, partitions)
    return len(going), place._replace(key=walked[-1]["delivery"], seq=walked[-1]["seq"])


_PAST_ALL = (1 << 63) - 1  # after every line of a delivery


async def _events(
    session: Session, place: _Along | None, *, before: int, limit: int, now: int
) -> tuple[int, _Along | None]:
    return await _old_events(session, "prune_event", place, before=before, limit=limit, bodies=False)


async def _bodies(
    session: Session, place: _Along | None, *, before: int, limit: int, now: int
) -> tuple[int, _Along | None]:
    return await _old_events(session, "prune_body", place, before=before, limit=limit, bodies=True)


async def _old_events(
    session: Session, remove: str, place: _Along | None, *, before: int, limit: int, bodies: bool
) -> tuple[int, _Along | None]:
    place = place or _Along()
    partitions = await _partitions(session, "event", before)
    if place.partition >= len(partitions):
        return 0, None
    partition = partitions[place.partition]
    walked = await session.rows(
        _over(partition, "prune_events"), place.key, _ceiling(before), before, bodies, STEP_ROWS
    )
    old = [row["id"] for row in walked if row["is_old"]]
    removed = 0
    if old[:limit]:
        # Another look after the lock: a new delivery of an old event may have come in between.
        await session.rows(_over(partition, "prune_lock"), old[:limit])
        removed = await session.run(_over(partition, remove), old[:limit])
    if len(old) > limit:
        return removed, place._replace(key=old[limit - 1])
    if len(walked) < STEP_ROWS:
        return removed, _next(place, partitions)
    return removed, place._replace(key=walked[-1]["id"])


def _next(place: _Along, partitions: Sequence[str]) -> _Along | None:
    following = place.partition + 1
    return _Along(following) if following < len(partitions) else None


async def _keys(
    session: Session, place: int | None, *, before: int, limit: int, now: int
) -> tuple[int, int | None]:
    """The table's own pages are walked: an index on the ends of lives would be written with every key."""
    place = place or 0
    removed = await session.run(query("prune_keys"), (place, 0), (place + STEP_PAGES, 0), now, limit)
    if removed == limit:
        return removed, place
    following = place + STEP_PAGES
    pages = await session.value(query("key_pages"))
    return removed, following if following < pages else None


async def _notices(
    session: Session, place: bool | None, *, before: int, limit: int, now: int
) -> tuple[int, bool | None]:
    removed = await session.run(query("prune_notices"), _ceiling(before), before, limit)
    return removed, None if removed < limit else True


async def _receipts(
    session: Session, place: bool | None, *, before: int, limit: int, now: int
) -> tuple[int, bool | None]:
    removed = await session.run(query("prune_receipts"), _ceiling(before), before, limit)
    return removed, None if removed < limit else True


def _over(partition: str, statement: str) -> str:
    return query(statement).replace("{partition}", partition)


def _ceiling(before: int) -> bytes:
    """An id that rows older than this instant are below, however far ahead of its time one was made."""
    return floor(before + AHEAD_MS)
