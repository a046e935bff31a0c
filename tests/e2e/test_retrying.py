"""Deliveries that fail: when they are tried again, how each answer is judged, and where it ends."""

from __future__ import annotations

import email.utils
import json
import socket
import threading
import time
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from tests.e2e.receivers import Reply, Seen, dead_url
from tests.e2e.shapes import check
from tests.e2e.shop import QUICK, Shop

ONCE = {"schedule": {"fixed": []}}
EARLY_S = 0.005  # the receiver's clock is read a little after the sender's


def instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def verdict(status: int, **fields: Any) -> Reply:
    return Reply(status, (("Content-Type", "application/problem+json"),), json.dumps(fields).encode())


def gaps(seen: list[Seen]) -> list[float]:
    return [b.at - a.at for a, b in pairwise(seen)]


def test_failures_are_tried_again_at_their_times_and_then_kept_as_a_dead_letter(shop: Shop) -> None:
    policy = {"schedule": {"fixed": [0.3, 0.6]}, "jitter": None}
    spot, _, event = shop.play(500, policy=policy)
    seen = spot.wait(3)
    dead = check("delivery", shop.finished(event))
    assert (dead["state"], dead["attempts"], dead["outcome"], dead["lane"]) == ("dead", 3, "refused", "retry")
    for gap, wait in zip(gaps(seen), (0.3, 0.6), strict=True):
        assert wait - EARLY_S <= gap < wait + 0.25
    history = [check("attempt", row) for row in shop.attempts(dead["id"])]
    assert [row["number"] for row in history] == [1, 2, 3]
    assert [row["lane"] for row in history] == ["first", "retry", "retry"]
    assert all(row["status"] == 500 and row["outcome"] == "refused" and not row["unknown"] for row in history)
    for row, following in pairwise(history):
        assert instant(row["next_at"]) <= instant(following["started_at"])
    assert history[-1]["next_at"] is None
    assert len(spot.seen) == 3


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_a_success(shop: Shop, status: int) -> None:
    _, _, event = shop.play(status)
    done = check("delivery", shop.finished(event))
    assert (done["state"], done["outcome"], done["attempts"], done["due_at"]) == (
        "delivered",
        "delivered",
        1,
        None,
    )


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(400, "refused"), (401, "refused"), (404, "refused"), (408, "refused"), (425, "refused"), (429, "throttled"),
     (500, "refused"), (503, "refused"), (599, "refused"), (301, "redirected"), (304, "redirected")],
)  # fmt: skip
def test_other_statuses_fail_and_are_tried_again(shop: Shop, status: int, outcome: str) -> None:
    spot, _, event = shop.play(status, 200)
    spot.wait(2)
    done = shop.finished(event)
    assert done["state"] == "delivered" and done["attempts"] == 2
    first = shop.attempts(done["id"])[0]
    assert first["outcome"] == outcome and first["status"] == status and first["hint"]


def test_a_redirect_is_not_followed_where_the_policy_follows_none(shop: Shop) -> None:
    other = shop.receiver.spot()
    _, _, event = shop.play(Reply(302, (("Location", other.url),)), policy=ONCE)
    assert shop.finished(event)["outcome"] == "redirected" and other.seen == []


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_retry_after_is_honoured_where_it_is_later_than_the_schedule(shop: Shop, status: int) -> None:
    spot, _, event = shop.play(Reply(status, (("Retry-After", "1"),)), 200)
    (gap,) = gaps(spot.wait(2))
    assert 1 - EARLY_S <= gap < 1.5
    assert shop.attempts(shop.finished(event)["id"])[0]["outcome"] == "throttled"


def test_retry_after_may_be_a_date_and_is_capped(shop: Shop) -> None:
    date = email.utils.formatdate(time.time() + 3600, usegmt=True)
    capped = {**QUICK, "honour_retry_after": 1}
    for value in (date, "86400"):
        spot, _, _ = shop.play(Reply(503, (("Retry-After", value),)), 200, policy=capped)
        (gap,) = gaps(spot.wait(2))
        assert 1 - EARLY_S <= gap < 1.5, value


def test_retry_after_never_makes_a_retry_earlier_and_nonsense_is_ignored(shop: Shop) -> None:
    for value in ("0", "-5", "soon", "1e9", "99999999999999999999999"):
        policy = {
            "schedule": {"fixed": [0.3]},
            "jitter": None,
            "honour_retry_after": 0.3 if value[0] == "9" else 3600,
        }
        spot, _, _ = shop.play(Reply(503, (("Retry-After", value),)), 200, policy=policy)
        (gap,) = gaps(spot.wait(2))
        assert 0.3 - EARLY_S <= gap < 0.7, value


def test_410_ends_at_once_and_makes_the_endpoint_inactive(shop: Shop) -> None:
    spot, endpoint, event = shop.play(410)
    dead = shop.finished(event)
    assert (dead["state"], dead["outcome"], dead["attempts"]) == ("dead", "gone", 1)
    shown = check("endpoint", shop.api.get(f"/v1/endpoints/{endpoint['id']}"))
    assert shown["status"] == "inactive" and shown["reason"]
    assert {row["kind"] for row in shop.notices(endpoint["tenant"])} >= {"endpoint.disabled", "delivery.dead"}
    parked = shop.reaches(shop.delivery(shop.publish(endpoint["tenant"]))["id"], "parked")
    assert parked["reason"] == "inactive"
    spot.replies = [Reply(200)]
    shop.api.patch(f"/v1/endpoints/{endpoint['id']}", {"status": "active"})
    shop.reaches(parked["id"], "delivered")


@pytest.mark.parametrize("status", [400, 401, 403, 409, 413, 422])
def test_a_receivers_final_word_is_obeyed(shop: Shop, status: int) -> None:
    spot, _, event = shop.play(verdict(status, code="unknown_schema", retryable=False))
    dead = shop.finished(event)
    assert (dead["state"], dead["outcome"], dead["attempts"], len(spot.seen)) == ("dead", "rejected", 1, 1)


@pytest.mark.parametrize(
    "reply",
    [verdict(422, retryable=True), verdict(404, retryable=False), verdict(500, retryable=False), verdict(422, retryable="false"),
     Reply(422, (("Content-Type", "application/json"),), b'{"retryable": false}'),
     Reply(422, (("Content-Type", "application/problem+json"),), b'{"retryable": fal')],
)  # fmt: skip
def test_other_words_are_not_final(shop: Shop, reply: Reply) -> None:
    _, _, event = shop.play(reply, 200)
    done = shop.finished(event)
    assert done["state"] == "delivered" and done["attempts"] == 2
    assert shop.attempts(done["id"])[0]["outcome"] == "refused"


def test_trouble_about_the_key_parks_events_and_ends_none(shop: Shop) -> None:
    tenant = shop.tenant()
    spot = shop.receiver.spot(verdict(401, code="bad_signature", retryable=False))
    policy = {**QUICK, "breaker": {"probe_after": 1}}
    endpoint = shop.endpoint(tenant, spot.url, policy=policy)
    first = shop.reaches(shop.delivery(shop.publish(tenant))["id"], "parked")
    others = [shop.reaches(shop.delivery(shop.publish(tenant))["id"], "parked") for _ in range(3)]
    assert first["reason"] == "key" and {row["reason"] for row in others} == {"key"}
    (breaker,) = [
        check("breaker", row) for row in shop.api.pages("/v1/breakers") if row["tenant"] == tenant
    ]  # fmt: skip
    assert (
        breaker["state"] in ("open", "half_open")
        and breaker["reason"] == "key"
        and breaker["url"] == spot.url
    )
    assert any(row["kind"] == "breaker.opened" for row in shop.notices(tenant))
    spot.replies = [Reply(200)]
    for row in (first, *others):
        shop.reaches(row["id"], "delivered", seconds=15)
    assert shop.notices(tenant, "delivery.dead") == []
    assert shop.api.get(f"/v1/endpoints/{endpoint['id']}")["status"] == "active"


# -- no answer -----------------------------------------------------------------------------------------------


def test_silence_is_a_timeout_whose_effect_is_unknown(shop: Shop) -> None:
    policy = {**QUICK, "timeouts": {"first": 0.3, "retry": 0.6, "connect": 0.3}, "adaptive": False}
    spot, _, event = shop.play(Reply(hang=True), Reply(hang=True), 200, policy=policy)
    spot.wait(3)
    done = shop.finished(event)
    rows = shop.attempts(done["id"])
    assert [row["outcome"] for row in rows] == ["timed_out", "timed_out", "delivered"]
    assert [row["unknown"] for row in rows] == [True, True, False] and rows[0]["status"] is None
    assert 290 <= rows[0]["timings_ms"]["total"] < 900 and 590 <= rows[1]["timings_ms"]["total"] < 1_500
    # By the sender's own clock, whatever this machine delays: the wait begins when the silence was given up, to the step.
    for row, following in pairwise(rows):
        given_up = instant(row["started_at"]) + row["timings_ms"]["total"] / 1000
        assert abs(instant(row["next_at"]) - given_up - 0.2) < 0.05
        assert instant(row["next_at"]) <= instant(following["started_at"])
    assert rows[0]["timings_ms"]["first_byte"] is None
    assert done["unknown"] is False


def test_a_connection_that_ends_without_an_answer_is_broken(shop: Shop) -> None:
    _, _, event = shop.play(Reply(drop=True), 200)
    row = shop.attempts(shop.finished(event)["id"])[0]
    assert (row["outcome"], row["unknown"], row["status"]) == ("broken", True, None)


def test_nobody_there_is_unreachable_with_the_cause(shop: Shop) -> None:
    tenant = shop.tenant()
    shop.endpoint(tenant, dead_url(), policy=ONCE)
    dead = shop.finished(shop.publish(tenant))
    (row,) = shop.attempts(dead["id"])
    assert (row["outcome"], row["unknown"], row["status"]) == ("unreachable", False, None)
    assert "refused" in row["error"] and row["hint"]


def test_a_name_that_does_not_exist_is_unreachable(shop: Shop) -> None:
    tenant = shop.tenant()
    shop.endpoint(
        tenant, "http://no-such-host.invalid/x", policy={**ONCE, "timeouts": {"first": 1, "retry": 5}}
    )
    (row,) = shop.attempts(shop.finished(shop.publish(tenant))["id"])
    assert row["outcome"] == "unreachable" and row["error"].startswith("dns")


def test_what_is_not_http_is_garbled(shop: Shop) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"220 mail.example.com ESMTP\r\n")
                connection.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        tenant = shop.tenant()
        shop.endpoint(tenant, f"http://127.0.0.1:{listening.getsockname()[1]}/", policy=ONCE)
        dead = shop.finished(shop.publish(tenant))
        thread.join()
    assert dead["outcome"] == "garbled"


def test_a_redirect_to_a_forbidden_address_is_blocked(shop: Shop) -> None:
    policy = {"profile": "yousign", "schedule": {"fixed": []}}
    _, _, event = shop.play(Reply(307, (("Location", "http://10.0.0.1:8000/"),)), policy=policy)
    assert shop.finished(event)["outcome"] == "blocked"


def test_a_large_answer_is_cut_and_still_a_success(shop: Shop) -> None:
    _, _, event = shop.play(Reply(200, body=b"x" * 3_000_000))
    done = shop.finished(event)
    (row,) = shop.attempts(done["id"])
    assert done["state"] == "delivered" and row["response"]["truncated"] is True
    assert len(row["response"]["body"]) < 200_000
