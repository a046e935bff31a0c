"""Breakers probed and closed by hand, and what activating, testing and resending say of an open one."""

from __future__ import annotations

from typing import Any

import pytest

from surehook.ports.transport import Answer
from tests.api.house import START, House

URL = "https://hooks.example.com/a"


def broken(house: House, **fields: Any) -> dict[str, Any]:
    """An endpoint whose breaker is open."""
    house.tenant()
    made = house.endpoint(**fields)
    breaker = house.engine.directory.breakers["acme", URL]
    breaker.trip("failures", START)
    return made


def shown(house: House, made: dict[str, Any]) -> Any:
    return house.get(f"/v1/endpoints/{made['id']}")["breaker"]


def test_an_endpoint_shows_the_open_breaker_that_holds_it(house: House) -> None:
    made = broken(house)
    held = {"state": "open", "reason": "failures", "probe_at": "2026-03-02T09:35:00.000Z"}

    assert made["breaker"] is None
    assert shown(house, made) == held == house.get("/v1/endpoints")["data"][0]["breaker"]


def test_one_that_heeds_no_breaker_shows_that_for_the_key_alone(house: House) -> None:
    made = broken(house, policy={"breaker": None})
    assert shown(house, made) is None
    house.engine.directory.breakers["acme", URL].trip("key", START)
    assert shown(house, made)["reason"] == "key"


def test_a_probe_is_due_now_and_the_breaker_stays_open(house: House) -> None:
    broken(house)
    answer = house.post("/v1/breakers/probe", {"tenant": "acme", "url": f"{URL}?customer=7"})

    assert (answer["url"], answer["state"], answer["probe_at"]) == (URL, "open", "2026-03-02T09:30:00.000Z")


def test_a_closing_is_logged_with_its_url(house: House) -> None:
    made = broken(house)
    _, (parked,) = house.publish(made)
    house.settle(parked, parked="breaker")
    answer = house.post("/v1/breakers/close", {"tenant": "acme", "url": URL})

    assert (answer["state"], answer["reason"], answer["probe_at"], answer["parked"]) == (
        "closed",
        None,
        None,
        1,
    )
    assert shown(house, made) is None
    (name, told) = house.engine.telemetry.told[-1]
    assert (name, told["call"], told["breaker"], told["tenant_of"]) == (
        "config.changed",
        "close_breaker",
        URL,
        "acme",
    )


@pytest.mark.parametrize("verb", ["probe", "close"])
def test_a_url_of_nobody_has_no_breaker(house: House, verb: str) -> None:
    broken(house)
    for place in ({"tenant": "acme", "url": "https://elsewhere.example/"}, {"tenant": "b", "url": URL}):
        response = house.call("POST", f"/v1/breakers/{verb}", json=place)
        assert (response.status_code, response.json()["code"]) == (404, "not_found")


def test_activating_answers_that_the_breaker_is_open_and_its_probe_due(house: House) -> None:
    made = broken(house)
    answer = house.call("PATCH", f"/v1/endpoints/{made['id']}", json={"status": "active"}).json()

    assert (answer["status"], answer["breaker"]["probe_at"]) == ("active", "2026-03-02T09:30:00.000Z")


def test_a_test_that_arrives_says_that_deliveries_wait_all_the_same(house: House) -> None:
    made = broken(house)
    house.engine.transport.answer = Answer(status=200)
    attempt = house.post(f"/v1/endpoints/{made['id']}/test")
    assert attempt["outcome"] == "delivered" and "breaker is open" in attempt["hint"]
    house.post("/v1/breakers/close", {"tenant": "acme", "url": URL})
    assert house.post(f"/v1/endpoints/{made['id']}/test")["hint"] is None


def test_a_resend_behind_an_open_breaker_hastens_its_probe(house: House) -> None:
    made = broken(house)
    _, (waits, done) = house.publish(made)[0], [house.publish(made)[1][0] for _ in range(2)]
    house.settle(waits, parked="breaker")
    house.settle(done, end="dead")
    again = house.post(f"/v1/deliveries/{waits}/resend")
    assert (again["state"], again["reason"], again["due_at"]) == (
        "parked",
        "breaker",
        "2026-03-02T09:30:00.000Z",
    )
    house.post(f"/v1/deliveries/{done}/resend", status=201)
    assert len(house.engine.hastened) == 2
