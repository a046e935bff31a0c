"""Deliveries that end without a call (by age, by request, with their endpoint), and overdue ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from surehook.core.model import Delivery, Notice
from surehook.ledgers.common import notices as notices_
from surehook.ledgers.common.aged import WALK_ROWS, AgedWalk, ceiling
from surehook.ledgers.endpoint_walks import EndpointCursors
from surehook.ledgers.postgres.notices import keep_notices
from surehook.ledgers.postgres.rows import deliveries_of
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query
from surehook.ports.ledger import NONE_KEPT, AgedGroup, AgedPage, ParkedGroup


async def end(
    session: PostgresSession,
    deliveries: Sequence[Delivery],
    *,
    state: str,
    reason: str | None,
    notices: Sequence[Notice],
    now: int,
    request_headers: Mapping[bytes, bytes] = NONE_KEPT,
    again: bool = False,
) -> list[bytes]:
    """End deliveries. `again`: the answer to a commit was lost, so what ended in this state at this instant was ended by it."""
    rows = {delivery.id: delivery for delivery in deliveries}
    async with session.writing():
        ended = await _end(
            session,
            sorted(rows),
            [(rows[id].attempt, rows[id].born_at) for id in sorted(rows)],
            state=state,
            reason=reason,
            now=now,
            request_headers=request_headers,
        )
        if again:
            gone = sorted(rows.keys() - ended)
            ended |= {row[0] for row in await session.rows(query("ended"), gone, now, state)}
        await keep_notices(session, notices_.of_done(notices, asked=rows, done=ended))
    return [id for id in rows if id in ended]


async def _end(
    session: PostgresSession,
    ids: Sequence[bytes],
    expected: Sequence[tuple[int | None, int | None]],
    *,
    state: str,
    reason: str | None,
    now: int,
    request_headers: Mapping[bytes, bytes] = NONE_KEPT,
) -> set[bytes]:
    """End the rows of these ids whose attempt and birth are those of `expected` (None: any)."""
    attempts, births = [attempt for attempt, _ in expected], [birth for _, birth in expected]
    kept = [request_headers.get(id) for id in ids]
    return {
        row[0] for row in await session.rows(query("end"), ids, now, state, reason, attempts, births, kept)
    }


class PostgresEndpointWalks:
    """Cancels an endpoint's deliveries: a walk over all unfinished ones, some rows at a time.

    The position of each walk is kept between calls. A walk that has come to the end starts over, until a whole one finds
    nothing.
    """

    def __init__(self) -> None:
        self.cursors = EndpointCursors()

    async def step(
        self, session: PostgresSession, endpoint: bytes, *, reason: str, limit: int, now: int
    ) -> int | None:
        """Cancel up to `limit` of the next rows, and return how many; 0: none is left; None: call again."""
        place, found, _ = self.cursors.of(endpoint, now)
        async with session.writing():
            walked = await session.rows(query("walk_endpoint"), place, WALK_ROWS, endpoint)
            unheld = [row[0] for row in walked if row[1]][: limit + 1]
            is_end = len(walked) < 1 or not walked[-1][2]
            if len(unheld) > limit:
                unheld = unheld[:limit]
                place, is_end = unheld[-1], False
            elif walked:
                place = walked[-1][0]
            anyhow = [(None, None)] * len(unheld)
            ended = await _end(session, unheld, anyhow, state="cancelled", reason=reason, now=now)
        return self.cursors.stepped(
            endpoint, None if is_end else place, ended=len(ended), found=found, now=now
        )


async def unheld_endpoints(session: PostgresSession, after: bytes) -> tuple[list[bytes], bytes | None]:
    found = await session.row(query("unheld_endpoints"), after, WALK_ROWS)
    assert found is not None
    return found["endpoints"], found["last"]


async def parked_groups(session: PostgresSession) -> list[ParkedGroup]:
    return [ParkedGroup(*row) for row in await session.rows(query("parked_groups"))]


async def parked_aged(session: PostgresSession, groups: Sequence[AgedGroup], *, limit: int) -> AgedPage:
    if not groups:
        return AgedPage([], [])
    walk = AgedWalk(groups, limit)
    found = await session.rows(
        query("parked_aged"),
        [group.endpoint for group in groups],
        [group.reason for group in groups],
        [group.after for group in groups],
        [ceiling(group) for group in groups],
        [group.born_before for group in groups],
        walk.depth,
        walk.part + 1,
    )
    for number, walked, last, aged in found:
        walk.found(groups[number - 1], aged, walked=walked, last=last)
    rows = deliveries_of(await session.rows(query("deliveries_bare"), walk.ids)) if walk.ids else []
    return AgedPage(rows, walk.rest)


async def overdue(session: PostgresSession, *, now: int, limit: int) -> list[Delivery]:
    return deliveries_of(await session.rows(query("overdue"), now, limit))


async def mark_overdue(
    session: PostgresSession, deliveries: Sequence[Delivery], notices: Sequence[Notice], *, now: int
) -> list[bytes]:
    asked = sorted({delivery.id for delivery in deliveries})
    async with session.writing():
        marked = {row[0] for row in await session.rows(query("clear_overdue"), asked)}
        await keep_notices(session, notices_.of_done(notices, asked=asked, done=marked))
    return sorted(marked)
