"""/v1/deliveries and /v1/dead-letters"""

from __future__ import annotations

import pytest

from lab.ledger.ledger import MemoryLedger
from surehook.core import ids
from surehook.core.errors import CommitUnknown
from tests.api.house import START, House

ON_SQLITE = True

NOBODY = "dlv_01kjpy44e0f2tacmq49pkz57h6"


def test_lists_can_be_cut_by_every_filter(house: House) -> None:
    house.tenant()
    endpoint, other = house.endpoint(), house.endpoint()
    made = []
    for n, (to, fields) in enumerate(
        [(endpoint, {}), (other, {}), (endpoint, {"type": "x.y"}), (endpoint, {"tenant": "b"})]
    ):
        house.engine.clock.at = START + n
        made += house.publish(to, **fields)[1]
    house.finish(made[0], "delivered")
    house.settle(made[2], outcome="timed_out", parked="breaker")
    queries = {
        "tenant=b": [3], f"endpoint={other['id']}": [1], "state=delivered": [0], "state=parked": [2],
        "state=scheduled": [3, 1], "type=x.y": [2], "outcome=timed_out": [2], "outcome=delivered": [0],
        "since=2026-03-02T09:30:00.002Z": [3, 2], "until=2026-03-02T09:30:00.002Z": [1, 0], "state=dropped": [],
    }  # fmt: skip

    for query, found in queries.items():
        assert [row["id"] for row in house.get(f"/v1/deliveries?{query}")["data"]] == [
            made[n] for n in found
        ], query


def test_a_history_comes_newest_first_in_pages(house: House) -> None:
    house.tenant()
    _, (delivery,) = house.publish(house.endpoint())
    for _ in range(5):
        house.settle(delivery)
    first = house.get(f"/v1/deliveries/{delivery}/attempts?limit=2")
    second = house.get(f"/v1/deliveries/{delivery}/attempts?limit=2&cursor={first['next']}")
    third = house.get(f"/v1/deliveries/{delivery}/attempts?limit=2&cursor={second['next']}")

    numbers = [[entry["number"] for entry in page["data"]] for page in (first, second, third)]
    assert numbers == [[5, 4], [3, 2], [1]] and third["next"] is None


def test_a_hint_follows_the_policy_that_holds_for_the_endpoint(house: House) -> None:
    house.tenant()
    house.post("/v1/event-types", {"name": "patient", "policy": {"timeouts": {"first": 1, "retry": 20}}}, 201)
    own, plain = house.endpoint(policy="insigner"), house.endpoint()
    _, of_one = house.publish(own, plain)
    _, of_type = house.publish(own, plain, type="patient")

    def hints(deliveries: list[str]) -> list[str]:
        histories = [house.get(f"/v1/deliveries/{one}/attempts")["data"] for one in deliveries]
        found = [next(entry["hint"] for entry in entries if entry["hint"]) for entries in histories]
        return [hint.rpartition("Its policy ")[2] for hint in found]

    for delivery in (*of_one, *of_type):
        house.settle(delivery, outcome="timed_out", status=None, error="timeout")
    standard, patient = (
        "waits 2s for a first call and 15s for a retry.",
        "waits 1s for a first call and 20s for a retry.",
    )
    assert hints(of_one) == ["waits 10s.", standard]
    assert hints(of_type) == ["waits 10s.", patient]
    for delivery in of_one:
        house.settle(delivery, outcome="throttled", status=429)
    asked = "waits as long as Retry-After asks, 1h 0m at most."
    assert hints(of_one) == ["keeps to its own waits, whatever Retry-After asks for.", asked]
    house.call("PATCH", f"/v1/endpoints/{own['id']}", json={"policy": {"honour_retry_after": 60}})
    house.call("DELETE", f"/v1/endpoints/{plain['id']}")
    assert hints(of_one) == [
        "waits as long as Retry-After asks, 1m at most.",
        "The endpoint asks to slow down.",
    ]


def test_an_interrupted_entry_is_explained_and_not_counted(house: House) -> None:
    house.tenant()
    _, (delivery,) = house.publish(house.endpoint())
    house.take(delivery)
    house.run(house.ledger.free([ids.parse(ids.DELIVERY, delivery)], node=b"\x01" * 16, now=START))
    (entry,) = house.get(f"/v1/deliveries/{delivery}/attempts")["data"]

    assert (entry["kind"], entry["outcome"]) == ("interrupted", None) and "sent again" in entry["hint"]
    assert house.get(f"/v1/deliveries/{delivery}")["attempts"] == 0


# -- resend -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["delivered", "dead", "dropped"])
def test_resending_a_finished_delivery_makes_a_new_one_and_links_both(house: House, end: str) -> None:
    house.tenant()
    event, (old,) = house.publish(house.endpoint(policy="signing"), data=b'{ "n" : 1 }')
    house.finish(old, end)
    house.engine.clock.at += 1000
    response = house.call("POST", f"/v1/deliveries/{old}/resend")
    new = response.json()

    assert response.status_code == 201 and response.headers["location"] == f"/v1/deliveries/{new['id']}"
    assert (new["event"], new["replay_of"], new["attempts"], new["state"]) == (event, old, 0, "scheduled")
    assert new["due_at"] == "2026-03-02T09:30:01.000Z" and house.engine.woken
    assert house.get(f"/v1/deliveries/{old}")["replayed_by"] == new["id"]
    taken = house.take(new["id"])
    assert (taken.attempt, taken.replay_of, taken.born_at) == (1, ids.parse(ids.DELIVERY, old), START + 1000)
    assert taken.body == b'{"id":"x","data":{ "n" : 1 }}'
    assert taken.overdue_at == START + 1000 + 900_000  # `signing` escalates after a quarter of an hour


def test_a_finished_delivery_can_be_resent_again(house: House) -> None:
    house.tenant()
    _, (old,) = house.publish(house.endpoint())
    house.finish(old)
    first, second = (house.post(f"/v1/deliveries/{old}/resend", status=201)["id"] for _ in range(2))

    assert first != second and house.get(f"/v1/deliveries/{old}")["replayed_by"] == second


def test_resending_an_open_delivery_makes_it_due_now(house: House) -> None:
    house.tenant()
    _, (delivery,) = house.publish(house.endpoint())
    house.settle(delivery, due_at=START + 3_600_000)
    seen = house.post(f"/v1/deliveries/{delivery}/resend")

    assert (seen["id"], seen["state"], seen["due_at"]) == (delivery, "retrying", "2026-03-02T09:30:00.000Z")
    assert house.engine.woken == 1


def test_resending_a_delivery_that_is_being_sent_leaves_it_to_that(house: House) -> None:
    house.tenant()
    _, (delivery,) = house.publish(house.endpoint())
    house.take(delivery)

    assert house.post(f"/v1/deliveries/{delivery}/resend")["state"] == "sending"


def test_a_resend_whose_commit_was_lost_is_made_once() -> None:
    lost = iter([True])

    def faults(step: str) -> None:
        if step == "after resend" and next(lost, False):
            raise CommitUnknown("cut")

    house = House(MemoryLedger(faults=faults))
    house.tenant()
    _, (old,) = house.publish(house.endpoint())
    house.finish(old)
    new = house.post(f"/v1/deliveries/{old}/resend", status=201)
    rows = house.get("/v1/deliveries")["data"]
    house.close()

    assert {row["id"] for row in rows} == {old, new["id"]}


def test_what_is_gone_cannot_be_resent(house: House) -> None:
    house.tenant()
    kept, removed = house.endpoint(), house.endpoint()
    _, (bytes_gone, endpoint_gone) = house.publish(kept, removed)
    house.finish(bytes_gone, "delivered")
    house.finish(endpoint_gone, "delivered")
    house.call("DELETE", f"/v1/endpoints/{removed['id']}")
    first = house.post(f"/v1/deliveries/{endpoint_gone}/resend", status=409)
    house.run(house.ledger.prune(events_before=0, bodies_before=START + 1, limit=100, now=START))
    second = house.post(f"/v1/deliveries/{bytes_gone}/resend", status=409)

    assert (first["code"], second["code"]) == ("endpoint_gone", "event_gone")


# -- cancel -------------------------------------------------------------------------------------------------


def test_an_unheld_delivery_is_cancelled_on_request(house: House) -> None:
    house.tenant()
    _, (scheduled,) = house.publish(house.endpoint())
    _, (parked,) = house.publish(house.endpoint())
    house.settle(parked, parked="breaker")
    seen = [house.post(f"/v1/deliveries/{delivery}/cancel") for delivery in (scheduled, parked)]
    (ended,) = house.get(f"/v1/deliveries/{scheduled}/attempts")["data"]

    assert [(row["state"], row["reason"]) for row in seen] == [("cancelled", "request")] * 2
    assert (ended["kind"], ended["outcome"]) == ("ended", None)


def test_a_delivery_in_flight_or_finished_cannot_be_cancelled(house: House) -> None:
    house.tenant()
    _, (sending,) = house.publish(house.endpoint())
    house.take(sending)
    _, (finished,) = house.publish(house.endpoint())
    house.finish(finished)
    codes = [house.post(f"/v1/deliveries/{d}/cancel", status=409)["code"] for d in (sending, finished)]

    assert codes == ["delivery_sending", "delivery_finished"]


def test_a_delivery_is_cancelled_once(house: House) -> None:
    house.tenant()
    _, (delivery,) = house.publish(house.endpoint())
    house.post(f"/v1/deliveries/{delivery}/cancel")

    assert house.post(f"/v1/deliveries/{delivery}/cancel", status=409)["code"] == "delivery_finished"


@pytest.mark.parametrize(
    "delivery", [NOBODY, "dlv_", "x", "evt_01kjpy44e0f2tacmq49pkz57h6", "%00", "x" * 10_000]
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/deliveries/{}"),
        ("GET", "/v1/deliveries/{}/attempts"),
        ("POST", "/v1/deliveries/{}/resend"),
        ("POST", "/v1/deliveries/{}/cancel"),
        ("POST", "/v1/dead-letters/{}/dismiss"),
    ],
)
def test_a_delivery_that_is_not_there_is_not_found(
    house: House, method: str, path: str, delivery: str
) -> None:
    body = {"json": {"note": "x"}} if "dismiss" in path else {}

    assert house.call(method, path.format(delivery), **body).json()["code"] == "not_found"


# -- dead letters -------------------------------------------------------------------------------------------


def test_dead_letters_stay_until_they_are_replayed_or_dismissed(house: House) -> None:
    house.tenant()
    endpoint = house.endpoint()
    dead = [house.publish(endpoint, subject=f"s{n}")[1][0] for n in range(4)]
    for delivery in dead:
        house.finish(delivery)
    house.finish(house.publish(endpoint)[1][0], "delivered")
    house.post(f"/v1/deliveries/{dead[0]}/resend", status=201)
    house.post(f"/v1/dead-letters/{dead[1]}/dismiss", {"note": "settled"})

    assert {row["id"] for row in house.get("/v1/dead-letters")["data"]} == set(dead[2:])
    assert [row["id"] for row in house.get("/v1/dead-letters?subject=s3")["data"]] == [dead[3]]
    assert house.get("/v1/dead-letters?outcome=timed_out")["data"] == []


def test_a_dead_letter_shows_the_headers_of_its_last_request_until_it_is_none(house: House) -> None:
    house.tenant()
    _, (dead,) = house.publish(house.endpoint())
    assert house.get(f"/v1/deliveries/{dead}")["request_headers"] is None
    house.settle(dead, end="dead", request_headers=b'{"webhook-id":"evt_1"}')

    shown = {"webhook-id": "evt_1"}
    assert house.get(f"/v1/deliveries/{dead}")["request_headers"] == shown
    for path in ("/v1/dead-letters", "/v1/deliveries"):
        assert [one["request_headers"] for one in house.get(path)["data"]] == [shown]
    assert house.post(f"/v1/dead-letters/{dead}/dismiss", {"note": "settled"})["request_headers"] is None


def test_only_a_dead_letter_can_be_dismissed_and_once(house: House) -> None:
    house.tenant()
    endpoint = house.endpoint()
    opened, delivered, dead, replayed = (house.publish(endpoint)[1][0] for _ in range(4))
    house.finish(delivered, "delivered")
    house.finish(dead)
    house.finish(replayed)
    house.post(f"/v1/deliveries/{replayed}/resend", status=201)
    house.post(f"/v1/dead-letters/{dead}/dismiss", {"note": "x"})
    details = [
        house.post(f"/v1/dead-letters/{delivery}/dismiss", {"note": "x"}, 409)["detail"]
        for delivery in (opened, delivered, dead, replayed)
    ]

    assert details == [
        "its state is scheduled", "its state is delivered", "it was dismissed before", "it was replayed",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "body", [{}, {"note": ""}, {"note": None}, {"note": 1}, {"note": "n" * 1025}, {"nota": "x"}]
)
def test_a_dismissal_needs_a_note(house: House, body: object) -> None:
    house.tenant()
    _, (dead,) = house.publish(house.endpoint())
    house.finish(dead)
    house.post(f"/v1/dead-letters/{dead}/dismiss", body, 422)

    assert len(house.get("/v1/dead-letters")["data"]) == 1
