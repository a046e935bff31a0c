"""Values for the suite: ids in order from a counter, everything else plain and overridable."""

from __future__ import annotations

from typing import Any

from surehook.core import ids
from surehook.core.model import Attempt, Delivery, Endpoint, Event, NodeRow, Notice, Secret, Settled, Tenant
from surehook.ports.ledger import Incoming

NOW = 1_767_225_600_000  # 2026-01-01T00:00:00Z
TENANT = "acme"


class Maker:
    """Makes values with ids that were never made before, later ones larger."""

    def __init__(self) -> None:
        self._count = 0

    def _chance(self) -> bytes:
        self._count += 1
        return self._count.to_bytes(10, "big")

    def id(self, at: int = NOW) -> bytes:
        # The counter goes where uuid7 keeps all bits, so that ids of one instant are in the order of making.
        self._count += 1
        return ids.uuid7(at, bytes(3) + self._count.to_bytes(7, "big"))

    def node(self) -> NodeRow:
        return NodeRow(id=self.id(), host="here", boot_id="boot", pid=4242, started_at=NOW)

    def tenant(self, name: str = TENANT) -> Tenant:
        return Tenant(id=name, name=name.title(), strict=False, created_at=NOW)

    def endpoint(self, **fields: Any) -> Endpoint:
        values: dict[str, Any] = {
            "id": self.id(),
            "tenant": TENANT,
            "url": "https://receiver.example/hook",
            "event_types": ("*",),
            "policy": None,
            "status": "active",
            "reason": None,
            "failure_count": 0,
            "order": "none",
            "headers": {},
            "description": None,
            "created_at": NOW,
            "updated_at": NOW,
        }
        return Endpoint(**{**values, **fields})

    def secret(self, endpoint: bytes, **fields: Any) -> Secret:
        values: dict[str, Any] = {
            "id": self.id(),
            "endpoint": endpoint,
            "kind": "v1",
            "material": bytes(range(32)),
            "created_at": NOW,
            "expires_at": None,
        }
        return Secret(**{**values, **fields})

    def event(self, *, at: int = NOW, **fields: Any) -> Event:
        values: dict[str, Any] = {
            "id": self.id(at),
            "tenant": TENANT,
            "type": "document.signed",
            "schema_version": "1",
            "subject": "doc_1",
            "sequence": 3,
            "workflow_version": None,
            "correlation_id": None,
            "causation_id": None,
            "source": None,
            "occurred_at": None,
            "accepted_at": at,
            "body": b'{"data":{"n":1}}',
            "digest": b"\x01" * 32,
            "fan_out": 0,
        }
        return Event(**{**values, **fields})

    def delivery(self, event: Event, endpoint: bytes, **fields: Any) -> Delivery:
        self._count += 1
        values: dict[str, Any] = {
            "id": ids.delivery_id(event.id, self._count.to_bytes(6, "big")),
            "event": event.id,
            "endpoint": endpoint,
            "tenant": event.tenant,
            "type": event.type,
            "lane": 0,
            "attempt": 1,
            "due_at": event.accepted_at,
            "born_at": event.accepted_at,
            "body": event.body,
        }
        return Delivery(**{**values, **fields})

    def incoming(
        self,
        *endpoints: bytes,
        key: str | None = None,
        given: bool = False,
        at: int = NOW,
        event: dict[str, Any] | None = None,
        **fields: Any,
    ) -> Incoming:
        """One event with a delivery to each endpoint; `event` and `fields` override theirs."""
        what = self.event(at=at, **{"fan_out": len(endpoints), "idempotency_key": key, **(event or {})})
        return Incoming(what, [self.delivery(what, one, **fields) for one in endpoints], given=given)

    def notice(self, kind: str = "delivery.dead", *, at: int = NOW, **fields: Any) -> Notice:
        values: dict[str, Any] = {"tenant": TENANT, "endpoint": None, "delivery": None, "detail": "so it is"}
        return Notice(id=self.id(at), at=at, kind=kind, **{**values, **fields})

    def attempt(self, delivery: Delivery, **fields: Any) -> Attempt:
        values: dict[str, Any] = {
            "delivery": delivery.id,
            "number": delivery.attempt,
            "kind": "attempt",
            "lane": delivery.lane,
            "started_at": delivery.due_at,
            "outcome": "delivered",
            "status": 200,
            "address": "203.0.113.7",
            "dns_us": 400,
            "connect_us": None,
            "tls_us": 9_000,
            "first_byte_us": 12_000,
            "total_us": 12_345,
            "headers": b"content-type: text/plain\r\n",
            "body": b"ok",
        }
        return Attempt(**{**values, **fields})

    def delivered(self, delivery: Delivery, **fields: Any) -> Settled:
        return self.ended(delivery, "delivered", outcome="delivered", status=200, **fields)

    def dead(self, delivery: Delivery, **fields: Any) -> Settled:
        return self.ended(delivery, "dead", outcome="refused", status=500, **fields)

    def ended(
        self, delivery: Delivery, end: str, *, notices: tuple[Notice, ...] = (), **entry: Any
    ) -> Settled:
        return Settled(delivery=delivery, entry=self.attempt(delivery, **entry), end=end, notices=notices)

    def failed(self, delivery: Delivery, *, due_at: int, **fields: Any) -> Settled:
        """A refused attempt with the next one at `due_at`, in the retry lane."""
        entry = self.attempt(delivery, outcome="refused", status=500, next_at=due_at)
        values: dict[str, Any] = {"lane": 1, "number": delivery.attempt + 1, "due_at": due_at}
        return Settled(delivery=delivery, entry=entry, **{**values, **fields})
