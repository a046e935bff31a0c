"""Deliveries that end without a call (by age, by request, with their endpoint), and overdue ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from surehook.core.ids import floor
from surehook.core.instants import MINUTE_MS
from surehook.core.model import Delivery, Notice
from surehook.ledgers.common import notices as notices_
from surehook.ledgers.endpoint_walks import EndpointCursors
from surehook.ledgers.postgres.notices import keep_notices
from surehook.ledgers.postgres.rows import deliveries_of
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query
from surehook.ports.ledger import NONE_KEPT, AgedGroup, AgedPage, ParkedGroup

# An id is at most this far ahead of the clock (docs/design.md), so ids beyond it cannot be of aged rows.
AHEAD_MS = 5 * MINUTE_MS
# Rows that one step reads, in some ten milliseconds, before other work goes on.
WALK_ROWS = 10_000


async def end(
    session: Session,
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
    session: Session,
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


class EndpointWalks:
    """Cancels an endpoint's deliveries: a walk over all unfinished ones, some rows at a time.

    The position of each walk is kept between calls. A walk that has come to the end starts over, until a whole one finds
    nothing.
    """

    def __init__(self) -> None:
        self.cursors = EndpointCursors()

    async def step(
        self, session: Session, endpoint: bytes, *, reason: str, limit: int, now: int
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
        if not is_end:
            self.cursors.keep(endpoint, place, found=found or bool(ended), now=now)
            return len(ended) or None
        self.cursors.drop(endpoint)
        return len(ended) or (None if found else 0)


async def unheld_endpoints(session: Session, after: bytes) -> tuple[list[bytes], bytes | None]:
    found = await session.row(query("unheld_endpoints"), after, WALK_ROWS)
    assert found is not None
    return found["endpoints"], found["last"]


async def parked_groups(session: Session) -> list[ParkedGroup]:
    return [ParkedGroup(*row) for row in await session.rows(query("parked_groups"))]


async def parked_aged(session: Session, groups: Sequence[AgedGroup], *, limit: int) -> AgedPage:
    """Find aged rows by a bounded walk through each group, in the order of ids.

    Old ids come first and are the likeliest. Rows that are younger than their ids (a replay, a pause) are skipped.
    """
    if not groups:
        return AgedPage([], [])
    part, depth = max(1, limit // len(groups)), max(1, WALK_ROWS // len(groups))
    found = await session.rows(
        query("parked_aged"),
        [group.endpoint for group in groups],
        [group.reason for group in groups],
        [group.after for group in groups],
        [floor(group.born_before + AHEAD_MS) for group in groups],
        [group.born_before for group in groups],
        depth,
        part + 1,
    )
    ids: list[bytes] = []
    goes_on = []
    for number, walked, last, aged in found:
        group = groups[number - 1]
        ids += aged[:part]
        if len(aged) > part:
            goes_on.append(replace(group, after=aged[part - 1]))
        elif walked == depth:
            goes_on.append(replace(group, after=last))
    rows = deliveries_of(await session.rows(query("deliveries_bare"), ids)) if ids else []
    return AgedPage(rows, goes_on)


async def overdue(session: Session, *, now: int, limit: int) -> list[Delivery]:
    return deliveries_of(await session.rows(query("overdue"), now, limit))


async def mark_overdue(
    session: Session, deliveries: Sequence[Delivery], notices: Sequence[Notice], *, now: int
) -> list[bytes]:
    asked = sorted({delivery.id for delivery in deliveries})
    async with session.writing():
        marked = {row[0] for row in await session.rows(query("clear_overdue"), asked)}
        await keep_notices(session, notices_.of_done(notices, asked=asked, done=marked))
    return sorted(marked)
