"""Examples for the document, and the tests hold every one of them against its shape.

Ids are real ones of an instant in 2026; the receivers are example domains.
"""

from __future__ import annotations

from surehook.core import hints
from surehook.core.json_value import JsonObject

_EVENT = "evt_06a3xq4zvw70f9m2k8c5d1h3ja"
_DELIVERY = "dlv_06a3xq4zvw70f9m2k8t7p0q4xb"
_REPLAYED = "dlv_06a3xq4zvw70f9m2k9a1c6r8ye"
_ENDPOINT = "ep_06a3xq1v2k74d8s0j5n9b3m6wc"
_KEY = "sec_06a3xq1v2k74d8s0j5n9b3m6wd"
_AT = "2026-03-02T09:30:00.000Z"

PATH = {
    "tenants": "acme",
    "event-types": "document.signed",
    "endpoints": _ENDPOINT,
    "events": _EVENT,
    "deliveries": _DELIVERY,
    "dead-letters": _DELIVERY,
    "replays": "rpl_06a3xq7c4t75v2e8r1y6u0i9pd",
    "policies": "standard",
}

HEADER_PARAMETERS: dict[str, list[JsonObject]] = {
    "publish": [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "1 to 255 visible ASCII characters, kept for at least 24 hours, per tenant.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255},
        }
    ]
}

BODIES: JsonObject = {
    "publish": {"tenant": "acme", "type": "document.signed", "subject": "doc_1", "data": {"document": "doc_1"}},
    "publish_batch": [
        {"tenant": "acme", "type": "document.sent", "data": {"document": "doc_1"}},
        {"tenant": "acme", "type": "document.signed", "data": {"document": "doc_1"}, "idempotency_key": "doc_1-signed"},
    ],
    "create_tenant": {"id": "acme", "name": "Acme"},
    "change_tenant": {"name": "Acme Ltd"},
    "create_event_type": {"name": "document.signed", "description": "Everybody has signed."},
    "change_event_type": {"policy": "signing"},
    "create_endpoint": {
        "tenant": "acme", "url": "https://hooks.example.com/surehook", "event_types": ["document.*"], "policy": "signing",
        "authentication": {"type": "basic", "username": "surehook", "password": "a-long-password"},
        "receipts": {"finalize_within_s": 86400},
    },
    "change_endpoint": {"status": "paused"},
    "rotate_secret": {"overlap_s": 86400},
    "probe_breaker": {"tenant": "acme", "url": "https://hooks.example.com/surehook"},
    "close_breaker": {"tenant": "acme", "url": "https://hooks.example.com/surehook"},
    "create_replay": {"filter": {"tenant": "acme", "state": "dead", "since": _AT}, "dry_run": True},
    "dismiss_dead_letter": {"note": "settled by telephone"},
    "take_receipts": {
        "receipts": [{"event": _EVENT, "delivery": _DELIVERY, "accepted_at": _AT, "finalized_at": _AT}]
    },
    "preview_policy": {"policy": {"profile": "yousign", "auto_retry": False}},
}  # fmt: skip

_POLICY = {
    "name": "standard", "profile": "standard", "timeouts": {"first": 2.0, "retry": 15.0, "connect": 5.0},
    "success": ["2xx"], "redirects": 0,
    "schedule": {"fixed": [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]}, "jitter": {"ratio": 0.2},
    "auto_retry": True, "max_age": 432000, "terminal": [410], "honour_retry_after": 3600, "obey_verdicts": True,
    "on_exhausted": "dead_letter", "auto_disable": None,
    "breaker": {"window": 600, "failure_ratio": 0.4, "calls": 20, "probe_after": 300}, "escalate_after": None,
    "adaptive": True, "headers": {"retry_count": None, "delivery_id": None},
}  # fmt: skip

ANSWERS: JsonObject = {
    "Accepted": {"id": _EVENT, "deliveries": 2},
    "Tenant": {"id": "acme", "name": "Acme", "strict": False, "created_at": _AT},
    "EventType": {
        "name": "document.signed", "description": "Everybody has signed.", "schema": None, "schema_version": "1",
        "policy": "signing", "created_at": _AT, "schemas": None,
    },
    "Endpoint": {
        "id": _ENDPOINT, "tenant": "acme", "url": "https://hooks.example.com/surehook",
        "event_types": ["document.*"], "policy": "signing", "status": "active", "reason": None, "failure_count": 0,
        "order": "none", "headers": {}, "description": None, "created_at": _AT, "updated_at": _AT, "secret": None,
        "method": "POST", "authentication": {"type": "basic", "username": "surehook", "password": None}, "tls": None,
        "receipts": {"finalize_within_s": 86400}, "breaker": None, "key_id": None,
    },
    "Secret": {"created_at": _AT, "signs_until": None, "key_id": _KEY},
    "Event": {
        "id": _EVENT, "tenant": "acme", "type": "document.signed", "subject": "doc_1", "sequence": 3,
        "schema_version": "1", "workflow_version": None, "correlation_id": None, "causation_id": None,
        "source": None, "occurred_at": _AT, "accepted_at": _AT, "deliveries": 2,
        "idempotency_key": "doc_1-signed", "data": {"document": "doc_1"},
    },
    "Delivery": {
        "id": _DELIVERY, "event": _EVENT, "endpoint": _ENDPOINT, "tenant": "acme", "type": "document.signed",
        "state": "retrying", "reason": None, "lane": "retry", "attempts": 2, "outcome": "timed_out",
        "unknown": True, "due_at": "2026-03-02T09:35:05.000Z", "finished_at": None, "replay_of": None,
        "replayed_by": None, "receipt": None, "dismissal": None, "subject": "doc_1", "correlation_id": None,
        "request_headers": None,
    },
    "Taken": {"taken": 1, "unknown": []},
    "Attempt": {
        "id": "att_06a3xq4zvw7b2n5v8c1x4z7m0d", "delivery": _DELIVERY, "number": 1, "kind": "attempt",
        "lane": "first", "started_at": _AT, "outcome": "timed_out", "unknown": True, "status": None,
        "error": "timeout", "hint": hints.BY_FAILURE["timeout"] + " Its policy waits 2s for a first call and 15s for a retry.",
        "address": "203.0.113.7",
        "timings_ms": {"dns": 0.4, "connect": 8.1, "tls": 9.0, "first_byte": None, "total": 2000.2},
        "response": {"headers": {}, "body": None, "truncated": False}, "next_at": "2026-03-02T09:30:07.000Z",
    },
    "Notice": {
        "id": "ntc_06a3xq9r1s7t3w6y9a2d5g8k1f", "at": _AT, "kind": "delivery.dead", "tenant": "acme",
        "endpoint": _ENDPOINT, "delivery": _REPLAYED, "detail": "refused: the receiver answered 500",
    },
    "Replay": {
        "id": PATH["replays"], "filter": {"tenant": "acme", "state": "dead"}, "dry_run": False, "state": "done",
        "matched": 12, "created": 12, "created_at": _AT, "finished_at": _AT,
    },
    "Breaker": {
        "tenant": "acme", "url": "https://hooks.example.com/surehook", "state": "open", "reason": "failures",
        "failures": 31, "calls": 40, "window_s": 600, "opened_at": _AT, "probe_at": "2026-03-02T09:35:00.000Z",
        "parked": 118,
    },
    "Lane": {
        "name": "first", "slots": 512, "in_flight": 12, "held": 20, "ready": 0, "oldest_due_s": 0.0, "scheduled": 40,
        "parked": 118,
    },
    "Health": {"status": "ok"},
    "PolicyDocument": _POLICY,
    "PreviewDocument": {
        "policy": _POLICY,
        "timeline": [
            {"attempt": 1, "lane": "first", "timeout_s": 2.0, "wait_s": 0.0, "after_s": 0.0, "jitter_s": [0.0, 0.0]},
            {"attempt": 2, "lane": "retry", "timeout_s": 15.0, "wait_s": 5.0, "after_s": 5.0, "jitter_s": [-1.0, 1.0]},
        ],
    },
    "Problem": {
        "type": "/problems/address_forbidden", "title": "The address may not be called", "status": 422,
        "code": "address_forbidden", "detail": "10.0.0.7 is not a public address", "field": "url",
        "hint": "SUREHOOK_ALLOW_NETWORKS lists networks that may be called",
    },
}  # fmt: skip

# An event of a batch that was not taken, beside others that were.
REFUSED_EVENT: JsonObject = {
    "type": "/problems/missing_field", "title": "A field is missing", "status": 422, "code": "missing_field",
    "detail": "type is missing", "field": "type",
}  # fmt: skip
