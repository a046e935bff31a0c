"""Leasing rows, and handing them back unsent. Each call is one statement.

A claim begins where the last one ended. An index keeps the entries of rows that were taken until vacuum removes them, which
it cannot while somebody holds a snapshot. A claim that always began at the lowest entry would walk over all of them
(marks.py).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from surehook.core.errors import CommitUnknown, LedgerUnavailable
from surehook.core.ids import floor
from surehook.core.model import Delivery, Lane
from surehook.ledgers.late import LATE_MS
from surehook.ledgers.postgres.lookback import PARKED_MOST_S, LookBack
from surehook.ledgers.postgres.marks import SLACK_MS, Marks
from surehook.ledgers.postgres.nodes import check_fence, leased_of
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query
from surehook.ledgers.postgres.stray_notes import note_ready
from surehook.ledgers.postgres.strays import Strays
from surehook.ports.ledger import ClaimedIds, is_full, weight

_END = b"\xff" * 16


async def claim(
    session: PostgresSession,
    marks: Marks,
    strays: Strays[int],
    lane: Lane,
    *,
    node: bytes,
    limit: int,
    due_by: int,
    now: int,
    size: int,
) -> list[Delivery]:
    """Lease rows that became ready out of order first, and then as many others as fit."""
    bounds: dict[str, Any] = {"node": node, "limit": limit, "due_by": due_by, "size": size}
    if not strays.are_here(lane):
        leased = await _claim_on(session, marks, strays, lane, now=now, **bounds)
        if not strays.are_here(lane) or is_full(leased, limit=limit, size=size):
            return leased
        before = marks.reached(lane)
        return await _more(leased, strays.take(session, lane, before=before, **_rest(bounds, leased)))
    leased = await strays.take(session, lane, before=marks.at(lane), **bounds)
    if is_full(leased, limit=limit, size=size):
        return leased
    return await _more(leased, _claim_on(session, marks, strays, lane, now=now, **_rest(bounds, leased)))


def _rest(bounds: dict[str, Any], leased: Sequence[Delivery]) -> dict[str, Any]:
    """Return the bounds of what may still be leased."""
    return bounds | {"limit": bounds["limit"] - len(leased), "size": bounds["size"] - weight(leased)}


async def _more(leased: list[Delivery], work: Awaitable[list[Delivery]]) -> list[Delivery]:
    """Lease more rows. If that certainly leased none, return the rows in hand, since they are leased."""
    try:
        more = await work
    except LedgerUnavailable as error:
        if not leased or isinstance(error, CommitUnknown):
            raise
        return leased
    return sorted([*leased, *more], key=lambda delivery: (delivery.due_at, delivery.id))


async def _claim_on(
    session: PostgresSession,
    marks: Marks,
    strays: Strays[int],
    lane: Lane,
    *,
    node: bytes,
    limit: int,
    due_by: int,
    now: int,
    size: int,
) -> list[Delivery]:
    """Claim from the position where the last claim ended."""
    begin = marks.begin(lane)
    rows = await session.change(query("claim"), lane, strays.since(lane), node, begin, due_by, limit, size)
    leased = leased_of([row[:-3] for row in rows], node)
    *_, walked, has_notes, snapshot = rows[0]
    marks.ended(lane, leased, walked=walked - len(leased), limit=limit, size=size, due_by=due_by, now=now)
    strays.saw(lane, has_notes=has_notes, snapshot=snapshot, place=now - LATE_MS)
    return leased


async def next_due(session: PostgresSession, marks: Marks, lane: Lane) -> int | None:
    due: int | None = await session.value(query("next_due"), lane, marks.at(lane))
    return due


async def claim_ids(
    session: PostgresSession, ids: Sequence[bytes], *, node: bytes, now: int, size: int
) -> ClaimedIds:
    asked = list(dict.fromkeys(ids))
    rows = await session.change(query("claim_ids"), node, asked, now, size)
    leased = leased_of([row[:-1] for row in rows], node)
    cut: int | None = rows[0]["cut"]
    return ClaimedIds(leased, [] if cut is None else asked[cut - 1 :])


@dataclass(slots=True)
class _Position:
    """The position of taking back from an endpoint, for some reasons.

    begin   rows before this id have been looked at
    parked  the lowest id that this node has parked since the running call began
    """

    look_back: LookBack
    begin: bytes = b""
    parked: bytes = _END


class Parked:
    """The positions at which taking back begins: like `Marks`, by id.

    An endpoint has a position if the last call returned as much as was asked, or walked far for too little. Rows that other
    nodes parked behind it are found by looking back, and, if that is not far, whenever a call finds too little.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._positions: dict[tuple[bytes, tuple[str, ...]], _Position] = {}

    async def unpark(
        self,
        session: PostgresSession,
        endpoint: bytes,
        reasons: Sequence[str],
        *,
        node: bytes,
        limit: int,
        now: int,
        size: int,
        restart: bool = False,
    ) -> list[Delivery]:
        """Lease the oldest rows of all the reasons together, by id.

        The walk begins at the position, or at the lowest id if a look back is due. If it finds too little and a look back is
        not far, it looks back at once. Then the position is:

        1. after a full answer, the last id, or a lower one that was parked meanwhile;
        2. after too little and a far walk, the ids of about now, below which everything was seen;
        3. otherwise none: the next call begins at the lowest id.
        """
        asked = list(dict.fromkeys(reasons))
        sql = query("restart" if restart else "unpark")

        async def take(begin: bytes, limit: int) -> tuple[list[Delivery], int]:
            rows = await session.change(sql, node, endpoint, asked, limit, now, begin, size)
            leased = leased_of([row[:-1] for row in rows], node)
            return leased, rows[0]["walked"] - len(leased)

        key = (endpoint, tuple(asked))
        position = self._position(key)
        position.parked = _END
        look_back = position.look_back
        begin = b"" if look_back.begin(anyhow=not position.begin) else position.begin
        found, walked = await take(begin, limit)
        look_back.ended(walked)
        leased = found
        if begin and not is_full(leased, limit=limit, size=size) and not look_back.is_far:
            begin = b""
            look_back.begin(anyhow=True)
            found, walked = await take(begin, limit - len(leased))
            look_back.ended(walked)
            leased = sorted([*leased, *found], key=lambda delivery: delivery.id)
        if found and is_full(leased, limit=limit, size=size):
            position.begin = min(found[-1].id, position.parked)
        elif look_back.is_far:
            position.begin = min(max(begin, floor(now - SLACK_MS)), position.parked)
        else:
            self._positions.pop(key, None)
        return leased

    def _position(self, key: tuple[bytes, tuple[str, ...]]) -> _Position:
        """Return the position of a key, and move it to the end.

        Positions at the front that would look back anyhow are forgotten, since nobody asks for an endpoint that is gone.
        """
        position = self._positions.pop(key, None) or _Position(LookBack(self._clock, most_s=PARKED_MOST_S))
        while self._positions and next(iter(self._positions.values())).look_back.is_due:
            del self._positions[next(iter(self._positions))]
        self._positions[key] = position
        return position

    async def park(
        self, session: PostgresSession, deliveries: Sequence[Delivery], reason: str, *, node: bytes, now: int
    ) -> None:
        """Park rows. Rows before a position lower it."""
        try:
            check_fence(await session.change(query("park"), node, *_in_hand(deliveries), reason, now), node)
        finally:
            # Also after an error, since nobody knows then if they were parked. By endpoint.
            lowest: dict[bytes, bytes] = {}
            for one in deliveries:
                lowest[one.endpoint] = min(one.id, lowest.get(one.endpoint, _END))
            for (endpoint, _), position in self._positions.items():
                if endpoint in lowest:
                    position.parked = min(position.parked, lowest[endpoint])
                    position.begin = min(position.begin, lowest[endpoint])


async def release(session: PostgresSession, deliveries: Sequence[Delivery], *, node: bytes, now: int) -> None:
    behind = [delivery.id for delivery in deliveries if delivery.due_at <= now]
    if not behind:
        check_fence(await session.change(query("release"), node, *_in_hand(deliveries)), node)
        return
    async with session.writing():
        check_fence(await session.rows(query("release"), node, *_in_hand(deliveries)), node)
        await note_ready(session, behind, now)


def _in_hand(deliveries: Sequence[Delivery]) -> tuple[list[bytes], list[int]]:
    ordered = sorted([(delivery.id, delivery.attempt) for delivery in deliveries])
    return [id for id, _ in ordered], [attempt for _, attempt in ordered]
