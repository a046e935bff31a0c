"""What a message says: our own JSON, CloudEvents in both modes, and what nobody would take."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surehook.core import envelope, ids
from surehook.core.errors import Problem
from surehook.ingest.reading import BrokerMessage, IngestRules, item
from tests.budget import examples

EVENT_ID = ids.text(ids.EVENT, ids.uuid7(1_767_225_600_000, bytes(range(10))))
CLOUD = {"specversion": "1.0", "id": "a-1", "source": "/shop", "type": "order.paid", "data": {"n": 1.50}}
JSON = "application/json"


def read(body: Any, rules: IngestRules | None = None, **fields: Any) -> dict[str, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"message_id": "m-1", **fields}
    return json.loads(item(BrokerMessage(raw, **given), rules or IngestRules(), event_id=EVENT_ID))


def refused(body: Any, rules: IngestRules | None = None, **fields: Any) -> str:
    with pytest.raises(Problem) as caught:
        read(body, rules, **fields)
    return caught.value.code


def test_our_own_json_is_known_by_its_message_id() -> None:
    event = {"tenant": "acme", "type": "a.b", "data": {"x": 1}, "subject": "s"}
    assert read(event) == {"idempotency_key": "m-1", **event}


def test_the_bytes_of_data_stay_as_they_are() -> None:
    body = b'{"tenant":"acme","type":"a","data":{"n": 1.500,  "e":1E2}}'
    assert b'"data":{"n": 1.500,  "e":1E2}' in item(
        BrokerMessage(body, message_id="m"), IngestRules(), event_id=EVENT_ID
    )


def test_a_key_or_an_id_in_the_event_comes_before_the_message_id() -> None:
    own = {"tenant": "acme", "type": "a", "data": 1}
    assert read({**own, "idempotency_key": "mine"})["idempotency_key"] == "mine"
    assert "idempotency_key" not in read({**own, "id": EVENT_ID})


def test_the_tenant_of_the_command_fills_in_for_an_absent_one() -> None:
    assert read({"type": "a", "data": 1}, IngestRules(tenant="acme"))["tenant"] == "acme"
    assert read({"tenant": "beta", "type": "a", "data": 1}, IngestRules(tenant="acme"))["tenant"] == "beta"
    assert refused({"type": "a", "data": 1}) == "missing_field"


def test_what_tells_repeats_can_be_the_body_or_nothing() -> None:
    event = {"tenant": "acme", "type": "a", "data": 1}
    first, again = read(event, IngestRules(idempotency="body")), read(event, IngestRules(idempotency="body"))
    assert first == again
    assert first["idempotency_key"].startswith("sha256-")
    assert read(event, IngestRules(idempotency="none"))["id"] == EVENT_ID
    assert refused(event, message_id=None) == "no_message_id"


def test_a_message_id_that_no_key_can_be_is_hashed() -> None:
    key = read({"tenant": "acme", "type": "a", "data": 1}, message_id="with space ü")["idempotency_key"]
    assert key.startswith("sha256-")


def test_a_structured_cloud_event_becomes_an_event() -> None:
    given = {
        **CLOUD, "subject": "order-7", "time": "2026-01-01T10:00:00Z", "tenant": "acme", "sequence": "12",
        "correlationid": "c", "datacontenttype": "application/json", "otherextension": 5,
    }  # fmt: skip
    expected = {
        "idempotency_key": "/shop#a-1", "type": "order.paid", "source": "/shop", "subject": "order-7",
        "occurred_at": "2026-01-01T10:00:00Z", "tenant": "acme", "sequence": 12, "correlation_id": "c",
        "data": {"n": 1.5},
    }  # fmt: skip
    assert read(given, content_type="application/cloudevents+json; charset=utf-8") == expected
    assert read(given, content_type=JSON) == expected


@pytest.mark.parametrize("prefix", ["cloudEvents:", "cloudEvents_", "ce-"])
def test_a_binary_cloud_event_has_its_attributes_in_headers(prefix: str) -> None:
    attributes = {"specversion": "1.0", "id": "a-1", "source": "/shop", "type": "order.paid"}
    headers = {prefix + name: value for name, value in attributes.items()}
    event = read(b'{"n": 1.50}', IngestRules(tenant="acme"), headers=headers, content_type=JSON)
    assert event["data"] == {"n": 1.5}
    assert event["idempotency_key"] == "/shop#a-1"
    assert (
        refused(b"<x/>", IngestRules(tenant="acme"), headers=headers, content_type="text/xml")
        == "not_json_data"
    )


def test_a_cloud_event_with_an_event_id_of_ours_keeps_it() -> None:
    event = read({**CLOUD, "id": EVENT_ID, "tenant": "acme"})
    assert event["id"] == EVENT_ID
    assert "idempotency_key" not in event


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid_json"),
        (b"hello", "invalid_json"),
        (b"[1]", "invalid_json"),
        (b"\xff\xfe", "invalid_json"),
        (b"{}", "missing_field"),
        (b'{"tenant":"acme","type":"a"}', "missing_field"),
        (b'{"tenant":"acme","type":"a","data":1,"what":2}', "unknown_field"),
        (b'{"tenant":"acme","tenant":"b","type":"a","data":1}', "duplicate_key"),
        (b'{"tenant":"acme","type":"a","data":' + b"[" * 100 + b"]" * 100 + b"}", "too_deep"),
        (b'{"tenant":"acme","type":"a","data":"' + b"x" * 300_000 + b'"}', "body_too_large"),
        (json.dumps({**CLOUD, "specversion": "0.3"}).encode(), "unknown_specversion"),
        (json.dumps({**CLOUD, "id": ""}).encode(), "missing_field"),
        (json.dumps({**CLOUD, "sequence": "two"}).encode(), "wrong_type"),
        (b'{"specversion":"1.0","id":"\xff","source":"/shop","type":"a.b","data":1}', "invalid_json"),
        (
            b'{"specversion":"1.0","id":"1","source":"/shop","type":"a.b","sequence":1e999,"data":1}',
            "invalid_json",
        ),
        (
            b'{"specversion":"1.0","id":"1","source":"/shop","type":"a.b","tenant":' + b"9" * 5_000 + b"}",
            "invalid_json",
        ),
        (json.dumps({**CLOUD, "data_base64": "AA=="}).encode(), "not_json_data"),
        (json.dumps({**CLOUD, "datacontenttype": "text/plain"}).encode(), "not_json_data"),
    ],
)
def test_poison_is_refused_with_its_reason(body: bytes, code: str) -> None:
    assert refused(body, IngestRules() if b"tenant" in body else IngestRules(tenant=None)) == code


@pytest.mark.parametrize("value", [b"\xff", bytearray(b"\xff"), {"a": 1}, [1]])
def test_a_header_that_is_no_attribute_is_poison(value: Any) -> None:
    headers = {f"cloudEvents:{name}": text for name, text in CLOUD.items() if name != "data"}
    said = refused(
        b"{}", IngestRules("acme"), content_type=JSON, headers={**headers, "cloudEvents:subject": value}
    )
    assert said == "wrong_type"


@pytest.mark.parametrize("body", [b'1,"tenant":"other"', b"1}", b"", b"1 2"])
def test_the_body_of_a_cloud_event_is_one_value(body: bytes) -> None:
    headers = {f"cloudEvents:{name}": text for name, text in CLOUD.items() if name != "data"}
    assert refused(body, IngestRules("acme"), content_type=JSON, headers=headers) == "invalid_json"


def test_a_message_whose_properties_cannot_be_read_is_poison() -> None:
    assert (
        refused({"id": EVENT_ID, "tenant": "acme", "type": "a", "data": 1}, unread="ValueError: …")
        == "unreadable"
    )


def test_an_instant_of_amqp_is_the_events_time() -> None:
    headers = {f"cloudEvents:{name}": text for name, text in CLOUD.items() if name != "data"}
    headers["cloudEvents:time"] = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    event = read(b"{}", IngestRules("acme"), content_type=JSON, headers=headers)
    assert event["occurred_at"] == "2026-01-02T03:04:05+00:00"


def test_what_is_left_behind_need_not_be_understood() -> None:
    text = b'{"specversion":"1.0","id":"1","source":"/s","type":"a.b","big":' + b"9" * 5_000 + b',"data":1}'
    assert read(text, IngestRules("acme"))["type"] == "a.b"


NAMES = st.sampled_from(
    ["specversion", "id", "source", "type", "subject", "time", "sequence", "tenant", "datacontenttype"]
)
CELLS = st.recursive(  # what a field of AMQP can hold
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text() | st.binary() | st.decimals()
    | st.binary().map(bytearray) | st.datetimes(timezones=st.just(UTC)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
SCRAPS = st.sampled_from([
    b'{"specversion":"1.0","id":"1","source":"/s","type":"a.b","data":1}', b'{"tenant":"acme","type":"a","data":{"n":1}}',
])  # fmt: skip


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Any bytes, or something near to what is right."""
    if draw(st.booleans()):
        return draw(st.binary())
    body = bytearray(draw(SCRAPS))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(body)))
        body[at : at + draw(st.integers(0, 6))] = draw(
            st.binary(max_size=3) | st.sampled_from([b"1e999", b"9" * 40, b'"\\ud800"', b"null", b"[" * 99])
        )
    return bytes(body)


@settings(max_examples=examples(400))
@given(
    bodies(),
    st.none() | st.text() | st.sampled_from([JSON, "application/cloudevents+json"]),
    st.none() | st.text(),
    st.booleans(),
    st.dictionaries(NAMES, CELLS),
    st.sampled_from(["message-id", "body", "none"]),
)
def test_whatever_comes_is_an_item_or_poison(
    body: bytes,
    kind: str | None,
    message_id: str | None,
    is_cloud: bool,
    attributes: dict[str, Any],
    known_by: str,
) -> None:
    headers = {f"cloudEvents:{name}": value for name, value in attributes.items()}
    if is_cloud:
        headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "a.b", **headers}
    message = BrokerMessage(body, content_type=kind, message_id=message_id, headers=headers)
    try:
        text = item(message, IngestRules("acme", known_by), event_id=EVENT_ID)
    except Problem:
        return
    (judged,) = envelope.decode_batch(b"[" + text + b"]")
    assert not isinstance(judged, Problem)
