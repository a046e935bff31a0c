"""A stand-in for the server with the shapes of the API, as much of it as commands need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.client.stand_in import Heard, StandIn, answer

KEY = "a-key-of-sixteen-chars"
EVENT, DELIVERY, ENDPOINT = "evt_" + "0" * 26, "dlv_" + "1" * 26, "ep_" + "2" * 26
T0 = "2026-11-21T10:46:00.000Z"


def event(**changes: Any) -> dict[str, Any]:
    return {
        "id": EVENT, "tenant": "acme", "type": "document.signed", "subject": "doc_1", "sequence": 3,
        "schema_version": "1", "workflow_version": None, "correlation_id": None, "causation_id": None, "source": None,
        "occurred_at": None, "accepted_at": T0, "deliveries": 1, "idempotency_key": None, "data": {"n": 1},
    } | changes  # fmt: skip


def delivery(**changes: Any) -> dict[str, Any]:
    return {
        "id": DELIVERY, "event": EVENT, "endpoint": ENDPOINT, "tenant": "acme", "type": "document.signed",
        "state": "retrying", "reason": None, "lane": "retry", "attempts": 1, "outcome": "timed_out", "unknown": True,
        "due_at": "2126-11-21T10:46:00.000Z", "finished_at": None, "replay_of": None, "replayed_by": None,
        "receipt": None, "dismissal": None, "subject": "doc_1", "correlation_id": None, "request_headers": None,
    } | changes  # fmt: skip


def attempt(**changes: Any) -> dict[str, Any]:
    return {
        "id": "att_1", "delivery": DELIVERY, "number": 1, "kind": "attempt", "lane": "first", "started_at": T0,
        "outcome": "timed_out", "unknown": True, "status": None, "error": "timeout", "hint": "It took longer than 1 s.",
        "address": "203.0.113.7", "timings_ms": {"dns": 0.4, "connect": 8.1, "tls": None, "first_byte": None, "total": 1000.2},
        "response": {"headers": {}, "body": None, "truncated": False}, "next_at": "2026-11-21T10:46:05.000Z",
    } | changes  # fmt: skip


def endpoint(**changes: Any) -> dict[str, Any]:
    return {
        "id": ENDPOINT, "tenant": "acme", "url": "https://acme.example/hooks", "event_types": ["*"], "policy": None,
        "status": "active", "reason": None, "failure_count": 0, "order": "none", "headers": {}, "description": None,
        "created_at": T0, "updated_at": T0, "secret": None, "method": "POST", "authentication": None, "tls": None,
        "receipts": None, "breaker": None, "key_id": None,
    } | changes  # fmt: skip


class FakeApi:
    """Answers from `values` by `METHOD /path`; a list value is paged, anything unknown is a 404 problem."""

    def __init__(self, server: StandIn, values: dict[str, Any]) -> None:
        self.url = server.url
        self.env = {"SUREHOOK_URL": server.url, "SUREHOOK_API_KEY": KEY}
        self.values = values
        self._server = server

    @property
    def asked(self) -> list[str]:
        """Every request as `METHOD /path?query`."""
        return [f"{heard.method} {heard.target}" for heard in self._server.heard]

    @property
    def last(self) -> Heard:
        return self._server.heard[-1]


@contextmanager
def fake_api(**values: Any) -> Iterator[FakeApi]:
    """`fake_api(**{"GET /v1/lanes": {...}})`"""
    api: FakeApi

    def respond(heard: Heard) -> bytes:
        target = urlsplit(heard.target)
        if heard.headers.get("authorization") != f"Bearer {KEY}" and target.path != "/readyz":
            return answer(
                401, {"code": "unauthorized", "detail": "The key is not known.", "field": None, "hint": None}
            )
        value = api.values.get(f"{heard.method} {target.path}")
        if value is None:
            return answer(
                404, {"code": "not_found", "detail": "There is no such thing.", "field": None, "hint": None}
            )
        if isinstance(value, bytes):
            return value
        if isinstance(value, list):
            asked = dict(parse_qsl(target.query))
            start, size = int(asked.get("cursor", 0)), int(asked["limit"])
            more = start + size < len(value)
            return answer(
                200, {"data": value[start : start + size], "next": str(start + size) if more else None}
            )
        return answer(200, value)

    server = StandIn(respond)
    api = FakeApi(server, values)
    try:
        yield api
    finally:
        server.close()
