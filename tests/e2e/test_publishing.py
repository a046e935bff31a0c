"""Events going in: one by one, in batches, twice, with ids and keys of their own, and with everything that is bad."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lab.bench.server import KEY
from tests.e2e.calling import Caller, check_problem, event_id
from tests.e2e.shapes import check
from tests.e2e.shop import Shop

FULL = {
    "type": "document.signed", "subject": "doc_1", "sequence": 3, "schema_version": "2", "workflow_version": "w7",
    "correlation_id": "c1", "causation_id": "c0", "source": "billing", "occurred_at": "2026-01-02T03:04:05.678Z",
}  # fmt: skip
DAY_S = 86_400


def test_an_event_is_answered_with_its_id_and_the_number_of_its_deliveries(shop: Shop) -> None:
    tenant = shop.tenant()
    shop.endpoint(tenant, shop.receiver.spot().url, event_types=["document.*"])
    shop.endpoint(tenant, shop.receiver.spot().url, event_types=["document.signed"])
    shop.endpoint(tenant, shop.receiver.spot().url, event_types=["invoice.*", "documents"])
    shop.endpoint(shop.tenant(), shop.receiver.spot().url)
    answer = shop.api.ask("POST", "/v1/events", {"tenant": tenant, **FULL, "data": {"a": 1}})
    assert answer.status == 202, answer
    assert list(answer.json) == ["id", "deliveries"]
    assert answer.json["id"].startswith("evt_") and answer.json["deliveries"] == 2
    event = check("event", shop.api.get(f"/v1/events/{answer.json['id']}"))
    assert {key: event[key] for key in FULL} == FULL
    assert event["tenant"] == tenant and event["deliveries"] == 2 and event["data"] == {"a": 1}
    assert len(shop.deliveries(event["id"])) == 2


def test_an_event_that_matches_no_endpoint_is_kept_as_well(shop: Shop) -> None:
    tenant = shop.tenant()
    answer = shop.api.post("/v1/events", {"tenant": tenant, "type": "a", "data": None}, 202)
    assert answer["deliveries"] == 0
    event = check("event", shop.api.get(f"/v1/events/{answer['id']}"))
    absent = [
        "subject",
        "sequence",
        "workflow_version",
        "correlation_id",
        "causation_id",
        "source",
        "occurred_at",
        "idempotency_key",
    ]
    assert (
        all(event[key] is None for key in absent) and event["schema_version"] == "1" and event["data"] is None
    )


def test_an_endpoint_that_was_answered_201_holds_for_the_next_event(shop: Shop) -> None:
    tenant = shop.tenant()
    other = Caller(shop.server.port, KEY)
    try:
        for number in range(1, 6):
            shop.endpoint(tenant, shop.receiver.spot().url)
            assert (
                other.post("/v1/events", {"tenant": tenant, "type": "a", "data": 1}, 202)["deliveries"]
                == number
            )
    finally:
        other.close()


# -- idempotency -------------------------------------------------------------------------------------------


def test_a_repeat_with_its_key_is_answered_the_same_for_ever(shop: Shop) -> None:
    tenant = shop.tenant()
    spot = shop.receiver.spot()
    shop.endpoint(tenant, spot.url)
    event = {"tenant": tenant, **FULL, "data": {"n": 1}}
    key = [("Idempotency-Key", "order-66-signed")]
    first = shop.api.ask("POST", "/v1/events", event, headers=key)
    shop.endpoint(tenant, spot.url)  # later endpoints change nothing about what was answered
    again = shop.api.ask("POST", "/v1/events", event, headers=key)
    assert first.status == again.status == 202 and first.body == again.body
    assert len(shop.deliveries(first.json["id"])) == 1
    assert shop.api.get(f"/v1/events/{first.json['id']}")["idempotency_key"] == "order-66-signed"
    spot.wait(1)
    for change in ({"data": {"n": 2}}, {"type": "document.sent"}, {"subject": None}, {"sequence": 4}):
        problem = shop.api.refused("POST", "/v1/events", {**event, **change}, headers=key)
        assert (problem["status"], problem["code"]) == (409, "idempotency_conflict")
    assert len(list(shop.api.pages("/v1/events", tenant=tenant))) == 1


def test_an_idempotency_key_belongs_to_its_tenant(shop: Shop) -> None:
    one, two = shop.tenant(), shop.tenant()
    key = [("Idempotency-Key", "the-same-key")]
    ids = {
        shop.api.post("/v1/events", {"tenant": tenant, "type": "a", "data": tenant}, 202, headers=key)["id"]
        for tenant in (one, two)
    }
    assert len(ids) == 2


@pytest.mark.parametrize("key", ["", " ", "x" * 256, "a\tb", "é"])
def test_a_key_that_cannot_be_kept_is_a_422(shop: Shop, key: str) -> None:
    body = {"tenant": shop.tenant(), "type": "a", "data": 1}
    problem = shop.api.refused("POST", "/v1/events", body, headers=[("Idempotency-Key", key)])
    assert problem["status"] == 422 and problem["field"].lower() == "idempotency-key"


def test_two_idempotency_keys_are_a_422(shop: Shop) -> None:
    body = {"tenant": shop.tenant(), "type": "a", "data": 1}
    problem = shop.api.refused(
        "POST", "/v1/events", body, headers=[("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    )
    assert problem["status"] == 422 and problem["field"].lower() == "idempotency-key"


def test_a_key_used_by_many_at_once_makes_one_event(shop: Shop) -> None:
    tenant = shop.tenant()
    shop.endpoint(tenant, shop.receiver.spot().url)
    event = {"tenant": tenant, "type": "a", "data": 1}

    def publish(_: int) -> tuple[int, bytes]:
        caller = Caller(shop.server.port, KEY)
        try:
            answer = caller.ask("POST", "/v1/events", event, headers=[("Idempotency-Key", "many-at-once")])
            return answer.status, answer.body
        finally:
            caller.close()

    with ThreadPoolExecutor(16) as pool:
        answers = set(pool.map(publish, range(64)))
    assert len(answers) == 1 and answers.pop()[0] == 202
    assert len(list(shop.api.pages("/v1/events", tenant=tenant))) == 1


def test_a_repeated_id_is_the_same_event_and_another_content_is_a_conflict(shop: Shop) -> None:
    tenant, other = shop.tenant(), shop.tenant()
    shop.endpoint(tenant, shop.receiver.spot().url)
    event = {"tenant": tenant, "id": event_id(time.time(), 1), **FULL, "data": {"n": 1}}
    first = shop.api.ask("POST", "/v1/events", event)
    assert first.status == 202 and first.json == {"id": event["id"], "deliveries": 1}
    assert shop.api.ask("POST", "/v1/events", event).body == first.body
    changes: list[dict[str, Any]] = [
        {"tenant": other}, {"type": "x"}, {"subject": "y"}, {"sequence": 4}, {"schema_version": "3"},
        {"workflow_version": "w8"}, {"correlation_id": "c2"}, {"causation_id": "c2"}, {"source": "s"},
        {"occurred_at": "2026-01-02T03:04:05.679Z"}, {"data": {"n": 2}},
    ]  # fmt: skip
    for change in changes:
        problem = shop.api.refused("POST", "/v1/events", {**event, **change})
        assert (problem["status"], problem["code"]) == (409, "event_id_conflict"), change
    assert len(shop.deliveries(event["id"])) == 1


def test_data_is_compared_byte_for_byte(shop: Shop) -> None:
    tenant, id_ = shop.tenant(), event_id(time.time(), 2)
    one = b'{"tenant":"%b","id":"%b","type":"a","data":{"a":1}}' % (tenant.encode(), id_.encode())
    order = b'{"data":{"a":1},"type":"a", "id":"%b" , "tenant":"%b"}' % (id_.encode(), tenant.encode())
    shop.api.post("/v1/events", raw=one, status=202)
    shop.api.post("/v1/events", raw=order, status=202)
    problem = shop.api.refused("POST", "/v1/events", raw=one.replace(b'{"a":1}', b'{"a": 1}'))
    assert problem["code"] == "event_id_conflict"


@pytest.mark.parametrize(
    ("offset_s", "good"),
    [(-29 * DAY_S, True), (4 * 60, True), (6 * 60, False), (-31 * DAY_S, False), (10**9, False)],
)
def test_an_id_is_taken_only_where_repeats_can_be_told(shop: Shop, offset_s: int, good: bool) -> None:
    body = {"tenant": shop.tenant(), "type": "a", "data": 1, "id": event_id(time.time() + offset_s, 5)}
    answer = shop.api.ask("POST", "/v1/events", body)
    if good:
        assert answer.status == 202 and answer.json["id"] == body["id"]
    else:
        assert answer.status == 422 and answer.json["field"] == "id", answer


@pytest.mark.parametrize("bad", ["evt_", "evt_x", "dlv_01m7yzjtpaem8asakf7ec54n7g", "01m7yzjtpaem8asakf7ec54n7g", "order-1", "",
                                 "evt_01m7yzjtpaem8asakf7ec54n7", "evt_zzzzzzzzzzzzzzzzzzzzzzzzzz", "EVT_01M7YZJTPAEM8ASAKF7EC54N7G", 7])  # fmt: skip
def test_what_is_no_event_id_is_a_422(shop: Shop, bad: Any) -> None:
    problem = shop.api.refused(
        "POST", "/v1/events", {"tenant": shop.tenant(), "type": "a", "data": 1, "id": bad}
    )
    assert problem["status"] == 422 and problem["field"] == "id"


# -- batches -----------------------------------------------------------------------------------------------


def test_a_batch_is_answered_item_by_item_in_order(shop: Shop) -> None:
    tenant = shop.tenant()
    shop.endpoint(tenant, shop.receiver.spot().url)
    good = {"tenant": tenant, "type": "a", "data": 1}
    id_ = event_id(time.time(), 9)
    batch: list[Any] = [
        good,
        {**good, "tenant": "nobody-there"},
        {**good, "idempotency_key": "k1"},
        {**good, "idempotency_key": "k1"},
        {**good, "idempotency_key": "k1", "data": 2},
        {**good, "surprise": 1},
        {**good, "id": id_},
        {**good, "id": id_, "data": 3},
        {**good, "subject": "half a pair: \ud800"},
        {"tenant": tenant, "type": "a"},
        7,
        good,
    ]
    answers = shop.api.post("/v1/events/batch", batch, 202)
    codes = [answer.get("code", "ok") for answer in answers]
    assert codes == [
        "ok", "unknown_tenant", "ok", "ok", "idempotency_conflict", "unknown_field", "ok", "event_id_conflict",
        "bad_text", "missing_field", "wrong_type", "ok",
    ]  # fmt: skip
    for answer, code in zip(answers, codes, strict=True):
        if code == "ok":
            assert list(answer) == ["id", "deliveries"] and answer["deliveries"] == 1
        else:
            check_problem(answer)
    assert answers[2] == answers[3] and answers[6]["id"] == id_
    assert (
        answers[1]["field"] == "tenant"
        and answers[5]["field"] == "surprise"
        and answers[9]["field"] == "data"
    )
    assert len(list(shop.api.pages("/v1/events", tenant=tenant))) == 4
    again = shop.api.post("/v1/events/batch", [batch[2], batch[6]], 202)
    assert again == [answers[2], answers[6]]


def test_a_batch_holds_a_thousand_events_and_not_one_more(shop: Shop) -> None:
    tenant = shop.tenant()
    event = {"tenant": tenant, "type": "a", "data": 1}
    answers = shop.api.post("/v1/events/batch", [event] * 1000, 202)
    assert len({answer["id"] for answer in answers}) == 1000
    assert shop.api.refused("POST", "/v1/events/batch", [event] * 1001)["status"] in (413, 422)
    assert shop.api.post("/v1/events/batch", [], 202) == []


def test_the_idempotency_header_is_refused_for_a_batch(shop: Shop) -> None:
    event = {"tenant": shop.tenant(), "type": "a", "data": 1}
    problem = shop.api.refused("POST", "/v1/events/batch", [event], headers=[("Idempotency-Key", "k")])
    assert problem["status"] == 422 and problem["field"].lower() == "idempotency-key"


@pytest.mark.parametrize("body", [b"{}", b"7", b'"x"', b"null", b"true"])
def test_a_batch_that_is_no_array_is_a_422(api: Caller, body: bytes) -> None:
    assert api.refused("POST", "/v1/events/batch", raw=body)["status"] == 422


# -- what is bad -------------------------------------------------------------------------------------------

BAD = [
    ({"tenant": "nobody-there"}, "tenant", "unknown_tenant"),
    ({"tenant": None}, "tenant", None),
    ({"tenant": 7}, "tenant", "wrong_type"),
    ({"type": "a..b"}, "type", "invalid_event_type"),
    ({"type": "a b"}, "type", "invalid_event_type"),
    ({"type": "*"}, "type", "invalid_event_type"),
    ({"type": ""}, "type", "invalid_event_type"),
    ({"type": "x" * 5000}, "type", "invalid_event_type"),
    ({"sequence": -1}, "sequence", "out_of_range"),
    ({"sequence": 1.5}, "sequence", "wrong_type"),
    ({"sequence": "1"}, "sequence", "wrong_type"),
    ({"sequence": True}, "sequence", "wrong_type"),
    ({"schema_version": 2}, "schema_version", "wrong_type"),
    ({"subject": "a\x00b"}, "subject", "bad_text"),
    ({"source": "\ud800"}, "source", "bad_text"),
    ({"correlation_id": "x\udfff"}, "correlation_id", "bad_text"),
    ({"causation_id": {}}, "causation_id", "wrong_type"),
    ({"subject": "x" * 10_000}, "subject", None),
    ({"occurred_at": "yesterday"}, "occurred_at", "bad_time"),
    ({"occurred_at": "2026-01-01"}, "occurred_at", "bad_time"),
    ({"occurred_at": "2026-01-01T00:00:00"}, "occurred_at", "bad_time"),
    ({"occurred_at": 1767225600}, "occurred_at", "wrong_type"),
    ({"data": "\x00"}, "data", "bad_text"),
    ({"data": {"a": "\ud800"}}, "data", "bad_text"),
    ({"data": {"\udead": 1}}, "data", "bad_text"),
    ({"endpoint": "ep_x"}, "endpoint", "unknown_field"),
    ({"idempotency_key": "k"}, "idempotency_key", "unknown_field"),
]


@pytest.mark.parametrize(("change", "field", "code"), BAD)
def test_an_event_that_cannot_be_kept_is_a_422_with_its_field(
    shop: Shop, change: dict[str, Any], field: str, code: str | None
) -> None:
    shop.api.ask("POST", "/v1/tenants", {"id": "shared-bad", "name": "x"})
    event = {"tenant": "shared-bad", "type": "a", "data": 1, **change}
    problem = shop.api.refused("POST", "/v1/events", event)
    assert problem["status"] == 422 and problem["field"] == field, problem
    if code is not None:
        assert problem["code"] == code, problem


BAD_TEXT: list[tuple[bytes, int, str | None]] = [
    (b"", 400, None),
    (b"{", 400, None),
    (b'{"tenant":"shared-bad","type":"a","data":1,}', 400, None),
    (b'{"tenant":"shared-bad","type":"a","data":nul}', 400, None),
    (b'{"tenant":"shared-bad","type":"a","data":NaN}', 400, None),
    (b'{"tenant":"shared-bad","type":"a","data":01}', 400, None),
    (b'{"tenant":"shared-bad","type":"a","data":"\xff"}', 400, None),
    (b'\xef\xbb\xbf{"tenant":"shared-bad","type":"a","data":1}', 400, None),
    (b"[]", 422, None),
    (b"null", 422, None),
    (b'{"tenant":"shared-bad","type":"a"}', 422, "data"),
    (b'{"tenant":"shared-bad","data":1}', 422, "type"),
    (b'{"tenant":"shared-bad","type":"a","type":"a","data":1}', 422, "type"),
    (b'{"tenant":"shared-bad","type":"a","data":1,"data":1}', 422, "data"),
    (b'{"tenant":"shared-bad","type":"a","t\\u0079pe":"b","data":1}', 422, "type"),
    (b'{"tenant":"shared-bad","type":"a","subject":null,"subject":"x","data":1}', 422, "subject"),
    (b'{"tenant":"shared-bad","type":"a","sequence":99999999999999999999,"data":1}', 422, "sequence"),
    (b'{"tenant":"shared-bad","type":"a","sequence":9223372036854775808,"data":1}', 422, "sequence"),
    (b'{"tenant":"shared-bad","type":"a","sequence":1e400,"data":1}', 422, "sequence"),
    (b'{"tenant":"shared-bad","type":"a","data":1e999}', 422, "data"),
    (b'{"tenant":"shared-bad","type":"a","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 422, None),
    (b'{"tenant":"shared-bad","type":"a\\u0000","data":1}', 422, "type"),
]


@pytest.mark.parametrize(("raw", "status", "field"), BAD_TEXT)
def test_bytes_that_are_no_event_are_refused_with_the_right_status(
    shop: Shop, raw: bytes, status: int, field: str | None
) -> None:
    shop.api.ask("POST", "/v1/tenants", {"id": "shared-bad", "name": "x"})
    problem = shop.api.refused("POST", "/v1/events", raw=raw)
    assert problem["status"] == status, problem
    if field is not None:
        assert problem["field"] == field, problem


def test_a_body_beyond_the_limit_is_a_413(api: Caller) -> None:
    raw = b'{"tenant":"shared-bad","type":"a","data":"' + b"x" * (2 << 20) + b'"}'
    assert api.refused("POST", "/v1/events", raw=raw)["status"] == 413


def test_the_largest_sequence_and_an_awkward_text_survive(shop: Shop) -> None:
    tenant = shop.tenant()
    id_ = shop.publish(tenant, sequence=2**63 - 1, subject='\u2028 😀 \x7f "\\/ é', data={"é": "😀\u2029"})
    event = shop.api.get(f"/v1/events/{id_}")
    assert event["sequence"] == 2**63 - 1 and event["subject"] == '\u2028 😀 \x7f "\\/ é'
    assert event["data"] == {"é": "😀\u2029"}
