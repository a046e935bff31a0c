"""The way out: leasing rows, and handing them back unsent. Each call is one statement.

Claims begin where the last one ended. An index keeps the entries of rows that were taken until vacuum may
remove them, and while somebody holds a snapshot it may not; a claim that began at the beginning would then walk
over all of them each time. What falls due behind the mark (a node's rows that were freed, handed back) lowers it
where this node knows of it, and else is found when a claim looks back over everything: as often as that costs
one part in sixty of the time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from surehook.core.ids import floor
from surehook.core.instants import SECOND_MS
from surehook.core.model import LANES, Delivery, Lane
from surehook.ledgers.postgres.nodes import check_fence
from surehook.ledgers.postgres.rows import deliveries_of
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query

# Rows become visible after the instant they are due for: by the length of a commit, and the distance of clocks.
# Later ones are found by looking back. While a snapshot is held, each claim walks over what was taken in this time.
SLACK_MS = SECOND_MS // 2
LOOK_BACK_S = 1.0
LOOK_BACK_SHARE = 60.0
FAR_ROWS = 2000  # about two milliseconds of walking. Told by the rows, since time would mistake a slow moment for a long way

_END = b"\xff" * 16
_BEGINNING = -(1 << 62)


class Marks:
    """Where claims of each lane begin."""

    def __init__(self) -> None:
        self._from = [_BEGINNING for _ in LANES]
        self._look_back_at = [0.0 for _ in LANES]

    def lower(self, due_at: int | None) -> None:
        """Rows of this instant, or later ones, may have become ready."""
        if due_at is not None:
            self._from = [min(mark, due_at) for mark in self._from]

    async def claim(
        self, session: Session, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int
    ) -> list[Delivery]:
        began = time.monotonic()
        looks_back = began >= self._look_back_at[lane]
        begin = _BEGINNING if looks_back else self._from[lane]
        found = await session.change(query("claim"), node, lane, begin, due_by, limit)
        leased = _leased(found, node)
        if looks_back:
            ended = time.monotonic()
            self._look_back_at[lane] = ended + max(LOOK_BACK_S, LOOK_BACK_SHARE * (ended - began))
        if len(leased) == limit and limit:
            self._from[lane] = min(leased[-1].due_at, now - SLACK_MS)
        else:
            self._from[lane] = min(due_by, now) - SLACK_MS
        return leased

    async def next_due(self, session: Session, lane: Lane) -> int | None:
        due: int | None = await session.value(query("next_due"), lane, self._from[lane])
        return due


async def claim_ids(session: Session, ids: Sequence[bytes], *, node: bytes, now: int) -> list[Delivery]:
    asked = list(dict.fromkeys(ids))
    found = await session.change(query("claim_ids"), node, sorted(asked), now)
    by_id = {delivery.id: delivery for delivery in _leased(found, node)}
    return [by_id[id] for id in asked if id in by_id]


@dataclass(slots=True)
class _Place:
    """Where taking back from an endpoint, for some reasons, stands."""

    begin: bytes = b""  # what lies before this id has been looked at
    look_back_at: float = 0.0  # seconds of the monotonic clock
    is_far: bool = False  # the last look back walked over many rows that had been taken
    parked: bytes = _END  # the lowest id that this node has parked since the call that runs began


class Parked:
    """Where taking back begins, for endpoints of which the last call gave as much as was asked, or had far to walk for
    too little: the same as `Marks`, by id. What others parked behind the mark is found by looking back, and, where
    that is not far, whenever a call finds too little."""

    def __init__(self) -> None:
        self._places: dict[tuple[bytes, tuple[str, ...]], _Place] = {}

    async def unpark(
        self,
        session: Session,
        endpoint: bytes,
        reasons: Sequence[str],
        *,
        node: bytes,
        limit: int,
        now: int,
        restart: bool = False,
    ) -> list[Delivery]:
        """The oldest rows of all the reasons together, by id."""
        asked = list(dict.fromkeys(reasons))
        sql = query("restart" if restart else "unpark")

        async def take(begin: bytes, limit: int) -> tuple[list[Delivery], int]:
            rows = await session.change(sql, node, endpoint, asked, limit, now, begin)
            leased = _leased([row[:-1] for row in rows], node)
            return leased, rows[0]["walked"] - len(leased)

        key = (endpoint, tuple(asked))
        place = self._places.setdefault(key, _Place())
        place.parked = _END
        began = time.monotonic()
        begin = place.begin if began < place.look_back_at else b""
        found, walked = await take(begin, limit)
        leased = found
        if begin and len(leased) < limit and not place.is_far:
            begin = b""
            found, walked = await take(begin, limit - len(leased))
            leased = sorted([*leased, *found], key=lambda delivery: delivery.id)
        if not begin:
            ended = time.monotonic()
            place.is_far = walked > FAR_ROWS
            place.look_back_at = ended + max(LOOK_BACK_S, LOOK_BACK_SHARE * (ended - began))
        if found and len(leased) == limit:
            place.begin = min(found[-1].id, place.parked)
        elif place.is_far:
            place.begin = min(max(begin, floor(now - SLACK_MS)), place.parked)
        else:
            self._places.pop(key, None)
        return leased

    async def park(
        self, session: Session, deliveries: Sequence[Delivery], reason: str, *, node: bytes, now: int
    ) -> None:
        """Aside; what lies before a mark lowers it."""
        try:
            check_fence(await session.change(query("park"), node, *_in_hand(deliveries), reason, now), node)
        finally:  # also where nobody knows whether it was done
            for (endpoint, _), place in self._places.items():
                lowest = min([one.id for one in deliveries if one.endpoint == endpoint], default=_END)
                place.parked = min(place.parked, lowest)
                place.begin = min(place.begin, lowest)


async def release(session: Session, deliveries: Sequence[Delivery], *, node: bytes, now: int) -> None:
    check_fence(await session.change(query("release"), node, *_in_hand(deliveries)), node)


def _in_hand(deliveries: Sequence[Delivery]) -> tuple[list[bytes], list[int]]:
    ordered = sorted([(delivery.id, delivery.attempt) for delivery in deliveries])
    return [id for id, _ in ordered], [attempt for _, attempt in ordered]


def _leased(found: Sequence[Any], node: bytes) -> list[Delivery]:
    """Deliveries of a fenced statement, which answers one row without an id where there are none."""
    check_fence(found, node)
    return [] if found[0][0] is None else deliveries_of(found)
