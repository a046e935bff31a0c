"""What a body may be: read strictly, refused with a code and the field at fault, never a 500."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest

from surehook.api import bodies
from surehook.api.policies import Preview
from tests.api.house import House

GOOD_ENDPOINT = {"tenant": "acme", "url": "https://hooks.example.com/a", "event_types": ["*"]}

# body as bytes, status, code, field
RAW: list[tuple[bytes, int, str, str | None]] = [
    (b"", 400, "invalid_json", None),
    (b"   ", 400, "invalid_json", None),
    (b"{", 400, "invalid_json", None),
    (b"tenant=acme", 400, "invalid_json", None),
    (b"{'tenant': 1}", 400, "invalid_json", None),
    (b'{"tenant": "a\xff"}', 400, "invalid_json", None),
    (b'\xef\xbb\xbf{"tenant": "acme"}', 400, "invalid_json", None),
    (b"[]", 422, "wrong_type", None),
    (b"null", 422, "wrong_type", None),
    (b'"text"', 422, "wrong_type", None),
    (b"{}", 422, "missing_field", "tenant"),
    (b'{"tenant": "a", "tenant": "b"}', 422, "duplicate_key", "tenant"),
    (b'{"tenant": "a", "t\\u0065nant": "b"}', 422, "duplicate_key", "tenant"),
    (b'{"headers": {"a": "1", "a": "2"}}', 422, "duplicate_key", "a"),
    (b'{"tenant": NaN}', 422, "number_out_of_range", None),
    (b'{"tenant": -Infinity}', 422, "number_out_of_range", None),
    (b'{"tenant": 1e999}', 422, "number_out_of_range", None),
    (b'{"tenant": ' + b"9" * 5000 + b"}", 422, "number_out_of_range", None),
    (b'{"tenant": "a\\u0000"}', 422, "bad_text", None),
    (b'{"tenant": "\\ud800"}', 422, "bad_text", None),
    (b'{"tenant": ' + b"[" * 65 + b"]" * 65 + b"}", 422, "too_deep", None),
    (b'{"tenant": ' + b'{"a":' * 60_000 + b"1" + b"}" * 60_000 + b"}", 413, "body_too_large", None),
    (b"[" * 30_000, 422, "too_deep", None),
]


@pytest.mark.parametrize(("body", "status", "code", "field"), RAW, ids=lambda value: str(value)[:24])
def test_a_bad_body_is_a_problem(
    house: House, body: bytes, status: int, code: str, field: str | None
) -> None:
    response = house.call("POST", "/v1/endpoints", content=body)
    problem = response.json()

    assert (response.status_code, problem["code"], problem["field"]) == (status, code, field)
    assert response.headers["content-type"] == "application/problem+json"
    assert problem["detail"]


# path, body, code, field
VALUES: list[tuple[str, Any, str, str | None]] = [
    ("/v1/endpoints", {**GOOD_ENDPOINT, "descripton": "x"}, "unknown_field", "descripton"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "secret": "whsec_x"}, "unknown_field", "secret"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "tenant": 1}, "wrong_type", "tenant"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "tenant": None}, "wrong_type", "tenant"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "tenant": ""}, "out_of_range", "tenant"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "tenant": "nobody"}, "unknown_tenant", "tenant"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "url": True}, "wrong_type", "url"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "url": ""}, "out_of_range", "url"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "url": "https://h/" + "a" * 2048}, "out_of_range", "url"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "url": "ftp://example.com"}, "url_scheme", "url"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "event_types": "*"}, "wrong_type", "event_types"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "event_types": []}, "out_of_range", "event_types"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "event_types": [1]}, "wrong_type", "event_types.0"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "event_types": ["*", "a b"]}, "invalid_filter", "event_types.1"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "event_types": ["a..b"]}, "invalid_filter", "event_types.0"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "event_types": ["a" * 10_240]}, "invalid_filter", "event_types.0"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "event_types": ["*"] * 101}, "out_of_range", "event_types"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "order": "subject"}, "order_not_available", "order"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "order": 1}, "wrong_type", "order"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "policy": "nobody's"}, "unknown_policy", "policy"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "policy": 3}, "wrong_type", "policy"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "policy": {"profile": "none"}}, "unknown_policy", "policy.profile"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "policy": {"schedule": {"fixed": [5, 5, -1]}}}, "invalid_policy", "policy.schedule.fixed.2"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "policy": {"schedule": {"fixed": [5] * 101}}}, "invalid_policy", "policy.schedule.fixed"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "policy": {"max_age": 315_360_000}}, "invalid_policy", "policy.max_age"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "headers": {"a:b": "x"}}, "invalid_header", "headers.a:b"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "headers": {"a b": "x"}}, "invalid_header", "headers.a b"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "headers": {"x-a": "1\r\nx-b: 2"}}, "invalid_header", "headers.x-a"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "headers": {"Host": "metadata"}}, "invalid_header", "headers.Host"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "headers": {"Content-Length": "1"}}, "invalid_header", "headers.Content-Length"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "headers": {"connection": "close"}}, "invalid_header", "headers.connection"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "headers": {"proxy-authorization": "x"}}, "invalid_header", "headers.proxy-authorization"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "headers": {"webhook-signature": "x"}}, "invalid_header", "headers.webhook-signature"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "headers": {f"x-{n}": "1" for n in range(21)}}, "out_of_range", "headers"),
    ("/v1/endpoints", {**GOOD_ENDPOINT, "description": "d" * 1025}, "out_of_range", "description"),
    ("/v1/tenants", {"name": "x", "id": "Acme"}, "out_of_range", "id"),
    ("/v1/tenants", {"name": "x", "id": "acme\n"}, "out_of_range", "id"),
    ("/v1/tenants", {"name": "x", "id": "a" * 65}, "out_of_range", "id"),
    ("/v1/tenants", {"name": "x", "id": "../etc"}, "out_of_range", "id"),
    ("/v1/tenants", {"name": "x", "id": ""}, "out_of_range", "id"),
    ("/v1/tenants", {"name": "n" * 257}, "out_of_range", "name"),
    ("/v1/tenants", {"name": "x", "strict": 1}, "wrong_type", "strict"),
    ("/v1/tenants", {"name": "x", "strict": "true"}, "wrong_type", "strict"),
    ("/v1/event-types", {"name": "with space"}, "invalid_event_type", "name"),
    ("/v1/event-types", {"name": "a..b"}, "invalid_event_type", "name"),
    ("/v1/event-types", {"name": "a.*"}, "invalid_event_type", "name"),
    ("/v1/event-types", {"name": "a" * 10_240}, "out_of_range", "name"),
    ("/v1/event-types", {"name": "a", "schema": "x"}, "wrong_type", "schema"),
    ("/v1/event-types", {"name": "a", "policy": {"retries": 1}}, "invalid_policy", "policy.retries"),
    ("/v1/policies/preview", {}, "missing_field", "policy"),
    ("/v1/policies/preview", {"policy": None}, "wrong_type", "policy"),
    ("/v1/policies/preview", {"policy": {"timeouts": {"first": 0}}}, "invalid_policy", "policy.timeouts.first"),
    ("/v1/replays", {"filter": {}}, "empty_filter", "filter"),
    ("/v1/replays", {"filter": {"tenant": "a"}, "rate": 10}, "not_available", "rate"),
    ("/v1/replays", {"filter": {"endpont": "x"}}, "unknown_field", "filter.endpont"),
    ("/v1/replays", {"filter": {"endpoint": "ep_1"}}, "bad_id", "filter.endpoint"),
    ("/v1/replays", {"filter": {"state": "retrying"}}, "out_of_range", "filter.state"),
    ("/v1/replays", {"filter": {"outcome": "odd"}}, "out_of_range", "filter.outcome"),
    ("/v1/replays", {"filter": {"since": "yesterday"}}, "bad_time", "filter.since"),
    ("/v1/replays", {"filter": {"type": "a b"}}, "invalid_event_type", "filter.type"),
    ("/v1/replays", {"filter": {"tenant": "a"}, "dry_run": "yes"}, "wrong_type", "dry_run"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "code", "field"), VALUES, ids=lambda value: str(value)[:32])
def test_a_bad_value_is_a_422_with_its_field(
    house: House, path: str, body: Any, code: str, field: str | None
) -> None:
    house.tenant()
    response = house.call("POST", path, json=body)
    problem = response.json()

    assert (response.status_code, problem["code"], problem["field"]) == (422, code, field), problem


def test_a_misspelt_field_is_told_what_was_meant(house: House) -> None:
    hints = [
        house.call("POST", path, json=body).json()["hint"]
        for path, body in (
            ("/v1/endpoints", {**GOOD_ENDPOINT, "event_type": ["*"]}),
            ("/v1/replays", {"filter": {"endpont": "x"}}),
            ("/v1/tenants", {"name": "x", "zzz": 1}),
        )
    ]

    assert hints == ["did you mean event_types?", "did you mean endpoint?", "known: name, id, strict"]


@pytest.mark.parametrize("size", [64 * 1024, 64 * 1024 + 1])
@pytest.mark.parametrize("announced", [True, False])
def test_the_size_of_a_body_is_bounded_announced_or_not(house: House, size: int, announced: bool) -> None:
    body = json.dumps({"name": "x", "id": "big"}).encode().ljust(size)

    async def chunks() -> Any:
        for at in range(0, len(body), 1000):
            yield body[at : at + 1000]

    response = house.call("POST", "/v1/tenants", content=body if announced else chunks())

    assert response.status_code == (201 if size <= 64 * 1024 else 413)


def test_a_schema_may_be_larger_than_other_bodies(house: House) -> None:
    fits = {"name": "big", "schema": {"description": "d" * 200_000}}
    large = {"name": "larger", "schema": {"description": "d" * 256 * 1024}}

    assert house.call("POST", "/v1/event-types", json=fits).status_code == 201
    assert house.call("POST", "/v1/event-types", json=large).status_code == 413


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate, gzip", "nonsense"])
def test_a_compressed_body_is_refused(house: House, encoding: str) -> None:
    response = house.call("POST", "/v1/tenants", content=b"{}", headers={"content-encoding": encoding})

    assert (response.status_code, response.json()["code"]) == (415, "unsupported_encoding")


@pytest.mark.parametrize(
    "content_type", ["application/json", "text/plain", "application/x-www-form-urlencoded", ""]
)
def test_the_content_type_is_not_asked_for(house: House, content_type: str) -> None:
    response = house.call(
        "POST", "/v1/tenants", content=b'{"name":"x"}', headers={"content-type": content_type}
    )

    assert response.status_code == 201


def test_a_body_of_lists_in_lists_does_not_wait_for_others_once_it_is_read() -> None:
    """What waits for its next step is bytes: thousands of lists of each body would be the garbage collector's to walk."""
    body = b'{"policy":{"x":[%b1]}}' % (b"[[[[]]]]," * 6_000)
    steps, held = bodies.decode(body, Preview), list[int]()
    gc.collect()
    before = len(gc.get_objects())
    for _ in steps:
        held.append(len(gc.get_objects()) - before)
    assert len(held) > 2 and max(held) < 1_000
