"""Endings without a call in hand (by age, by request, with the endpoint), and what waits too long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from surehook.core.ids import floor
from surehook.core.instants import MINUTE_MS
from surehook.core.model import Delivery, Notice
from surehook.ledgers.common import notices as notices_
from surehook.ledgers.endpoint_walks import EndpointPlaces
from surehook.ledgers.postgres.notices import keep_notices
from surehook.ledgers.postgres.rows import deliveries_of
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query
from surehook.ports.ledger import NONE_KEPT, AgedGroup, AgedPage, ParkedGroup

# An id is at most this far ahead of the clock (DESIGN section 12), so younger ids cannot be past an age.
AHEAD_MS = 5 * MINUTE_MS
# Rows one look walks over, about ten milliseconds' worth, before others get their turn.
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
    """`again`: a commit of this call was lost, so what was ended so at this instant was ended by it."""
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
    places: Sequence[tuple[int | None, int | None]],
    *,
    state: str,
    reason: str | None,
    now: int,
    request_headers: Mapping[bytes, bytes] = NONE_KEPT,
) -> set[bytes]:
    """End the rows of these ids whose attempt and birth are those of `places` (None: whatever they are)."""
    attempts, births = [place[0] for place in places], [place[1] for place in places]
    kept = [request_headers.get(id) for id in ids]
    return {
        row[0] for row in await session.rows(query("end"), ids, now, state, reason, attempts, births, kept)
    }


class EndpointWalks:
    """Cancelling an endpoint's deliveries: a walk over all unfinished ones, some rows at a time.

    The walks' places are kept between calls; a walk that has come to the end begins anew, until a whole
    one finds nothing.
    """

    def __init__(self) -> None:
        self.places = EndpointPlaces()

    async def step(
        self, session: Session, endpoint: bytes, *, reason: str, limit: int, now: int
    ) -> int | None:
        """Cancel up to `limit` of the next rows: how many, 0 when none is left, None to be asked again."""
        place, found, _ = self.places.of(endpoint, now)
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
            self.places.keep(endpoint, place, found=found or bool(ended), now=now)
            return len(ended) or None
        self.places.drop(endpoint)
        return len(ended) or (None if found else 0)


async def unheld_endpoints(session: Session, after: bytes) -> tuple[list[bytes], bytes | None]:
    found = await session.row(query("unheld_endpoints"), after, WALK_ROWS)
    assert found is not None
    return found["endpoints"], found["last"]


async def parked_groups(session: Session) -> list[ParkedGroup]:
    return [ParkedGroup(*row) for row in await session.rows(query("parked_groups"))]


async def parked_aged(session: Session, groups: Sequence[AgedGroup], *, limit: int) -> AgedPage:
    """A bounded walk through each group in the order of ids. Old ids come first and are the likeliest; what made
    them younger than they look (a replay, a pause) is walked over."""
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
