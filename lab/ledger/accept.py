"""The way in: each item of a batch is written, answered as a repeat, or refused by itself."""

from __future__ import annotations

from collections.abc import Sequence

from lab.ledger.hooks import Hooked, writes
from lab.ledger.rows import KnownKey, take_in
from surehook.core.instants import DAY_MS
from surehook.core.model import Event
from surehook.ledgers import changes as notes
from surehook.ports.ledger import AcceptResult, Incoming, Taken

KEY_LIFE_MS = DAY_MS  # how long a repeat is recognised by its Idempotency-Key (docs/api.md)
_INT64 = range(-(1 << 63), 1 << 63)


class Accepting(Hooked):
    @writes
    def accept(
        self, batch: Sequence[Incoming], *, node: bytes, version: int, now: int, is_quick: bool = False
    ) -> AcceptResult:
        self.book.fence(node)
        newest = self.book.version
        if version < newest and self._is_concerned(batch, version):
            return AcceptResult(stale=True, taken=[], version=newest)
        return AcceptResult(
            stale=False, taken=[self._take(item, node, now) for item in batch], version=newest
        )

    def _is_concerned(self, batch: Sequence[Incoming], since: int) -> bool:
        endpoints = self.book.endpoints
        found = [
            (version, kind, key, endpoints[key].tenant if key in endpoints else None)
            for version, kind, key in self.book.changes
            if version > since
        ]
        return notes.concern(found, batch, since=since, newest=self.book.version)

    def _take(self, item: Incoming, node: bytes, now: int) -> Taken:
        event = item.event
        known = self._known(item, now)
        if known is not None:
            if known.digest != event.digest:
                return Taken(known.event, known.fan_out, fresh=False, problem="idempotency_conflict")
            return Taken(known.event, known.fan_out, fresh=known.event == event.id and self._is_ours(item))
        there = self.book.events.get(event.id)
        if there is not None:
            if there.tenant != event.tenant or there.digest != event.digest:
                return Taken(there.id, there.fan_out, fresh=False, problem="event_id_conflict")
            return Taken(there.id, there.fan_out, fresh=self._is_ours(item))
        if not _is_storable(item):
            return Taken(event.id, fan_out=0, fresh=False, problem="unstorable")
        self._write(item, node, now)
        return Taken(event.id, event.fan_out, fresh=True)

    def _known(self, item: Incoming, now: int) -> KnownKey | None:
        if item.event.idempotency_key is None:
            return None
        known = self.book.keys.get((item.event.tenant, item.event.idempotency_key))
        return known if known is not None and now - known.at < KEY_LIFE_MS else None

    def _is_ours(self, item: Incoming) -> bool:
        """Return True if an existing row was written by this very item, in a commit whose answer was lost.

        An id that we made can be nobody else's. One that the publisher chose may come twice, but the
        deliveries' ids are made new for each item.
        """
        if not item.given:
            return True
        return any(delivery.id in self.book.history for delivery in item.deliveries)

    def _write(self, item: Incoming, node: bytes, now: int) -> None:
        event = item.event
        self.book.add_event(event)
        for delivery in item.deliveries:
            self.book.add_row(take_in(delivery, node=node, now=now))
        if item.event.idempotency_key is not None:
            place = (event.tenant, item.event.idempotency_key)
            before = self.book.keys.get(place)
            if before is not None:
                self.book.key_ages.discard((before.at, *place))
            self.book.keys[place] = KnownKey(event.id, event.digest, event.fan_out, now)
            self.book.key_ages.add((now, *place))


def _is_storable(item: Incoming) -> bool:
    """Return True for values that every database accepts: valid UTF-8, integers of eight bytes."""
    event = item.event
    return _are_texts(event) and _are_numbers(event)


def _are_texts(event: Event) -> bool:
    texts = (
        event.tenant, event.type, event.schema_version, event.subject, event.workflow_version,
        event.correlation_id, event.causation_id, event.source, event.idempotency_key,
    )  # fmt: skip
    try:
        for text in texts:
            if text is not None:
                text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _are_numbers(event: Event) -> bool:
    return all(number is None or number in _INT64 for number in (event.sequence, event.occurred_at))
