"""The answers of the contract: their keys in order, and the closed lists."""

from __future__ import annotations

import re
from typing import Any

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

KEYS = {
    "endpoint": "id tenant url event_types policy status reason failure_count order headers description created_at "
    "updated_at secret method authentication tls receipts breaker key_id",
    "event": "id tenant type subject sequence schema_version workflow_version correlation_id causation_id source "
    "occurred_at accepted_at deliveries idempotency_key data",
    "delivery": "id event endpoint tenant type state reason lane attempts outcome unknown due_at finished_at replay_of "
    "replayed_by receipt dismissal subject correlation_id request_headers",
    "attempt": "id delivery number kind lane started_at outcome unknown status error hint address timings_ms response "
    "next_at",
    "policy": "name profile timeouts success redirects schedule jitter auto_retry max_age terminal honour_retry_after "
    "obey_verdicts on_exhausted auto_disable breaker escalate_after adaptive headers",
    "breaker": "tenant url state reason failures calls window_s opened_at probe_at parked",
    "lane": "name slots in_flight held ready oldest_due_s scheduled parked",
}

CLOSED = {
    ("delivery", "state"): "scheduled sending retrying parked delivered dead dropped cancelled",
    ("delivery", "reason"): "breaker key paused inactive failure order share deleted request",
    ("delivery", "lane"): "first retry",
    (
        "delivery",
        "outcome",
    ): "delivered refused throttled gone rejected redirected timed_out broken unreachable garbled blocked",
    ("attempt", "kind"): "attempt interrupted ended",
    ("attempt", "lane"): "first retry",
    (
        "attempt",
        "outcome",
    ): "delivered refused throttled gone rejected redirected timed_out broken unreachable garbled blocked",
    ("endpoint", "status"): "active paused inactive failure",
    ("breaker", "state"): "closed open half_open",
    ("lane", "name"): "first retry",
}

PREFIXES = {"endpoint": "ep_", "event": "evt_", "delivery": "dlv_", "attempt": "att_"}


def check(kind: str, value: Any) -> Any:
    """`value`, if it is an answer of this kind word for word."""
    assert list(value) == KEYS[kind].split(), (kind, list(value))
    for (of, key), words in CLOSED.items():
        if of == kind and not (value[key] is None and key in ("reason", "outcome")):
            assert value[key] in words.split(), (kind, key, value[key])
    for key, text in value.items():
        if key.endswith("_at") and text is not None:
            assert INSTANT.fullmatch(text), (kind, key, text)
    if kind in PREFIXES:
        assert value["id"].startswith(PREFIXES[kind]), value["id"]
    if kind == "attempt":
        assert list(value["timings_ms"]) == ["dns", "connect", "tls", "first_byte", "total"]
        assert list(value["response"]) == ["headers", "body", "truncated"]
    return value
