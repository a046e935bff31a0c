"""The profiles named after their documents, with their waits made short and everything else left as it is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.calling import until
from tests.e2e.receivers import Reply, Spot
from tests.e2e.shapes import check
from tests.e2e.shop import Shop


def quick(profile: str, *waits: float, **more: Any) -> dict[str, Any]:
    return {"profile": profile, "schedule": {"fixed": list(waits)}, "jitter": None, **more}


def to(spot: Spot, status: int = 302) -> Reply:
    return Reply(status, (("Location", spot.url),))


# -- yousign -------------------------------------------------------------------------------------------------


def test_yousign_counts_retries_from_zero_in_a_header_of_its_own(shop: Shop) -> None:
    spot, _, event = shop.play(500, 500, 200, policy=quick("yousign", 0.2, 0.2))
    spot.wait(3)
    assert [seen["X-Yousign-Retry-Count"] for seen in spot.seen] == ["0", "1", "2"]
    assert [seen["webhook-retry-count"] for seen in spot.seen] == ["0", "1", "2"]
    assert shop.finished(event)["state"] == "delivered"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_yousign_follows_two_redirects_with_the_same_method_and_body(shop: Shop, status: int) -> None:
    end = shop.receiver.spot()
    middle = shop.receiver.spot(Reply(status, (("Location", end.path),)))
    spot, _, event = shop.play(to(middle, status), policy=quick("yousign", 0.2))
    done = shop.finished(event)
    assert done["state"] == "delivered" and done["attempts"] == 1
    seen = [spot.one(), middle.one(), end.one()]
    assert {s.method for s in seen} == {"POST"} and len({s.body for s in seen}) == 1
    assert len({(s["webhook-id"], s["webhook-signature"]) for s in seen}) == 1


def test_yousign_never_calls_a_third_redirect(shop: Shop) -> None:
    never = shop.receiver.spot()
    third = shop.receiver.spot(to(never))
    second = shop.receiver.spot(to(third))
    spot, _, event = shop.play(to(second), policy=quick("yousign", 0.2))
    dead = shop.finished(event)
    assert (dead["state"], dead["outcome"], dead["attempts"]) == ("dead", "redirected", 2)
    assert len(spot.seen) == len(second.seen) == len(third.seen) == 2 and never.seen == []


@pytest.mark.parametrize("status", [300, 302, 304, 305])
def test_yousign_takes_any_other_3xx_for_a_success(shop: Shop, status: int) -> None:
    spot, _, event = shop.play(status, policy=quick("yousign"))
    assert shop.finished(event)["state"] == "delivered" and len(spot.seen) == 1


def test_yousign_without_auto_retry_tries_once_and_no_more(shop: Shop) -> None:
    spot, _, event = shop.play(500, policy=quick("yousign", 0.2, auto_retry=False))
    dead = shop.finished(event)
    assert (dead["state"], dead["attempts"], len(spot.seen)) == ("dead", 1, 1)


def test_a_first_call_that_timed_out_is_tried_again_even_without_auto_retry(shop: Shop) -> None:
    policy = quick("yousign", 0.2, 0.2, auto_retry=False, timeouts={"first": 0.3, "retry": 3})
    spot, _, event = shop.play(Reply(hang=True), Reply(200, delay_s=0.6), policy=policy)
    first, second = spot.wait(2)
    done = shop.finished(event)
    assert (done["state"], done["attempts"]) == ("delivered", 2), "the second call has the long timeout"
    assert first["X-Yousign-Retry-Count"] == "0" and second["X-Yousign-Retry-Count"] == "1"
    spot, _, event = shop.play(Reply(hang=True), 500, policy=policy)
    dead = shop.finished(event)
    assert (dead["state"], dead["attempts"], len(spot.seen)) == ("dead", 2, 2)


def test_switching_auto_retry_off_ends_pending_retries(shop: Shop) -> None:
    spot, endpoint, event = shop.play(500, policy=quick("yousign", 900))
    spot.wait(1)
    waiting = shop.reaches(shop.delivery(event)["id"], "retrying")
    shop.api.patch(f"/v1/endpoints/{endpoint['id']}", {"policy": quick("yousign", 900, auto_retry=False)})
    assert shop.reaches(waiting["id"], "dead")["attempts"] == 1


def test_yousign_obeys_neither_retry_after_nor_verdicts_nor_410(shop: Shop) -> None:
    final = Reply(422, (("Content-Type", "application/problem+json"),), b'{"retryable": false}')
    spot, endpoint, event = shop.play(
        Reply(503, (("Retry-After", "30"),)), final, 410, 200, policy=quick("yousign", 0.2, 0.2, 0.2)
    )
    done = shop.finished(event)
    assert done["state"] == "delivered" and len(spot.seen) == 4
    assert shop.api.get(f"/v1/endpoints/{endpoint['id']}")["status"] == "active"


# -- the breaker ---------------------------------------------------------------------------------------------


def test_a_breaker_opens_parks_probes_and_drains(shop: Shop) -> None:
    tenant, spot = shop.tenant(), shop.receiver.spot(500)
    policy = quick(
        "yousign", *[0.5] * 30, breaker={"window": 600, "failure_ratio": 0.4, "calls": 4, "probe_after": 1}
    )
    shop.endpoint(tenant, f"{spot.url}?customer=7", policy=policy)
    failed = [shop.publish(tenant, data=n) for n in range(4)]
    spot.wait(4)

    def breaker() -> Any:
        return next(
            (check("breaker", row) for row in shop.api.pages("/v1/breakers") if row["tenant"] == tenant), None
        )

    found = until(lambda: (b := breaker()) and b["state"] != "closed" and b, "open")
    assert found["url"] == spot.url, "without its query"
    assert (
        found["reason"] == "failures"
        and found["window_s"] == 600
        and found["failures"] >= 4 <= found["calls"]
    )
    parked = [shop.reaches(shop.delivery(shop.publish(tenant, data=n))["id"], "parked") for n in range(5)]
    assert {row["reason"] for row in parked} == {"breaker"} and {row["attempts"] for row in parked} == {0}
    count = len(spot.seen)
    until(lambda: len(spot.seen) > count, "a probe", 5)
    assert len(spot.seen) <= count + 2, "one probe a second and no more"
    spot.replies = [Reply(200)]
    for row in parked:
        done = shop.reaches(row["id"], "delivered", seconds=15)
        assert done["attempts"] <= 3, "waiting for the breaker spends no retry"
    kinds = [row["kind"] for row in shop.notices(tenant)]
    assert "breaker.opened" in kinds and "breaker.closed" in kinds
    assert breaker() is None or breaker()["state"] == "closed"
    for event in failed:
        assert shop.finished(event)["state"] == "delivered"


def test_a_breaker_is_closed_by_hand(shop: Shop) -> None:
    tenant, spot = shop.tenant(), shop.receiver.spot(500)
    policy = quick(
        "yousign", *[0.5] * 30, breaker={"window": 600, "failure_ratio": 0.4, "calls": 4, "probe_after": 900}
    )
    endpoint = shop.endpoint(tenant, f"{spot.url}?customer=7", policy=policy)
    path, place = f"/v1/endpoints/{endpoint['id']}", {"tenant": tenant, "url": spot.url}
    failed = [shop.publish(tenant, data=n) for n in range(4)]
    until(lambda: shop.api.get(path)["breaker"] is not None, "open")
    assert shop.api.post("/v1/breakers/probe", place)["state"] != "closed"
    spot.replies = [Reply(200)]
    assert check("breaker", shop.api.post("/v1/breakers/close", place))["state"] == "closed"
    assert shop.api.get(path)["breaker"] is None
    for event in failed:
        assert shop.finished(event)["state"] == "delivered"


# -- insigner ------------------------------------------------------------------------------------------------


def test_insigner_goes_inactive_after_twenty_failures_and_a_patch_wakes_it(shop: Shop) -> None:
    tenant, spot = shop.tenant(), shop.receiver.spot(500)
    endpoint = shop.endpoint(tenant, spot.url, policy=quick("insigner", *[0.05] * 8))
    path = f"/v1/endpoints/{endpoint['id']}"
    one, two = (shop.publish(tenant, data=n) for n in range(2))
    until(lambda: len(spot.seen) == 18, "two events to fail nine times")
    assert shop.finished(one)["state"] == shop.finished(two)["state"] == "dead"
    three = shop.publish(tenant, data=3)
    off = until(lambda: (e := shop.api.get(path))["status"] == "inactive" and e, "inactive")
    assert check("endpoint", off)["failure_count"] == 20 and off["reason"]
    assert len(shop.notices(tenant, "endpoint.disabled")) == 1
    parked = shop.reaches(shop.delivery(three)["id"], "parked")
    assert parked["reason"] == "inactive" and parked["attempts"] == 2 and len(spot.seen) == 20
    four = shop.reaches(shop.delivery(shop.publish(tenant, data=4))["id"], "parked")
    assert four["reason"] == "inactive"
    spot.replies = [Reply(200)]
    assert shop.api.patch(path, {"status": "active"})["status"] == "active"
    for row in (parked, four):
        shop.reaches(row["id"], "delivered", seconds=15)
    until(lambda: shop.api.get(path)["failure_count"] == 0, "the count is back at 0")


def test_insigner_names_the_delivery_the_same_over_retries_and_on_a_replay(shop: Shop) -> None:
    spot, _, event = shop.play(500, 500, policy=quick("insigner", 0.1))
    dead = shop.finished(event)
    new = shop.api.post(f"/v1/deliveries/{dead['id']}/resend", status=201)
    spot.wait(3)
    seen = spot.wait(4)
    assert {s["X-InSigner-Delivery-Id"] for s in seen} == {dead["id"]}
    assert [s["webhook-delivery-id"] for s in seen] == [dead["id"]] * 2 + [new["id"]] * 2


# -- webhooks_uno --------------------------------------------------------------------------------------------


def test_without_retries_a_failed_delivery_is_dropped_at_once(shop: Shop) -> None:
    policy = {"profile": "webhooks_uno", "schedule": {"wait_factor": {"retries": 0}}}
    spot, endpoint, event = shop.play(500, policy=policy)
    ended = check("delivery", shop.finished(event))
    assert (ended["state"], ended["attempts"], ended["outcome"], len(spot.seen)) == (
        "dropped",
        1,
        "refused",
        1,
    )
    assert shop.api.get(f"/v1/endpoints/{endpoint['id']}")["status"] == "active"


def test_drop_drops_after_the_last_retry(shop: Shop) -> None:
    spot, _, event = shop.play(500, policy=quick("webhooks_uno", 0.1, on_exhausted="drop"))
    ended = shop.finished(event)
    assert (ended["state"], ended["attempts"], len(spot.seen)) == ("dropped", 2, 2)


def test_an_endpoint_in_failure_keeps_everything_and_activation_delivers_it(shop: Shop) -> None:
    spot, endpoint, event = shop.play(500, policy=quick("webhooks_uno", 0.1))
    path, tenant = f"/v1/endpoints/{endpoint['id']}", endpoint["tenant"]
    kept = check("delivery", shop.reaches(shop.delivery(event)["id"], "parked"))
    assert kept["reason"] == "failure" and kept["attempts"] == 2
    assert shop.api.get(path)["status"] == "failure"
    assert len(shop.notices(tenant, "endpoint.failure")) == 1
    later = [shop.reaches(shop.delivery(shop.publish(tenant, data=n))["id"], "parked") for n in range(3)]
    assert {row["reason"] for row in later} == {"failure"} and len(spot.seen) == 2
    # The third failure is the first of a new schedule.
    spot.replies = [Reply(500), Reply(500), Reply(500), Reply(200)]
    shop.api.patch(path, {"status": "active"})
    for row in (kept, *later):
        shop.reaches(row["id"], "delivered", seconds=15)
    assert shop.api.get(path)["status"] == "active"


# -- policies by event type ----------------------------------------------------------------------------------


def test_the_event_types_policy_holds_where_the_endpoint_has_none(shop: Shop) -> None:
    shop.api.post("/v1/event-types", {"name": "policy.quick", "policy": {"schedule": {"fixed": []}}}, 201)
    shop.api.post("/v1/event-types", {"name": "policy.named", "policy": quick("insigner", 0.1)}, 201)
    tenant, spot, own = shop.tenant(), shop.receiver.spot(500), shop.receiver.spot(500)
    shop.endpoint(tenant, spot.url, event_types=["policy.*"])
    shop.endpoint(tenant, own.url, event_types=["policy.*"], policy=quick("standard", 0.1, 0.1))

    def attempts(event: str) -> dict[str, int]:
        rows = [shop.reaches(row["id"], "dead") for row in shop.deliveries(event)]
        return {row["endpoint"]: row["attempts"] for row in rows}

    assert sorted(attempts(shop.publish(tenant, type="policy.quick")).values()) == [1, 3]
    assert sorted(attempts(shop.publish(tenant, type="policy.named")).values()) == [2, 3]
    assert all(seen.header("X-InSigner-Delivery-Id") for seen in spot.seen[1:])
    assert not any(seen.header("X-InSigner-Delivery-Id") for seen in own.seen)


@pytest.mark.slow
def test_an_undelivered_event_is_reported_after_its_time(shop: Shop) -> None:
    policy = quick("signing", 900, escalate_after=1)
    spot, endpoint, event = shop.play(500, policy=policy)
    spot.wait(1)
    (notice,) = until(lambda: shop.notices(endpoint["tenant"], "delivery.overdue"), "a notice", 25)
    assert notice["delivery"] == shop.delivery(event)["id"]


def test_a_delivery_past_its_age_ends(shop: Shop) -> None:
    spot, _, event = shop.play(500, policy={**quick("standard", 0.2, 900), "max_age": 3})
    dead = shop.finished(event)
    assert dead["state"] == "dead" and dead["attempts"] == len(spot.seen) == 2, (
        "a wait past the age is not begun"
    )
