"""/v1/events: reading."""

from __future__ import annotations

import json

import pytest

from surehook.api import events
from surehook.core.instants import DAY_MS
from tests.api.house import START, House

ON_SQLITE = True

ODD = b'{ "b":1.0,\n"a": 1e2, "\\u00e9": "\\/", "n":12345678901234567890, "z": [ ] }'


def test_data_comes_back_byte_for_byte(house: House) -> None:
    event, _ = house.publish(data=ODD)

    assert house.call("GET", f"/v1/events/{event}").content.endswith(b'"data":' + ODD + b"}")
    assert ODD in house.call("GET", "/v1/events").content


def test_an_event_without_deliveries_is_kept(house: House) -> None:
    event, _ = house.publish()

    assert house.get(f"/v1/events/{event}")["deliveries"] == 0
    assert house.get(f"/v1/events/{event}/deliveries") == {"data": [], "next": None}


def test_an_event_whose_bytes_are_gone_has_null_for_data(house: House) -> None:
    house.publish()
    house.run(house.ledger.prune(events_before=0, bodies_before=START + 1, limit=100, now=START))
    (event,) = house.get("/v1/events")["data"]

    assert event["data"] is None


def test_an_event_shows_its_key_and_is_found_by_it_when_the_key_itself_is_forgotten(house: House) -> None:
    house.tenant()
    event, _ = house.publish(idempotency_key="order-17")
    house.publish()
    house.run(house.ledger.prune(events_before=0, bodies_before=0, limit=100, now=START + 2 * DAY_MS))

    assert house.get(f"/v1/events/{event}")["idempotency_key"] == "order-17"
    (found,) = house.get("/v1/events?tenant=acme&idempotency_key=order-17")["data"]
    assert (found["id"], found["idempotency_key"]) == (event, "order-17")
    assert house.get("/v1/events?tenant=acme&idempotency_key=order-18")["data"] == []


def test_lists_can_be_cut_by_every_filter(house: House) -> None:
    house.tenant("nobody")
    made = {}
    for n, fields in enumerate(
        [{"tenant": "a"}, {"type": "x.y"}, {"subject": "s"}, {"correlation_id": "c"}, {"source": "late"}]
    ):
        house.engine.clock.at = START + n
        made[n] = house.publish(**fields)[0]
    queries = {
        "tenant=a": [0], "type=x.y": [1], "subject=s": [2], "correlation_id=c": [3],
        "since=2026-03-02T09:30:00.003Z": [4, 3], "until=2026-03-02T10:30:00.001%2B01:00": [0],
        "since=2026-03-02T09:30:00.001Z&until=2026-03-02T09:30:00.003Z": [2, 1], "tenant=nobody": [],
    }  # fmt: skip

    for query, found in queries.items():
        assert [row["id"] for row in house.get(f"/v1/events?{query}")["data"]] == [made[n] for n in found], (
            query
        )


def test_a_page_of_large_events_comes_back_short_with_a_cursor(house: House) -> None:
    large = json.dumps("x" * 200_000).encode()
    made = [house.publish(data=large)[0] for _ in range(50)]
    page = house.get("/v1/events?limit=50")
    rest = house.get(f"/v1/events?limit=50&cursor={page['next']}")

    assert 0 < len(page["data"]) < 50
    assert len(page["data"]) * 200_000 < events.PAGE_BYTES + events.PIECE_ROWS * 200_100
    assert {row["id"] for row in page["data"] + rest["data"]} == set(made)


def test_an_events_deliveries_hold_replays_and_can_be_cut(house: House) -> None:
    house.tenant()
    first, second = house.endpoint(), house.endpoint()
    event, (one, two) = house.publish(first, second)
    house.publish(first)
    house.finish(one)
    again = house.post(f"/v1/deliveries/{one}/resend", status=201)["id"]

    def found(query: str = "") -> set[str]:
        return {row["id"] for row in house.get(f"/v1/events/{event}/deliveries{query}")["data"]}

    assert found() == {one, two, again}
    assert found("?state=dead") == {one}
    assert found(f"?endpoint={second['id']}") == {two}


@pytest.mark.parametrize(
    "event", ["evt_01kjpy44e0f2tacmq49pkz57h6", "evt_", "batch2", "%00", "é", "x" * 10_000]
)
def test_an_event_that_is_not_there_is_not_found(house: House, event: str) -> None:
    for path in (f"/v1/events/{event}", f"/v1/events/{event}/deliveries"):
        assert house.call("GET", path).json()["code"] == "not_found"
