"""Marks of rows that were handed over to a broker, and the node that sweeps (ports/handoff.py).

A sweep uses an index of its own, (lane, mark, due time) of ready rows, which is created when a broker is first used: an
installation without one does not pay for it. A queue of a million marked rows costs a sweep nothing, and neither do rows
that fall due later.

Like a claim, a sweep begins where the last one ended: while somebody holds a snapshot, an index keeps the entries of rows
that were taken. Rows that came to lie behind that position are noted (strays.py), or found by looking back over everything
(lookback.py).
"""

from __future__ import annotations

from collections.abc import Callable

from surehook.core.errors import LedgerUnavailable
from surehook.core.instants import SECOND_MS
from surehook.core.model import LANES, Lane
from surehook.ledgers.late import LATE_MS
from surehook.ledgers.postgres.lookback import LookBack
from surehook.ledgers.postgres.nodes import check_fence
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query
from surehook.ledgers.postgres.strays import Strays
from surehook.ports.handoff import LaneMarks

INDEX_LOCK = 0x5375_7265_4861
INDEX = "delivery_handing"
# A row may become visible this long after it is due.
SLACK_MS = 2 * SECOND_MS
_BEGINNING = -(1 << 62)


async def prepare(session: PostgresSession) -> None:
    """Create the index if it is missing. Writers wait for that: on a long table once, for seconds."""
    if await session.value("select to_regclass($1::text)::text", INDEX):
        return
    async with session.writing():
        await session.value(query("lock"), INDEX_LOCK)
        await session.say(
            f"create index if not exists {INDEX} on delivery ((lane + 0), handed, due_at, id) "
            "where holder is null and parked is null"
        )


async def identity(session: PostgresSession) -> str:
    return await session.value(query("identity")) or ""


async def lane_marks(session: PostgresSession, lane: Lane) -> LaneMarks:
    found = await session.row(query("handing"), lane)
    assert found is not None, "the migration writes a row for each lane"
    return LaneMarks(found[0], found[1])


class Sweeping:
    """The positions at which this node's sweeps of each lane begin."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._from_due = [_BEGINNING for _ in LANES]
        self._from_mark = [1 for _ in LANES]
        self._look_backs = [LookBack(clock) for _ in LANES]
        self._strays = Strays((_BEGINNING, 1), self._lower)

    async def hand_over(
        self, session: PostgresSession, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int
    ) -> list[bytes] | None:
        state = await session.row(query("handing"), lane)
        assert state is not None
        _, _, sweeper, lives = state
        if sweeper != node:
            if lives:
                return None
            taken = await session.change(query("handing_take"), node, lane)
            check_fence(taken, node)
            if taken[0][1] is None:
                return None
            self._look_backs[lane].soon()
        await self._strays.look(session, lane, place=(now - LATE_MS, self._from_mark[lane]))
        strays = await self._strays.hand_over(
            session, lane,
            node=node, limit=limit, due_by=due_by, before=self._from_due[lane], passed=self._from_mark[lane],
        )  # fmt: skip
        rest = limit - len(strays)
        if strays and rest <= 0:
            return strays
        try:
            ids = await self._mark(session, lane, node=node, limit=rest, due_by=due_by, now=now)
        except LedgerUnavailable:
            if not strays:
                raise
            # They are marked, so they must be sent.
            return strays
        return [*strays, *ids] if ids is not None else strays or None

    def _lower(self, lane: Lane, place: tuple[int, int]) -> None:
        due_at, mark = place
        self._from_due[lane] = min(self._from_due[lane], due_at)
        self._from_mark[lane] = min(self._from_mark[lane], mark)

    async def _mark(
        self, session: PostgresSession, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int
    ) -> list[bytes] | None:
        look_back = self._look_backs[lane]
        looks_back = look_back.begin()
        from_due = _BEGINNING if looks_back else self._from_due[lane]
        from_mark = 1 if looks_back else self._from_mark[lane]
        found = await session.change(query("hand_over"), node, lane, due_by, limit, from_due, from_mark)
        check_fence(found, node)
        _, epoch, passed, first, walked = found[0]
        look_back.ended(walked - len(found))
        if epoch is None:
            return None
        ids = [] if first is None else [row[3] for row in found]
        if len(ids) == limit and limit:
            if looks_back:
                # There may be more, unmarked or lost.
                look_back.soon()
            return ids
        self._from_due[lane] = min(due_by, now) - SLACK_MS
        self._from_mark[lane] = max(1, passed)
        return ids


async def end_epoch(session: PostgresSession, lane: Lane, *, node: bytes) -> int | None:
    found = await session.change(query("end_epoch"), node, lane)
    check_fence(found, node)
    ended: int | None = found[0][1]
    return ended


async def record_watermark(session: PostgresSession, lane: Lane, epoch: int, *, node: bytes) -> None:
    check_fence(await session.change(query("record_watermark"), node, lane, epoch), node)


async def resign(session: PostgresSession, lane: Lane, *, node: bytes) -> None:
    check_fence(await session.change(query("resign"), node, lane), node)
