"""What the door counts and tells: requests by route, refusals, refused keys, changes of the configuration."""

from __future__ import annotations

from typing import Any

import pytest

from surehook.api.traffic import KEY_QUIET_MS, QUIET_MS, Traffic, Watched
from surehook.core.errors import LedgerFull, LedgerUnavailable
from surehook.delivery.outage import Outage
from tests.api.house import KEY, Facts, HandClock, House


def test_requests_are_counted_by_the_template_of_their_route(house: House) -> None:
    house.tenant()
    endpoints = [house.endpoint() for _ in range(3)]
    for endpoint in endpoints:
        house.get(f"/v1/endpoints/{endpoint['id']}")
    house.call("GET", "/v1/endpoints/ep_nothing")
    house.call("DELETE", "/v1/lanes")
    house.call("GET", "/nothing/here/at/all")
    house.call("BREW", "/v1/lanes")
    house.call("GET", "/docs", key=None)

    assert house.services.traffic.requests == {
        ("POST", "/v1/tenants", 201): 1,
        ("POST", "/v1/endpoints", 201): 3,
        ("GET", "/v1/endpoints/{id}", 200): 3,
        ("GET", "/v1/endpoints/{id}", 404): 1,
        ("DELETE", "/v1/lanes", 405): 1,
        ("GET", "other", 404): 1,
        ("other", "other", 405): 1,
        ("GET", "/docs", 200): 1,
    }
    assert sum(house.services.traffic.times["POST", "/v1/endpoints"].buckets) == 3


def test_a_caller_that_hangs_up_is_counted_as_such(house: House) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise ConnectionResetError

    async def nothing(message: Any = None) -> Any: ...

    traffic = Traffic(clock=HandClock(), telemetry=Facts(), outage=house.engine.outage)
    scope = {"type": "http", "method": "POST", "path": "/v1/events"}
    with pytest.raises(ConnectionResetError):
        house.run(Watched(app, traffic)(scope, nothing, nothing))
    assert traffic.requests == {("POST", "/v1/events", 499): 1}


def test_a_refused_key_is_told_with_its_address_once_and_with_its_count_when_it_is_over(house: House) -> None:
    for _ in range(50):
        house.call("GET", "/v1/lanes", key="not-the-key")
    assert house.engine.telemetry.told == [("key.refused", {"address": "127.0.0.1"})]

    house.engine.clock.at += KEY_QUIET_MS
    house.services.traffic.look()
    assert house.engine.telemetry.told[1:] == [
        ("key.refusals_ended", {"address": "127.0.0.1", "refused": 50})
    ]


class Publishing:
    """The traffic of a server that refuses, in the door's own words."""

    def __init__(self) -> None:
        self.clock, self.facts = HandClock(), Facts()
        self.outage = Outage(clock=self.clock, telemetry=self.facts)
        self.traffic = Traffic(clock=self.clock, telemetry=self.facts, outage=self.outage)

    def publish(self, code: str | None = None, path: str = "/v1/events") -> None:
        scope: dict[str, Any] = {"method": "POST", "path": path}
        if code is not None:
            scope["surehook.problem"] = code
        self.traffic.end(scope, 202 if code is None else 503, self.traffic.now())


def test_overload_is_told_when_it_begins_and_when_it_is_over() -> None:
    door = Publishing()
    for _ in range(1_000):
        door.publish("overloaded")
        door.clock.at += 1
    door.traffic.look()
    door.clock.at += QUIET_MS
    door.traffic.look()

    assert door.facts.told == [
        ("refusals.began", {"code": "overloaded"}),
        ("refusals.ended", {"code": "overloaded", "refused": 1_000, "lasted_s": 0.999}),
    ]


def test_a_server_that_has_refused_every_publish_for_seconds_is_not_ready() -> None:
    door = Publishing()
    reasons = []
    for _ in range(7):
        door.publish("overloaded")
        reasons.append(door.traffic.refusing())
        door.clock.at += 1_000
    assert reasons == [None] * 5 + ["too many events wait for the disk"] * 2

    door.publish()
    assert door.traffic.refusing() is None


def test_one_publish_in_between_is_readiness() -> None:
    door = Publishing()
    for _ in range(20):
        door.publish("overloaded")
        door.publish()
        door.clock.at += 1_000
        assert door.traffic.refusing() is None


def test_publishes_that_the_ledger_refuses_for_seconds_are_no_readiness_whatever_the_codes() -> None:
    door = Publishing()
    for code in ("disk_full", "ledger_unavailable") * 3:
        door.publish(code)
        door.clock.at += 900
        assert door.traffic.refusing() is None or door.clock.at >= 5_000
    assert door.traffic.refusing() == "the ledger takes no events"


def test_readiness_does_not_come_back_while_publishes_are_refused_for_long() -> None:
    door = Publishing()
    reasons = set()
    for second in range(1_300):
        door.publish("ledger_unavailable")
        if second > 5:
            reasons.add(door.traffic.refusing())
        door.traffic.look()
        door.clock.at += 1_000
    assert reasons == {"the ledger takes no events"}


def test_refused_reads_say_nothing_about_publishing() -> None:
    door = Publishing()
    for _ in range(20):
        door.publish("ledger_unavailable", path="/v1/replays")
        door.clock.at += 1_000
    assert door.traffic.refusing() is None


def test_calls_that_the_ledger_refuses_are_judged_by_its_beats_and_no_line_each(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(*anything: Any, **more: Any) -> Any:
        raise LedgerUnavailable("the database is gone")

    house.engine.ledger.tenants = away
    for _ in range(30):
        assert house.call("GET", "/v1/tenants").json()["code"] == "ledger_unavailable"

    assert house.engine.telemetry.told == []
    house.engine.outage.answered()
    assert house.engine.telemetry.told == [
        ("ledger.refusals_began", {"asked": "door", "error": "the database is gone"})
    ]
    assert house.engine.outage.refused == 30
    assert not caplog.records


def test_a_refusal_of_the_ledger_is_told_by_its_code(house: House) -> None:
    async def full() -> Any:
        raise LedgerFull("full")

    house.engine.ledger.version = full
    house.call("GET", "/v1/lanes", key="another-key-of-sixteen")

    assert ("refusals.began", {"code": "disk_full"}) in house.engine.telemetry.told


def test_readiness_asks_everybody_who_knows_why_not() -> None:
    house = House(reasons=(lambda: "the disk is at its floor",))
    answer = house.call("GET", "/readyz", key=None)
    house.close()

    assert (answer.status_code, answer.json()["detail"]) == (503, "the disk is at its floor")


def test_a_change_of_the_configuration_is_told_with_who_and_what_and_no_value(house: House) -> None:
    house.tenant()
    endpoint = house.endpoint(headers={"x-api-key": "a-secret-value"})
    path = f"/v1/endpoints/{endpoint['id']}"
    house.call("PATCH", path, json={"headers": {"x-api-key": "another-secret"}, "description": None})
    house.call("POST", f"{path}/rotate-secret")
    house.call("POST", f"{path}/test")
    house.call("GET", path)
    house.call("PATCH", path, json={"nonsense": 1})
    house.call("DELETE", path)

    told = [fields for name, fields in house.engine.telemetry.told if name == "config.changed"]
    assert [(each["call"], each.get("endpoint"), each.get("fields")) for each in told] == [
        ("create_tenant", None, ["name", "id"]),
        ("create_endpoint", endpoint["id"], ["tenant", "url", "event_types", "headers"]),
        ("change_endpoint", endpoint["id"], ["headers", "description"]),
        ("rotate_secret", endpoint["id"], []),
        ("delete_endpoint", endpoint["id"], None),
    ]
    assert {each["by"] for each in told} == {"api_key of the settings"}
    assert {each["address"] for each in told} == {"127.0.0.1"}
    assert "secret-value" not in repr(told) and "whsec" not in repr(told) and KEY not in repr(told)
