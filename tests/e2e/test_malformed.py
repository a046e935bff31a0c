"""Requests that nobody sane sends: whatever comes, the answer is a problem and never a fault of the server's."""

from __future__ import annotations

import json
import random
import socket
from typing import Any
from urllib.parse import quote

import pytest

from lab.bench.server import KEY
from tests.e2e.calling import Caller
from tests.e2e.shop import Shop

REQUESTS = 2_500  # malformed requests of one seed; about four seconds
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 1.5, 2**31, 2**63, 2**64, 10**400, "", " ", "\x00", "a" * 300, "\ud800", "é😀", "..", "*", "%", "null",
    "-1", [], [[]], [None], {}, {"": None}, {"a": {"a": {"a": []}}}, "2026-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z",
    "0000-01-01T00:00:00Z", "evt_7zzzzzzzzzzzzzzzzzzzzzzzzz", "ep_00000000000000000000000000", "http://127.0.0.1:99999/",
    "http://[::1", "https://\u2024/", "javascript:alert(1)", {"profile": None}, {"schedule": {"fixed": [1e308] * 3}},
    {"profile": "signing", "schedule": {"exponential": {"base": 1e-9, "factor": 1e9, "cap": 1e18, "retries": 10**6}}},
    ["*"] * 500, {"x" * 300: "y"}, {"x-a": "\x7f"}, -0.0, 1e-400,
]  # fmt: skip
BODIES: dict[str, dict[str, Any]] = {
    "POST /v1/tenants": {"id": "fuzz", "name": "x"},
    "PATCH /v1/tenants/{tenant}": {"name": "x"},
    "POST /v1/event-types": {"name": "fuzz.type", "description": "x", "schema": None, "policy": "standard"},
    "POST /v1/endpoints": {
        "tenant": "{tenant}", "url": "http://127.0.0.1:9999/x", "event_types": ["*"], "policy": {"profile": "standard"},
        "headers": {"x-a": "b"}, "order": "none", "description": "x",
    },
    "PATCH /v1/endpoints/{endpoint}": {"status": "paused", "policy": {"profile": "yousign"}, "url": "http://127.0.0.1:9999/x"},
    "POST /v1/endpoints/{endpoint}/rotate-secret": {"overlap_s": 60},
    "POST /v1/events": {
        "tenant": "{tenant}", "type": "a.b", "data": {}, "id": None, "subject": "s", "sequence": 1, "schema_version": "1",
        "workflow_version": "1", "correlation_id": "c", "causation_id": "c", "source": "s", "occurred_at": "2026-01-01T00:00:00Z",
    },
    "POST /v1/events/batch": {"0": {"tenant": "{tenant}", "type": "a.b", "data": {}, "idempotency_key": "k"}},
    "POST /v1/dead-letters/{delivery}/dismiss": {"note": "x"},
    "POST /v1/replays": {
        "filter": {"tenant": "{tenant}", "endpoint": "{endpoint}", "type": "a.b", "subject": "s", "state": "dead", "outcome": "refused",
                   "since": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}, "dry_run": True,
    },
    "POST /v1/policies/preview": {"policy": {"profile": "webhooks_uno", "schedule": {"wait_factor": {"factor": 100, "retries": 15}}}},
}  # fmt: skip
PATHS = [
    "/v1/tenants", "/v1/tenants/{odd}", "/v1/event-types", "/v1/event-types/{odd}", "/v1/endpoints", "/v1/endpoints/{odd}",
    "/v1/events", "/v1/events/{odd}", "/v1/events/{odd}/deliveries", "/v1/deliveries", "/v1/deliveries/{odd}",
    "/v1/deliveries/{odd}/attempts", "/v1/dead-letters", "/v1/replays/{odd}", "/v1/notices", "/v1/policies", "/v1/policies/{odd}",
    "/v1/breakers", "/v1/lanes", "/metrics", "/openapi.json", "/docs", "/problems/{odd}", "/healthz", "/readyz", "/{odd}",
]  # fmt: skip
QUERY = [
    "tenant",
    "type",
    "subject",
    "correlation_id",
    "since",
    "until",
    "endpoint",
    "state",
    "outcome",
    "kind",
    "status",
    "limit",
    "cursor",
    "odd",
]


def damaged(chance: random.Random, body: Any) -> Any:
    """A body with one or two of its values, at any depth, made odd, left out, or joined by a stranger."""
    if not isinstance(body, dict) or not body or chance.random() < 0.1:
        return chance.choice(ODD)
    made = dict(body)
    for _ in range(chance.randrange(1, 3)):
        key = chance.choice(list(made) or ["x"])
        match chance.randrange(5):
            case 0:
                made.pop(key, None)
            case 1:
                made[str(chance.choice(ODD))[:80]] = chance.choice(ODD)
            case 2 if isinstance(made.get(key), dict):
                made[key] = damaged(chance, made[key])
            case _:
                made[key] = chance.choice(ODD)
    return made


def written(chance: random.Random, body: Any) -> bytes:
    """JSON, most of the time."""
    text = json.dumps(body, ensure_ascii=chance.random() < 0.7).encode("utf-8", "surrogatepass")
    if chance.random() < 0.15 and text:
        at = chance.randrange(len(text))
        match chance.randrange(4):
            case 0:
                text = text[:at]
            case 1:
                text = text[:at] + chance.randbytes(3) + text[at:]
            case 2:
                text = text[:at] + text[at:] * 2
            case _:
                text = text.replace(b'"', b"'", 1)
    return text


def odd_text(chance: random.Random) -> str:
    return quote(
        str(chance.choice(ODD)).encode("utf-8", "surrogatepass")[:300],
        safe=chance.choice(["", "/", ":{}[]\"'"]),
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_no_request_makes_the_server_fail(shop: Shop, seed: int) -> None:
    chance = random.Random(seed)
    tenant = shop.tenant()
    endpoint = shop.endpoint(tenant, shop.receiver.spot().url, event_types=["never.*"])["id"]
    names = {"tenant": tenant, "endpoint": endpoint, "delivery": "dlv_01m7yzjtpaem8asaq2psvckn7k"}

    def named(text: str) -> str:
        for key, value in names.items():
            text = text.replace("{" + key + "}", value)
        return text

    for number in range(REQUESTS):
        headers = []
        if chance.random() < 0.7:
            call = chance.choice(list(BODIES))
            method, path = named(call).split()
            body = damaged(chance, json.loads(named(json.dumps(BODIES[call]))))
            if path.endswith("/batch") and isinstance(body, dict) and chance.random() < 0.9:
                body = list(body.values()) * chance.randrange(1, 4)
            raw: bytes | None = written(chance, body)
            if chance.random() < 0.1:
                headers = [chance.choice([
                    ("Idempotency-Key", "k" * chance.randrange(300)), ("Content-Encoding", "gzip"), ("Accept", "text/html"),
                    ("Expect", "100-continue"), ("Content-Type", "text/plain; charset=utf-16"),
                ])]  # fmt: skip
        else:
            method = chance.choice(["GET", "GET", "GET", "DELETE", "PUT", "HEAD", "OPTIONS", "TRACE", "POST"])
            path = chance.choice(PATHS).replace("{odd}", odd_text(chance) or "x")
            if chance.random() < 0.5:
                path += "?" + "&".join(
                    f"{chance.choice(QUERY)}={odd_text(chance)}" for _ in range(chance.randrange(1, 4))
                )
            raw = None
        answer = shop.api.ask(method, path, raw=raw, headers=headers)
        assert answer.status < 500 or answer.status == 503, (seed, number, method, path, raw, headers, answer)
        if answer.status >= 400 and method != "HEAD" and path.startswith("/v1"):
            assert answer.headers["content-type"] == "application/problem+json", (method, path, raw, answer)
            assert answer.json["status"] == answer.status and answer.json["code"] != "internal"


RAW = [
    b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
    b"POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
    b"POST /v1/events HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"POST /v1/events HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n0\r\n\r\n",
    b"GET /v1/tenants HTTP/1.1\r\nhost: x\r\nauthorization: Bearer \xff\xfe\r\n\r\n",
    b"GET /v1/tenants HTTP/1.1\r\n" + b"x: y\r\n" * 20_000 + b"\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]


@pytest.mark.parametrize("raw", RAW, ids=range(len(RAW)))
def test_bytes_that_are_no_request_are_refused_or_hung_up_on(shop: Shop, raw: bytes) -> None:
    with socket.create_connection(("127.0.0.1", shop.server.port), timeout=5) as connection:
        try:
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(65_536)
        except ConnectionError:
            answer = b""
    assert answer == b"" or answer.split()[1][:1] == b"4" or answer.split()[1] == b"505", answer[:200]
    assert shop.api.get("/healthz") == {"status": "ok"}


def test_a_caller_that_leaves_in_the_middle_of_a_body_harms_nobody(shop: Shop) -> None:
    head = (
        f"POST /v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-length: 100\r\n\r\n{{"
    )
    tenant = shop.tenant()
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", shop.server.port), timeout=5) as connection:
            connection.sendall(head.encode())
    other = Caller(shop.server.port, KEY)
    assert other.post("/v1/events", {"tenant": tenant, "type": "a", "data": 1}, 202)["deliveries"] == 0
    other.close()


def test_an_event_whose_caller_has_gone_is_still_sent(shop: Shop) -> None:
    tenant, spot = shop.tenant(), shop.receiver.spot()
    shop.endpoint(tenant, spot.url)
    body = json.dumps({"tenant": tenant, "type": "a", "data": 1}).encode()
    head = f"POST /v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-length: {len(body)}\r\n\r\n"
    for _ in range(10):
        with socket.create_connection(("127.0.0.1", shop.server.port), timeout=5) as connection:
            connection.sendall(head.encode() + body)
    seen = spot.wait(1)
    found = {row["id"] for row in shop.api.pages("/v1/events", tenant=tenant)}
    assert {each["webhook-id"] for each in seen} <= found
