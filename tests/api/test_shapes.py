"""Answers have exactly the keys of the contract, in its order (docs/api.md)."""

from __future__ import annotations

from typing import Any

import pytest

from surehook.delivery.managing import BreakerView
from tests.api.house import START, House

ON_SQLITE = True

ENDPOINT = "id tenant url event_types policy status reason failure_count order headers description created_at updated_at secret method authentication tls receipts breaker key_id"
EVENT = (
    "id tenant type subject sequence schema_version workflow_version correlation_id causation_id source occurred_at "
    "accepted_at deliveries idempotency_key data"
)
DELIVERY = "id event endpoint tenant type state reason lane attempts outcome unknown due_at finished_at replay_of replayed_by receipt dismissal subject correlation_id request_headers"
ATTEMPT = "id delivery number kind lane started_at outcome unknown status error hint address timings_ms response next_at"
POLICY = (
    "name profile timeouts success redirects schedule jitter auto_retry max_age terminal honour_retry_after "
    "obey_verdicts on_exhausted auto_disable breaker escalate_after adaptive headers"
)
BREAKER = "tenant url state reason failures calls window_s opened_at probe_at parked"
LANE = "name slots in_flight held ready oldest_due_s scheduled parked"
PROBLEM = "type title status code detail field hint"


def keys(value: dict[str, Any]) -> str:
    return " ".join(value)


def test_an_endpoint_shows_its_secret_when_it_is_made_and_null_afterwards(house: House) -> None:
    house.tenant()
    made = house.endpoint()
    read = house.get(f"/v1/endpoints/{made['id']}")

    assert keys(made) == keys(read) == ENDPOINT
    assert made["secret"].startswith("whsec_") and read["secret"] is None
    assert house.get("/v1/endpoints")["data"] == [read]


def test_an_event_has_the_shape_of_the_contract(house: House) -> None:
    house.tenant()
    event, _ = house.publish(house.endpoint(), subject="doc_1", sequence=3, occurred_at=START - 1)
    read = house.get(f"/v1/events/{event}")

    assert keys(read) == EVENT
    assert (read["id"], read["deliveries"], read["sequence"]) == (event, 1, 3)
    assert (read["occurred_at"], read["accepted_at"]) == (
        "2026-03-02T09:29:59.999Z",
        "2026-03-02T09:30:00.000Z",
    )


def test_a_delivery_has_the_shape_of_the_contract(house: House) -> None:
    house.tenant()
    _, (delivery,) = house.publish(house.endpoint())
    house.settle(delivery, outcome="timed_out", status=None, unknown=True, due_at=START + 5000)
    read = house.get(f"/v1/deliveries/{delivery}")

    assert keys(read) == DELIVERY
    assert (read["state"], read["lane"], read["attempts"], read["outcome"], read["unknown"]) == (
        "retrying", "retry", 1, "timed_out", True,
    )  # fmt: skip
    assert (read["due_at"], read["finished_at"]) == ("2026-03-02T09:30:05.000Z", None)


def test_an_attempt_shows_times_in_milliseconds_and_the_answer_as_text(house: House) -> None:
    house.tenant()
    _, (delivery,) = house.publish(house.endpoint())
    house.finish(
        delivery, dns_us=400, connect_us=8100, total_us=1_000_200, address="203.0.113.7",
        headers=b"Content-Type: text/plain\r\nX-A: 1\r\nx-a: 2\r\n", body=b"caf\xc3\xa9 \xff", truncated=True,
    )  # fmt: skip
    (read,) = house.get(f"/v1/deliveries/{delivery}/attempts")["data"]

    assert keys(read) == ATTEMPT
    assert read["timings_ms"] == {
        "dns": 0.4,
        "connect": 8.1,
        "tls": None,
        "first_byte": None,
        "total": 1000.2,
    }
    assert list(read["timings_ms"]) == ["dns", "connect", "tls", "first_byte", "total"]
    assert read["response"] == {
        "headers": {"content-type": "text/plain", "x-a": "1, 2"}, "body": "café \\xff", "truncated": True,
    }  # fmt: skip
    assert list(read["response"]) == ["headers", "body", "truncated"]
    assert (read["lane"], read["kind"], read["address"]) == ("first", "attempt", "203.0.113.7")


def test_an_attempt_keeps_its_id(house: House) -> None:
    house.tenant()
    _, (delivery,) = house.publish(house.endpoint())
    house.settle(delivery)
    house.finish(delivery)
    first, second = (house.get(f"/v1/deliveries/{delivery}/attempts")["data"] for _ in range(2))

    assert [entry["id"] for entry in first] == [entry["id"] for entry in second]
    assert len({entry["id"] for entry in first}) == 2 and all(
        entry["id"].startswith("att_") for entry in first
    )


def test_a_policy_and_its_preview_have_the_shapes_of_the_contract(house: House) -> None:
    policy = house.get("/v1/policies/standard")
    preview = house.post("/v1/policies/preview", {"policy": "standard"})

    assert keys(policy) == keys(preview["policy"]) == POLICY
    assert keys(preview) == "policy timeline"
    assert keys(preview["timeline"][0]) == "attempt lane timeout_s wait_s after_s jitter_s"
    assert preview["timeline"][1] == {
        "attempt": 2, "lane": "retry", "timeout_s": 15.0, "wait_s": 5.0, "after_s": 5.0, "jitter_s": [-1.0, 1.0],
    }  # fmt: skip


def test_a_breaker_counts_what_is_parked_for_it(house: House) -> None:
    house.tenant()
    endpoint = house.endpoint()
    for _ in range(3):
        _, (delivery,) = house.publish(endpoint)
        house.settle(delivery, parked="breaker")
    route = next(iter(house.engine.directory.routes))
    house.engine.views = [
        BreakerView(
            "acme",
            "https://hooks.example.com/a",
            "open",
            "failures",
            31,
            40,
            600.0,
            START,
            START + 300_000,
            (route,),
        )
    ]
    (read,) = house.get("/v1/breakers")["data"]

    assert keys(read) == BREAKER
    assert (read["parked"], read["opened_at"], read["window_s"]) == (3, "2026-03-02T09:30:00.000Z", 600)
    assert b'"window_s":600,' in house.call("GET", "/v1/breakers").content


def test_lanes_count_every_unfinished_delivery_once(house: House) -> None:
    house.tenant()
    endpoint = house.endpoint()
    deliveries = [house.publish(endpoint)[1][0] for _ in range(4)]
    house.take(deliveries[0])
    house.settle(deliveries[1], parked="breaker")
    house.settle(deliveries[2], due_at=START + 60_000)
    house.engine.clock.at += 1500
    first, retry = house.get("/v1/lanes")["data"]

    assert keys(first) == keys(retry) == LANE
    assert first == {
        "name": "first", "slots": 512, "in_flight": 7, "held": 1, "ready": 1, "oldest_due_s": 1.5, "scheduled": 0, "parked": 0,
    }  # fmt: skip
    assert retry == {
        "name": "retry", "slots": 256, "in_flight": 0, "held": 0, "ready": 0, "oldest_due_s": 0.0, "scheduled": 1, "parked": 1,
    }  # fmt: skip


def test_a_problem_has_the_shape_of_the_contract(house: House) -> None:
    house.tenant()
    response = house.call(
        "POST", "/v1/endpoints", json={"tenant": "acme", "url": "https://10.0.0.7/", "event_types": ["*"]}
    )

    assert response.headers["content-type"] == "application/problem+json"
    assert response.status_code == 422
    assert response.json() == {
        "type": "/problems/address_forbidden", "title": "The address may not be called", "status": 422,
        "code": "address_forbidden", "detail": "not a public address", "field": "url", "hint": "choose another",
    }  # fmt: skip
    assert keys(response.json()) == PROBLEM


@pytest.mark.parametrize(
    ("path", "keys_of_one"),
    [
        ("/v1/tenants", "id name strict created_at"),
        ("/v1/event-types", "name description schema schema_version policy created_at schemas"),
        ("/v1/notices", "id at kind tenant endpoint delivery detail"),
    ],
)
def test_lists_hold_their_shapes(house: House, path: str, keys_of_one: str) -> None:
    house.tenant()
    house.post("/v1/event-types", {"name": "document.signed"}, 201)
    house.notice("delivery.dead")
    read = house.get(path)

    assert keys(read) == "data next"
    assert keys(read["data"][0]) == keys_of_one and read["next"] is None
