"""Endings without a call in hand (by age, by request, with the endpoint), and what waits too long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import json

from surehook.core.ids import floor
from surehook.core.instants import MINUTE_MS
from surehook.core.model import Delivery, Notice
from surehook.ledgers.sqlite.notices import keep_true_notices
from surehook.ledgers.sqlite.rows import ids_among, packed_ids, read_deliveries, run_batch
from surehook.ledgers.sqlite.session import Session
from surehook.ledgers.sqlite.statements import query
from surehook.ports.ledger import ParkedGroup

# An id is at most this far ahead of the clock (DESIGN section 12), so younger ids cannot be past an age.
AHEAD_MS = 5 * MINUTE_MS
# Rows one look walks over, about ten milliseconds' worth, before others get their turn.
WALK_ROWS = 10_000
_BEFORE_ALL = b""


def end(
    session: Session,
    deliveries: Sequence[Delivery],
    *,
    state: str,
    reason: str | None,
    notices: Sequence[Notice],
    now: int,
) -> list[bytes]:
    asked = list(dict.fromkeys(delivery.id for delivery in deliveries))
    once = {delivery.id: (delivery.attempt, delivery.born_at) for delivery in deliveries}
    as_read = [value for id, place in once.items() for value in (id, *place)]
    with session.writing():
        ended = ids_among(session, "unheld_among", as_read)
        _end(session, ended, state=state, reason=reason, now=now)
        keep_true_notices(session, notices, asked=asked, done=ended)
    return ended


def _end(session: Session, ids: list[bytes], *, state: str, reason: str | None, now: int) -> None:
    run_batch(session, "end_entries", list(ids), before=(now, state, reason, now))
    run_batch(session, "record_finished", list(ids))
    if state == "dead":
        run_batch(session, "dead_letters", list(ids))


class EndpointWalks:
    """Cancelling an endpoint's deliveries: a walk over all unfinished ones, some rows at a time.

    The walks' places are kept between calls; a walk that has come to the end begins anew, until a whole
    one finds nothing.
    """

    def __init__(self) -> None:
        self._places: dict[
            bytes, tuple[bytes, bool]
        ] = {}  # endpoint → walked up to here, found some on the way

    def step(self, session: Session, endpoint: bytes, *, reason: str, limit: int, now: int) -> int | None:
        """Cancel up to `limit` of the next rows: how many, 0 when none is left, None to be asked again."""
        place, found = self._places.get(endpoint, (_BEFORE_ALL, False))
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
        if is_end and not found:
            self._places.pop(endpoint, None)
            return 0
        self._places[endpoint] = (_BEFORE_ALL, False) if is_end else (place, found or bool(ids))
        return len(ids) or None


def parked_groups(session: Session) -> list[ParkedGroup]:
    return [ParkedGroup(endpoint, reason) for endpoint, reason in session.rows(query("parked_groups"))]


class AgedWalks:
    """Looking for parked rows that are past their age: a bounded walk in the order of ids.

    Old ids come first and are the likeliest. What made them younger than they look (a replay, a pause) is
    walked over, so a look keeps its place and the next one goes on from there.
    """

    def __init__(self) -> None:
        self._places: dict[tuple[bytes, str], bytes] = {}

    def look(
        self, session: Session, endpoint: bytes, reason: str, *, born_before: int, limit: int
    ) -> list[Delivery]:
        group = (endpoint, reason)
        ceiling = floor(born_before + AHEAD_MS)
        place = self._places.pop(group, _BEFORE_ALL)
        with session.snapshot():
            parameters = (born_before, endpoint, reason, place, ceiling, WALK_ROWS)
            walked: list[Any] = json.decode(session.value(query("parked_aged"), parameters))
            aged = [bytes.fromhex(id) for id, is_aged in walked if is_aged]
            if len(aged) > limit:
                aged = aged[:limit]  # the caller ends them and asks again
            elif len(walked) == WALK_ROWS:
                self._places[group] = bytes.fromhex(walked[-1][0])
            return read_deliveries(session, aged)


def overdue(session: Session, *, now: int, limit: int) -> list[Delivery]:
    with session.snapshot():
        return read_deliveries(session, packed_ids(session, query("overdue"), (now, limit)))


def mark_overdue(
    session: Session, deliveries: Sequence[Delivery], notices: Sequence[Notice], *, now: int
) -> list[bytes]:
    asked = [delivery.id for delivery in deliveries]
    with session.writing():
        marked = ids_among(session, "overdue_among", asked)
        run_batch(session, "clear_overdue", list(marked))
        keep_true_notices(session, notices, asked=asked, done=marked)
        return sorted(marked)
