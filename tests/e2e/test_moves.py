"""What people do with deliveries: send again, cancel, replay, dismiss, pause, resume, delete, look."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.calling import until
from tests.e2e.receivers import Reply
from tests.e2e.shapes import check
from tests.e2e.shop import Shop

ONCE = {"schedule": {"fixed": []}}
LATE = {"schedule": {"fixed": [900]}, "jitter": None}


def lanes(shop: Shop) -> dict[str, int]:
    rows = {row["name"]: check("lane", row) for row in shop.api.get("/v1/lanes")["data"]}
    assert list(rows) == ["first", "retry"]
    return {
        key: sum(row[key] for row in rows.values())
        for key in ("in_flight", "held", "ready", "scheduled", "parked")
    }


def test_sending_a_finished_delivery_again_makes_a_new_one(shop: Shop) -> None:
    spot, _, event = shop.play(500, 200, policy=ONCE)
    dead = shop.finished(event)
    assert dead["state"] == "dead" and dead["attempts"] == 1 and dead["outcome"] == "refused"
    new = check("delivery", shop.api.post(f"/v1/deliveries/{dead['id']}/resend", status=201))
    assert new["id"] != dead["id"] and new["event"] == event and new["replay_of"] == dead["id"]
    assert shop.reaches(new["id"], "delivered")["attempts"] == 1
    assert shop.api.get(f"/v1/deliveries/{dead['id']}")["replayed_by"] == new["id"]
    assert spot.seen[0].body == spot.seen[1].body and spot.seen[1]["webhook-replay"] == "1"
    assert {row["id"] for row in shop.deliveries(event)} == {dead["id"], new["id"]}
    assert shop.api.get(f"/v1/events/{event}")["deliveries"] == 1, "a repeat is answered the same for ever"


def test_sending_an_open_delivery_again_makes_it_due_now(shop: Shop) -> None:
    spot, _, event = shop.play(500, 200, policy=LATE)
    spot.wait(1)
    waiting = shop.reaches(shop.delivery(event)["id"], "retrying")
    hurried = check("delivery", shop.api.post(f"/v1/deliveries/{waiting['id']}/resend"))
    assert hurried["id"] == waiting["id"] and hurried["replay_of"] is None
    done = shop.reaches(waiting["id"], "delivered")
    assert done["attempts"] == 2 and spot.wait(2)[1]["webhook-attempt"] == "2"


def test_an_open_delivery_is_cancelled_and_shows_why(shop: Shop) -> None:
    spot, _, event = shop.play(500, policy=LATE)
    spot.wait(1)
    waiting = shop.reaches(shop.delivery(event)["id"], "retrying")
    path = f"/v1/deliveries/{waiting['id']}"
    ended = check("delivery", shop.api.post(f"{path}/cancel"))
    assert ended["state"] == "cancelled" and ended["reason"] == "request" and ended["attempts"] == 1
    assert ended["due_at"] is None and ended["finished_at"] is not None and ended["outcome"] == "refused"
    assert shop.api.get(path) == ended
    history = [check("attempt", row) for row in shop.attempts(waiting["id"])]
    assert [(row["kind"], row["outcome"]) for row in history] == [("attempt", "refused"), ("ended", None)]
    assert shop.api.refused("POST", f"{path}/cancel")["status"] == 409


def test_a_delivery_that_is_being_sent_or_has_finished_is_not_cancelled(shop: Shop) -> None:
    spot, _, event = shop.play(Reply(delay_s=0.7))
    spot.wait(1)
    sending = shop.delivery(event)
    assert sending["state"] == "sending" and sending["attempts"] == 0
    assert shop.api.refused("POST", f"/v1/deliveries/{sending['id']}/cancel")["status"] == 409
    shop.reaches(sending["id"], "delivered")
    assert shop.api.refused("POST", f"/v1/deliveries/{sending['id']}/cancel")["status"] == 409


def test_dead_letters_are_kept_whole_until_they_are_dismissed_with_a_note(shop: Shop) -> None:
    _, endpoint, event = shop.play(Reply(500, body=b"no, sorry"), policy=ONCE)
    dead = shop.finished(event)
    tenant = dead["tenant"]
    listed = shop.api.get("/v1/dead-letters", tenant=tenant)["data"]
    assert [check("delivery", row) for row in listed] == [dead]
    (attempt,) = [check("attempt", row) for row in shop.attempts(dead["id"])]
    assert (
        attempt["status"] == 500 and attempt["response"]["body"] == "no, sorry" and attempt["next_at"] is None
    )
    path = f"/v1/dead-letters/{dead['id']}/dismiss"
    for body, field in (
        ({}, "note"),
        ({"note": ""}, "note"),
        ({"note": 7}, "note"),
        ({"note": "x", "by": "me"}, "by"),
    ):
        assert shop.api.refused("POST", path, body)["field"] == field
    assert shop.api.ask("POST", path, {"note": "settled by telephone"}).status in (200, 204)
    assert shop.api.get("/v1/dead-letters", tenant=tenant)["data"] == []
    assert shop.api.get(f"/v1/deliveries/{dead['id']}")["state"] == "dead"
    (notice,) = shop.notices(tenant, "delivery.dead")
    assert notice["endpoint"] == endpoint["id"] and notice["delivery"] == dead["id"]


def test_only_a_dead_letter_can_be_dismissed(shop: Shop) -> None:
    _, _, event = shop.play()
    done = shop.finished(event)
    assert shop.api.refused("POST", f"/v1/dead-letters/{done['id']}/dismiss", {"note": "x"})["status"] in (
        404,
        409,
    )


def test_a_replay_delivers_again_what_its_filter_finds_and_a_dry_run_only_counts(shop: Shop) -> None:
    tenant = shop.tenant()
    broken, fine = shop.receiver.spot(500), shop.receiver.spot()
    endpoint = shop.endpoint(tenant, broken.url, policy=ONCE, event_types=["bad"])
    shop.endpoint(tenant, fine.url, event_types=["good"])
    events = [shop.publish(tenant, type="bad", data=n) for n in range(5)] + [
        shop.publish(tenant, type="good")
    ]
    dead = {shop.finished(event)["id"] for event in events}
    broken.replies = [Reply(200)]
    body: dict[str, Any] = {
        "filter": {"tenant": tenant, "state": "dead", "endpoint": endpoint["id"]},
        "dry_run": True,
    }

    def run(body: Any) -> Any:
        job = shop.api.post("/v1/replays", body, 202)
        assert job["id"].startswith("rpl_")
        return until(
            lambda: next(
                (j for j in [shop.api.get(f"/v1/replays/{job['id']}")] if j["state"] == "done"), None
            ),
            "replay",
        )

    dry = run(body)
    assert dry["matched"] == 5 and dry["created"] == 0 and dry["dry_run"] is True
    assert len(broken.seen) == 5
    done = run({**body, "dry_run": False})
    assert done["matched"] == 5 and done["created"] == 5
    seen = broken.wait(10)[5:]
    assert len({s["webhook-id"] for s in seen}) == 5 and all(s["webhook-replay"] == "1" for s in seen)
    assert sorted(s.body for s in seen) == sorted(s.body for s in broken.seen[:5])
    rows = list(shop.api.pages("/v1/deliveries", tenant=tenant, endpoint=endpoint["id"]))
    assert len(rows) == 10 and {row["replay_of"] for row in rows} - {None} == dead - {
        shop.delivery(events[-1])["id"]
    }
    assert len(fine.seen) == 1 and shop.api.get("/v1/dead-letters", tenant=tenant)["data"] == []
    again = run({**body, "dry_run": False})
    assert again["created"] == 0, "what was replayed is not a dead letter any more"


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "filter"), ({"filter": {"planet": "mars"}}, "filter.planet"), ({"filter": {"state": "lost"}}, "filter.state"),
     ({"filter": {"tenant": "acme"}, "dry_run": "yes"}, "dry_run"), ({"filter": {"since": "now"}}, "filter.since"),
     ({"filter": 7}, "filter"), ({"filter": {"tenant": "acme"}, "rate": -1}, "rate")],
)  # fmt: skip
def test_a_replay_that_means_nothing_is_a_422_with_its_field(shop: Shop, body: Any, field: str) -> None:
    problem = shop.api.refused("POST", "/v1/replays", body)
    assert problem["status"] == 422 and problem["field"] == field, problem


@pytest.mark.slow
def test_a_paused_endpoint_keeps_its_events_and_sends_them_in_order_when_it_goes_on(alone: Shop) -> None:
    tenant, spot = alone.tenant(), alone.receiver.spot()
    endpoint = alone.endpoint(tenant, spot.url)
    path = f"/v1/endpoints/{endpoint['id']}"
    before = lanes(alone)["parked"]
    assert alone.api.patch(path, {"status": "paused"})["status"] == "paused"
    events = [alone.publish(tenant, data=n) for n in range(5)]
    for event in events:
        parked = check("delivery", alone.reaches(alone.delivery(event)["id"], "parked"))
        assert parked["reason"] == "paused" and parked["attempts"] == 0
    until(lambda: lanes(alone)["parked"] == before + 5, "five more are parked")
    assert spot.seen == []
    assert alone.api.patch(path, {"status": "active"})["status"] == "active"
    assert {seen["webhook-id"] for seen in spot.wait(5)} == set(events)
    done = [alone.finished(event)["id"] for event in events]
    # Arrivals of a few at once may cross.
    starts = [alone.attempts(delivery)[0]["started_at"] for delivery in done]
    assert starts == sorted(starts)


def test_deleting_an_endpoint_cancels_what_is_open(shop: Shop) -> None:
    spot, endpoint, event = shop.play(500, policy=LATE)
    spot.wait(1)
    waiting = shop.reaches(shop.delivery(event)["id"], "retrying")
    shop.api.delete(f"/v1/endpoints/{endpoint['id']}")
    ended = check("delivery", shop.reaches(waiting["id"], "cancelled"))
    assert ended["reason"] == "deleted" and ended["finished_at"] is not None
    assert (
        shop.api.post("/v1/events", {"tenant": waiting["tenant"], "type": "a", "data": 1}, 202)["deliveries"]
        == 0
    )
    assert shop.api.refused("POST", f"/v1/deliveries/{waiting['id']}/resend")["status"] == 409


def test_deleting_an_endpoint_that_is_paused_cancels_its_parked_deliveries(shop: Shop) -> None:
    tenant = shop.tenant()
    endpoint = shop.endpoint(tenant, shop.receiver.spot().url)
    shop.api.patch(f"/v1/endpoints/{endpoint['id']}", {"status": "paused"})
    parked = shop.reaches(shop.delivery(shop.publish(tenant))["id"], "parked")
    shop.api.delete(f"/v1/endpoints/{endpoint['id']}")
    assert shop.reaches(parked["id"], "cancelled")["reason"] == "deleted"


@pytest.mark.slow
def test_each_unfinished_delivery_counts_once_in_the_lanes(alone: Shop) -> None:
    tenant = alone.tenant()
    hanging, late = alone.receiver.spot(Reply(delay_s=1.5)), alone.receiver.spot(500)
    alone.endpoint(tenant, hanging.url, event_types=["hang"], policy={"timeouts": {"first": 2, "retry": 5}})
    alone.endpoint(tenant, late.url, event_types=["late"], policy=LATE)
    before = lanes(alone)
    for number in range(3):
        alone.publish(tenant, type="hang", data=number)
        alone.publish(tenant, type="late", data=number)
    hanging.wait(3)
    late.wait(3)

    def changed() -> dict[str, int]:
        return {key: count - before[key] for key, count in lanes(alone).items()}

    until(
        lambda: changed() == {"in_flight": 3, "held": 3, "ready": 0, "scheduled": 3, "parked": 0},
        "three and three",
    )
    until(
        lambda: changed() == {"in_flight": 0, "held": 0, "ready": 0, "scheduled": 3, "parked": 0},
        "three are left",
    )


def test_a_test_call_reaches_the_endpoint_and_tells_how_it_went(shop: Shop) -> None:
    tenant, spot = shop.tenant(), shop.receiver.spot(Reply(418, body=b"teapot"))
    endpoint = shop.endpoint(tenant, spot.url, event_types=["document.*"])
    answer = shop.api.post(f"/v1/endpoints/{endpoint['id']}/test")
    seen = spot.one()
    assert seen.method == "POST" and seen["webhook-signature"].startswith("v1,")
    assert answer["status"] == 418 and answer["outcome"] == "refused"
