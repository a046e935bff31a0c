"""Deliveries that end without a call (by age, by request, with their endpoint), and overdue ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from surehook.core.model import Delivery, Notice
from surehook.ledgers.common import notices as notices_
from surehook.ledgers.common.aged import WALK_ROWS, AgedWalk, ceiling
from surehook.ledgers.endpoint_walks import EndpointCursors
from surehook.ledgers.sqlite.notices import keep_notices
from surehook.ledgers.sqlite.rows import ids_among, packed_ids, read_deliveries, run_batch, unpacked_ids
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.statements import query
from surehook.ports.ledger import NONE_KEPT, AgedGroup, AgedPage, ParkedGroup

# The same for a look at all endpoints, which is not urgent: a millisecond or two.
STEP_ROWS = 2_000


def end(
    session: SqliteSession,
    deliveries: Sequence[Delivery],
    *,
    state: str,
    reason: str | None,
    notices: Sequence[Notice],
    now: int,
    request_headers: Mapping[bytes, bytes] = NONE_KEPT,
) -> list[bytes]:
    asked = list(dict.fromkeys(delivery.id for delivery in deliveries))
    once = {delivery.id: (delivery.attempt, delivery.born_at) for delivery in deliveries}
    as_read = [value for id, place in once.items() for value in (id, *place)]
    with session.writing():
        ended = ids_among(session, "unheld_among", as_read)
        _end(session, ended, state=state, reason=reason, now=now, request_headers=request_headers)
        keep_notices(session, notices_.of_done(notices, asked=asked, done=ended))
    return ended


def _end(
    session: SqliteSession,
    ids: list[bytes],
    *,
    state: str,
    reason: str | None,
    now: int,
    request_headers: Mapping[bytes, bytes] = NONE_KEPT,
) -> None:
    run_batch(session, "end_entries", list(ids), before=(now, state, reason, now))
    run_batch(session, "record_finished", list(ids))
    if state == "dead":
        letters = [value for id in ids for value in (id, request_headers.get(id))]
        run_batch(session, "dead_letters", letters)


class SqliteEndpointWalks:
    """Cancels an endpoint's deliveries: a walk over all unfinished ones, some rows at a time.

    The position of each walk is kept between calls. A walk that has come to the end starts over, until a whole one finds
    nothing.
    """

    def __init__(self) -> None:
        self.cursors = EndpointCursors()

    def step(
        self, session: SqliteSession, endpoint: bytes, *, reason: str, limit: int, now: int
    ) -> int | None:
        """Cancel up to `limit` of the next rows, and return how many; 0: none is left; None: call again."""
        place, found, _ = self.cursors.of(endpoint, now)
        with session.writing():
            rows = (place, WALK_ROWS)
            ids = packed_ids(session, query("unheld_of_endpoint"), (*rows, endpoint))
            if len(ids) > limit:
                ids = ids[:limit]
                place, is_end = ids[-1], False
            else:
                last = session.value(query("walk_end"), rows)
                place, is_end = last or place, last is None
            _end(session, ids, state="cancelled", reason=reason, now=now)
        return self.cursors.stepped(endpoint, None if is_end else place, ended=len(ids), found=found, now=now)


def unheld_endpoints(session: SqliteSession, after: bytes) -> tuple[set[bytes], bytes | None]:
    rows = (after, STEP_ROWS)
    found = {row[0] for row in session.rows(query("unheld_endpoints"), rows)}
    return found, session.value(query("walk_end"), rows)


def parked_groups(session: SqliteSession) -> list[ParkedGroup]:
    return [ParkedGroup(*row) for row in session.rows(query("parked_groups"))]


def parked_aged(session: SqliteSession, groups: Sequence[AgedGroup], *, limit: int) -> AgedPage:
    if not groups:
        return AgedPage([], [])
    walk = AgedWalk(groups, limit)
    with session.snapshot():
        for group in groups:
            bounds = (group.born_before, group.endpoint, group.reason, group.after, ceiling(group))
            asked = (*bounds, walk.depth, walk.part + 1)
            ((walked, last, packed),) = session.rows(query("parked_aged"), asked)
            walk.found(group, unpacked_ids(packed), walked=walked, last=last)
        return AgedPage(read_deliveries(session, walk.ids, statement="deliveries_bare"), walk.rest)


def overdue(session: SqliteSession, *, now: int, limit: int) -> list[Delivery]:
    with session.snapshot():
        return read_deliveries(session, packed_ids(session, query("overdue"), (now, limit)))


def mark_overdue(
    session: SqliteSession, deliveries: Sequence[Delivery], notices: Sequence[Notice], *, now: int
) -> list[bytes]:
    asked = [delivery.id for delivery in deliveries]
    with session.writing():
        marked = ids_among(session, "overdue_among", asked)
        run_batch(session, "clear_overdue", list(marked))
        keep_notices(session, notices_.of_done(notices, asked=asked, done=marked))
        return sorted(marked)
