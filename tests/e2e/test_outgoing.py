"""The request a receiver gets, byte for byte, and the signatures on it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time

import pytest
import standardwebhooks

from tests.e2e.receivers import Seen
from tests.e2e.shop import QUICK, Shop

HEADERS = {
    "host", "content-type", "content-length", "accept-encoding", "user-agent", "webhook-id", "webhook-timestamp",
    "webhook-signature", "webhook-key-id", "webhook-delivery-id", "webhook-attempt", "webhook-retry-count", "traceparent",
}  # fmt: skip


def signature(secret: str, seen: Seen) -> str:
    """What a Standard Webhooks receiver computes."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{seen['webhook-id']}.{seen['webhook-timestamp']}.".encode() + seen.body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def test_the_first_request_has_exactly_these_headers(shop: Shop) -> None:
    spot, endpoint, event = shop.play()
    seen = spot.one()
    assert seen.method == "POST" and {name.lower() for name, _ in seen.headers} == HEADERS
    assert len(seen.headers) == len(HEADERS)
    assert seen["webhook-id"] == event
    assert abs(int(seen["webhook-timestamp"]) - time.time()) < 10
    assert seen["webhook-signature"] == signature(endpoint["secret"], seen)
    assert seen["webhook-key-id"] and " " not in seen["webhook-key-id"]
    assert seen["webhook-delivery-id"] == shop.delivery(event)["id"]
    assert seen["webhook-attempt"] == "1" and seen["webhook-retry-count"] == "0"
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]", seen["traceparent"])
    assert re.fullmatch(r"surehook/\d+\.\d+\S*", seen["user-agent"])
    assert seen["content-type"] == "application/json"
    standardwebhooks.Webhook(endpoint["secret"]).verify(seen.body, {k.lower(): v for k, v in seen.headers})


@pytest.mark.parametrize(
    "data",
    [b'{ "a" :  1.50 ,"z":[ ],\t"b":{}, "a2" : "\\u00e9\\/" }', b" 1 ", b"null", b'"x"', b"[1 ,2]", b"-0.0", b"1e5",
     b'{"b":1,"a":2,"b":3}', b"123456789012345678901234567890", b'"\xc3\xa9\xf0\x9f\x98\x80"', b"false", b"{\n}"],
)  # fmt: skip
def test_data_is_sent_byte_for_byte_as_published(shop: Shop, data: bytes) -> None:
    tenant, spot = shop.tenant(), shop.receiver.spot()
    shop.endpoint(tenant, spot.url)
    raw = b'{"data":%b,"type":"a","tenant":"%b"}' % (data, tenant.encode())
    event = shop.api.post("/v1/events", raw=raw, status=202)["id"]
    at = shop.api.get(f"/v1/events/{event}")["accepted_at"]
    start = f'{{"id":"{event}","type":"a","timestamp":"{at}","tenant":"{tenant}","schema_version":"1","data":'
    assert spot.one().body in (start.encode() + data + b"}", start.encode() + data.strip() + b"}")


def test_all_fields_are_sent_in_their_order_and_absent_ones_are_left_out(shop: Shop) -> None:
    tenant, spot = shop.tenant(), shop.receiver.spot()
    shop.endpoint(tenant, spot.url)
    event = shop.publish(
        tenant, source="s", causation_id="c0", correlation_id="c1", workflow_version="w", sequence=3, subject="d\"é",
        schema_version="7", occurred_at="2026-01-02T03:04:05.1+01:00", data=[],
    )  # fmt: skip
    expected = (
        f'{{"id":"{event}","type":"document.signed","timestamp":"2026-01-02T02:04:05.100Z","tenant":"{tenant}",'
        '"schema_version":"7","subject":"d\\"é","sequence":3,"workflow_version":"w","correlation_id":"c1",'
        '"causation_id":"c0","source":"s","data":[]}'
    )
    assert spot.one().body.decode() == expected


def test_retries_and_replays_carry_the_same_bytes_and_say_what_they_are(shop: Shop) -> None:
    spot, endpoint, event = shop.play(500, 503, 200)
    first, second, third = spot.wait(3)
    delivery = shop.finished(event)["id"]
    again = shop.api.post(f"/v1/deliveries/{delivery}/resend", status=201)
    replay = spot.wait(4)[3]
    assert {seen.body for seen in (first, second, third, replay)} == {first.body}
    assert {seen["webhook-id"] for seen in spot.seen} == {event}
    numbers = [(seen["webhook-attempt"], seen["webhook-retry-count"]) for seen in spot.seen]
    assert numbers == [("1", "0"), ("2", "1"), ("3", "2"), ("1", "0")]
    assert [seen.header("webhook-replay") for seen in spot.seen] == [None, None, None, "1"]
    assert [seen["webhook-delivery-id"] for seen in spot.seen] == [delivery] * 3 + [again["id"]]
    assert all(seen["webhook-signature"] == signature(endpoint["secret"], seen) for seen in spot.seen)
    assert len({seen["traceparent"].split("-")[1] for seen in spot.seen[:3]}) == 1, "one trace for one event"
    assert len({seen["traceparent"] for seen in spot.seen[:3]}) == 3, "one span for each attempt"


def test_both_secrets_sign_during_the_overlap_and_only_the_new_one_after_it(shop: Shop) -> None:
    tenant, spot = shop.tenant(), shop.receiver.spot()
    endpoint = shop.endpoint(tenant, spot.url)
    path = f"/v1/endpoints/{endpoint['id']}/rotate-secret"
    new = shop.api.post(path, {"overlap_s": 1})["secret"]
    shop.publish(tenant)
    seen = spot.wait(1)[0]
    assert set(seen["webhook-signature"].split()) == {signature(s, seen) for s in (endpoint["secret"], new)}
    keys = seen["webhook-key-id"].split()
    assert len(keys) == len(set(keys)) == 2
    named = dict(zip(keys, seen["webhook-signature"].split(), strict=True))
    time.sleep(1.1)  # the overlap itself is what passes
    shop.publish(tenant)
    later = spot.wait(2)[1]
    assert later["webhook-signature"] == signature(new, later)
    assert named[later["webhook-key-id"]] == signature(new, seen), "ids stand in the order of the signatures"


def test_rotation_without_an_overlap_ends_the_old_secret_at_once_and_by_default_it_stays(shop: Shop) -> None:
    tenant, spot = shop.tenant(), shop.receiver.spot()
    endpoint = shop.endpoint(tenant, spot.url)
    path = f"/v1/endpoints/{endpoint['id']}/rotate-secret"
    second = shop.api.post(path, {"overlap_s": 0})["secret"]
    shop.publish(tenant)
    seen = spot.wait(1)[0]
    assert seen["webhook-signature"] == signature(second, seen)
    third = shop.api.post(path)["secret"]
    shop.publish(tenant)
    seen = spot.wait(2)[1]
    assert set(seen["webhook-signature"].split()) == {signature(s, seen) for s in (second, third)}
    assert shop.api.refused("POST", path, {"overlap_s": -1})["field"] == "overlap_s"


def test_an_endpoints_own_headers_are_sent(shop: Shop) -> None:
    tenant, spot = shop.tenant(), shop.receiver.spot()
    shop.endpoint(tenant, spot.url, headers={"X-Mine": "yes", "Authorization": "Bearer receiver-token"})
    shop.publish(tenant)
    seen = spot.one()
    assert seen["X-Mine"] == "yes" and seen["Authorization"] == "Bearer receiver-token"
    assert {name.lower() for name, _ in seen.headers} == HEADERS | {"x-mine", "authorization"}


def test_the_query_of_a_url_is_kept(shop: Shop) -> None:
    tenant, spot = shop.tenant(), shop.receiver.spot()
    shop.endpoint(tenant, f"{spot.url}?a=b%20c&a=%2F")
    shop.publish(tenant)
    assert spot.one().path == f"{spot.path}?a=b%20c&a=%2F"


def test_the_version_of_a_registered_type_is_sent_where_the_publisher_says_none(shop: Shop) -> None:
    answer = shop.api.ask("POST", "/v1/event-types", {"name": "versioned.thing"})
    assert answer.status == 201, answer
    tenant, spot = shop.tenant(), shop.receiver.spot()
    shop.endpoint(tenant, spot.url, policy=QUICK)
    shop.publish(tenant, type="versioned.thing")
    expected = answer.json["schema_version"]
    assert f'"schema_version":"{expected}"'.encode() in spot.one().body
    assert isinstance(expected, str)
