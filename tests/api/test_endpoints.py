"""/v1/endpoints"""

from __future__ import annotations

import re
from binascii import a2b_base64
from typing import Any

import pytest
from msgspec import structs

from surehook.core import hints, ids, limits
from surehook.core.signature import sign
from surehook.delivery import endpoints
from surehook.delivery.loading import read_all
from surehook.ports.transport import Answer
from tests.api.house import START, House

ON_SQLITE = True

NOBODY = "ep_01kjpy44e0f2tacmq49pkz57h6"


def test_a_new_endpoint_is_active_and_in_memory_before_the_answer(house: House) -> None:
    house.tenant()
    made = house.endpoint(
        policy={"profile": "yousign", "auto_retry": False},
        headers={"X-A": "1"},
        order="none",
        description="d",
    )

    assert (made["status"], made["policy"]) == ("active", {"profile": "yousign", "auto_retry": False})
    assert (made["headers"], made["order"], made["description"]) == ({"X-A": "1"}, "none", "d")
    assert ids.parse(ids.ENDPOINT, made["id"]) in house.engine.directory.routes


def test_secrets_are_shown_at_creation_and_rotation_only(house: House) -> None:
    house.tenant()
    made = house.endpoint()
    rotated = house.post(f"/v1/endpoints/{made['id']}/rotate-secret")
    elsewhere = [
        house.call("GET", "/v1/endpoints").text,
        house.call("GET", f"/v1/endpoints/{made['id']}").text,
        house.call("PATCH", f"/v1/endpoints/{made['id']}", json={"description": "x"}).text,
        house.call("POST", f"/v1/endpoints/{made['id']}/test").text,
    ]

    assert rotated["secret"] not in (None, made["secret"])
    assert not any("whsec_" in text for text in elsewhere)


@pytest.mark.parametrize(
    ("body", "overlap_s"),
    [(None, 86_400), ({}, 86_400), ({"overlap_s": 0}, 0), ({"overlap_s": 2_592_000}, 2_592_000)],
)
def test_a_rotation_lets_the_old_secret_sign_on_for_its_overlap(
    house: House, body: Any, overlap_s: int
) -> None:
    house.tenant()
    made = house.endpoint()
    house.post(f"/v1/endpoints/{made['id']}/rotate-secret", body)
    old, new = sorted(house.run(read_all(house.ledger)).secrets, key=lambda secret: secret.expires_at is None)

    assert (old.expires_at, new.expires_at) == (START + overlap_s * 1000, None)


@pytest.mark.parametrize("overlap_s", [-1, 2_592_001, "60", 1.5, True, None])
def test_an_overlap_is_bounded(house: House, overlap_s: Any) -> None:
    house.tenant()
    made = house.endpoint()
    problem = house.post(f"/v1/endpoints/{made['id']}/rotate-secret", {"overlap_s": overlap_s}, 422)

    assert problem["field"] == "overlap_s"


def test_active_secrets_are_bounded_until_an_overlap_ends(house: House) -> None:
    house.tenant()
    made = house.endpoint()
    for _ in range(endpoints.SECRETS_MAX - 1):
        house.post(f"/v1/endpoints/{made['id']}/rotate-secret")
    refused = house.post(f"/v1/endpoints/{made['id']}/rotate-secret", status=409)
    house.engine.clock.at += 86_400_000
    house.post(f"/v1/endpoints/{made['id']}/rotate-secret")

    assert refused["code"] == "too_many_secrets"


def test_a_tenant_has_as_many_endpoints_as_an_event_may_go_to(house: House) -> None:
    house.tenant()
    house.tenant("other")
    made = house.endpoint()
    known = house.engine.directory.routes[ids.parse(ids.ENDPOINT, made["id"])].endpoint
    for n in range(limits.TENANT_ENDPOINTS - 1):
        again = structs.replace(known, id=ids.uuid7(START, n.to_bytes(10, "big")))
        house.engine.directory.put_endpoint(again, (), house.engine.directory.version)
    body = {"tenant": "acme", "url": made["url"], "event_types": ["*"]}
    refused = house.post("/v1/endpoints", body, 409)

    assert (refused["code"], refused["field"]) == ("too_many_endpoints", "tenant")
    assert "10000" in refused["detail"]
    house.endpoint("other")


def test_pausing_and_activating_forgets_failures_and_reasons(house: House) -> None:
    house.tenant()
    made = house.endpoint()
    raw = ids.parse(ids.ENDPOINT, made["id"])
    house.run(
        house.ledger.change_endpoint(
            raw, {"status": "inactive", "reason": "failures", "failure_count": 20}, now=START
        )
    )
    house.engine.clock.at += 5
    paused = house.call("PATCH", f"/v1/endpoints/{made['id']}", json={"status": "paused"}).json()
    active = house.call("PATCH", f"/v1/endpoints/{made['id']}", json={"status": "active"}).json()

    assert (paused["status"], paused["reason"], paused["failure_count"]) == ("paused", None, 20)
    assert (active["status"], active["reason"], active["failure_count"]) == ("active", None, 0)
    assert active["updated_at"] == "2026-03-02T09:30:00.005Z"
    assert house.engine.directory.routes[raw].status == "active" and house.engine.woken


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"status": "inactive"}, "out_of_range", "status"),
        ({"status": "failure"}, "out_of_range", "status"),
        ({"status": None}, "wrong_type", "status"),
        ({"url": None}, "wrong_type", "url"),
        ({"url": "https://10.0.0.1/"}, "address_forbidden", "url"),
        ({"tenant": "other"}, "unknown_field", "tenant"),
        ({"secret": "x"}, "unknown_field", "secret"),
        ({"order": "subject"}, "order_not_available", "order"),
        ({"event_types": ["a b"]}, "invalid_filter", "event_types.0"),
        ({"policy": {"redirects": 9}}, "invalid_policy", "policy.redirects"),
        ({"headers": {"host": "x"}}, "invalid_header", "headers.host"),
        ({"headers": {"x-a": 1}}, "wrong_type", "headers.x-a"),
    ],
)
def test_a_bad_change_changes_nothing(house: House, change: Any, code: str, field: str) -> None:
    house.tenant()
    made = house.endpoint()
    response = house.call("PATCH", f"/v1/endpoints/{made['id']}", json=change)

    assert (response.status_code, response.json()["code"], response.json()["field"]) == (422, code, field)
    assert house.get(f"/v1/endpoints/{made['id']}") == {**made, "secret": None, "key_id": None}


def test_changes_replace_what_they_name(house: House) -> None:
    house.tenant()
    made = house.endpoint(policy="signing", description="d", headers={"x-a": "1"})
    change = {
        "url": "https://hooks.example.com/b", "event_types": ["document.*"], "policy": None, "headers": {},
        "description": None,
    }  # fmt: skip
    changed = house.call("PATCH", f"/v1/endpoints/{made['id']}", json=change).json()

    assert changed == {**made, **change, "secret": None, "key_id": None}
    assert house.engine.directory.routes[ids.parse(ids.ENDPOINT, made["id"])].target.url == change["url"]


def test_lists_can_be_cut_by_tenant_and_status(house: House) -> None:
    house.tenant("a")
    house.tenant("b")
    first, second = house.endpoint("a"), house.endpoint("b")
    house.call("PATCH", f"/v1/endpoints/{second['id']}", json={"status": "paused"})
    found = {
        query: [row["id"] for row in house.get(f"/v1/endpoints?{query}")["data"]]
        for query in ("tenant=a", "tenant=b", "status=paused", "tenant=a&status=paused", "status=failure")
    }

    assert found == {
        "tenant=a": [first["id"]], "tenant=b": [second["id"]], "status=paused": [second["id"]],
        "tenant=a&status=paused": [], "status=failure": [],
    }  # fmt: skip


def test_deleting_an_endpoint_cancels_its_open_deliveries_and_keeps_its_finished_ones(house: House) -> None:
    house.tenant()
    made, other = house.endpoint(), house.endpoint()
    _, (done,) = house.publish(made)
    house.finish(done, "delivered")
    many = [house.publish(made)[1][0] for _ in range(12)]
    _, (kept,) = house.publish(other)
    response = house.call("DELETE", f"/v1/endpoints/{made['id']}")
    seen = [house.get(f"/v1/deliveries/{delivery}") for delivery in many]

    assert response.status_code == 204
    assert {(row["state"], row["reason"]) for row in seen} == {("cancelled", "deleted")}
    assert house.get(f"/v1/deliveries/{done}")["state"] == "delivered"
    assert house.get(f"/v1/deliveries/{kept}")["state"] == "scheduled"
    assert house.engine.removed == [], "nothing is left for a look"
    assert house.call("GET", f"/v1/endpoints/{made['id']}").status_code == 404


def test_a_long_backlog_of_a_deleted_endpoint_is_cancelled_after_the_answer(house: House) -> None:
    house.tenant()
    made = house.endpoint()
    many = endpoints.END_ROWS * endpoints.END_ROUNDS + 3  # as one event, which is quicker to write
    house.publish(*[made] * many)
    house.call("DELETE", f"/v1/endpoints/{made['id']}")

    assert sum(lane["ready"] for lane in house.get("/v1/lanes")["data"]) == 0


@pytest.mark.parametrize(
    "endpoint",
    [NOBODY, "ep_", "ep_01kjpy44e0f2tacmq49pkz57hI", "x" * 10_240, "%00", "dlv_01kjpy44e0f2tacmq49pkz57h6"],
)
@pytest.mark.parametrize(
    ("method", "suffix", "body"),
    [("GET", "", None), ("PATCH", "", {}), ("PATCH", "", {"status": "paused"}), ("DELETE", "", None), ("POST", "/rotate-secret", None), ("POST", "/test", None)],
)  # fmt: skip
def test_an_endpoint_that_is_not_there_is_not_found(
    house: House, endpoint: str, method: str, suffix: str, body: Any
) -> None:
    response = house.call(
        method, f"/v1/endpoints/{endpoint}{suffix}", **({} if body is None else {"json": body})
    )

    assert (response.status_code, response.json()["code"]) == (404, "not_found")


# -- the test call ------------------------------------------------------------------------------------------


def headers_of(block: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in block.decode().split("\r\n") if line)
    return {name.lower(): value.strip() for name, _, value in lines}


def test_a_test_call_is_a_real_signed_request_and_leaves_no_trace(house: House) -> None:
    house.tenant()
    made = house.endpoint(headers={"X-A": "1"})
    house.call("PATCH", f"/v1/endpoints/{made['id']}", json={"status": "paused"})
    attempt = house.post(f"/v1/endpoints/{made['id']}/test")
    (request,) = house.engine.transport.sent
    sent = headers_of(request.headers + request.private)
    key = a2b_base64(made["secret"].removeprefix("whsec_"))

    expected = sign(key, sent["webhook-id"], int(sent["webhook-timestamp"]), request.body).decode()
    assert sent["webhook-signature"] == expected
    assert (sent["x-a"], sent["webhook-attempt"], sent["webhook-delivery-id"]) == (
        "1",
        "1",
        attempt["delivery"],
    )
    assert request.target.url == made["url"] and b'"type":"surehook.test"' in request.body
    assert (attempt["outcome"], attempt["status"], attempt["response"]["body"]) == ("delivered", 200, "ok")
    assert house.get("/v1/deliveries")["data"] == house.get("/v1/events")["data"] == []


def test_a_test_call_is_signed_with_every_active_secret_newest_first(house: House) -> None:
    house.tenant()
    made = house.endpoint()
    house.engine.clock.at += 1
    rotated = house.post(f"/v1/endpoints/{made['id']}/rotate-secret", {"overlap_s": 60})
    house.post(f"/v1/endpoints/{made['id']}/test")
    house.engine.clock.at += 60_000
    house.post(f"/v1/endpoints/{made['id']}/test")
    both, one = (headers_of(request.headers + request.private) for request in house.engine.transport.sent)
    body = house.engine.transport.sent[0].body
    keys = [a2b_base64(secret.removeprefix("whsec_")) for secret in (rotated["secret"], made["secret"])]

    assert both["webhook-signature"].split(" ") == [
        sign(key, both["webhook-id"], int(both["webhook-timestamp"]), body).decode() for key in keys
    ]
    assert len(one["webhook-signature"].split(" ")) == len(one["webhook-key-id"].split(" ")) == 1


def test_a_test_calls_hint_is_of_the_endpoints_policy(house: House) -> None:
    house.tenant()
    house.engine.transport.answer = Answer(status=410)
    said = [
        house.post(f"/v1/endpoints/{house.endpoint(policy=policy)['id']}/test")["hint"]
        for policy in ("standard", "yousign")
    ]
    assert said == [f"{hints.BY_STATUS[410]} {rule}" for rule in (hints.GONE, hints.NOT_GONE)]


@pytest.mark.parametrize(
    ("answer", "outcome", "error"),
    [
        (Answer(failure="timeout", unknown=True), "timed_out", "timeout"),
        (Answer(failure="connect_refused"), "unreachable", "connect_refused"),
        (Answer(failure="address_forbidden"), "blocked", "address_forbidden"),
        (Answer(status=500), "refused", None),
        (Answer(status=410), "gone", None),
        (Answer(status=302), "redirected", None),
    ],
)
def test_a_failed_test_call_says_why(house: House, answer: Answer, outcome: str, error: str | None) -> None:
    house.tenant()
    made = house.endpoint()
    house.engine.transport.answer = answer
    attempt = house.post(f"/v1/endpoints/{made['id']}/test")

    assert (attempt["outcome"], attempt["error"], attempt["status"]) == (outcome, error, answer.status)
    assert attempt["hint"]
    assert house.get(f"/v1/endpoints/{made['id']}")["status"] == "active"


# -- switching auto_retry off ---------------------------------------------------------------------------------


def test_switching_auto_retry_off_ends_pending_retries_but_the_guaranteed_one(house: House) -> None:
    house.tenant()
    made = house.endpoint()
    untried, refused, timed_out, held = (house.publish(made)[1][0] for _ in range(4))
    house.settle(refused, due_at=START + 60_000)
    house.settle(timed_out, outcome="timed_out", status=None, due_at=START + 60_000)
    house.settle(held, due_at=START)
    house.take(held)
    house.call("PATCH", f"/v1/endpoints/{made['id']}", json={"policy": {"auto_retry": False}})
    states = [
        house.get(f"/v1/deliveries/{delivery}")["state"] for delivery in (untried, refused, timed_out, held)
    ]

    assert states == ["scheduled", "dead", "retrying", "sending"]
    (notice,) = house.get("/v1/notices?kind=delivery.dead")["data"]
    assert notice["delivery"] == refused


def test_it_ends_parked_retries_as_well_but_for_a_first_call_whose_time_ran_out(house: House) -> None:
    house.tenant()
    made = house.endpoint()
    untried, refused, late, broken = (house.publish(made)[1][0] for _ in range(4))
    house.settle(refused, parked="breaker")
    house.settle(late, outcome="unreachable", status=None, error="connect_timeout", parked="breaker")
    house.settle(broken, outcome="unreachable", status=None, error="connect_refused", parked="paused")
    house.call("PATCH", f"/v1/endpoints/{made['id']}", json={"policy": {"auto_retry": False}})
    states = [
        house.get(f"/v1/deliveries/{delivery}")["state"] for delivery in (untried, refused, late, broken)
    ]

    assert states == ["scheduled", "dead", "parked", "dead"]


def test_an_event_types_policy_does_the_same_for_endpoints_without_one_of_their_own(house: House) -> None:
    house.tenant()
    house.post("/v1/event-types", {"name": "document.signed"}, 201)
    follows, own = house.endpoint(), house.endpoint(policy="standard")
    _, deliveries = house.publish(follows, own)
    for delivery in deliveries:
        house.settle(delivery, due_at=START + 60_000)
    house.call(
        "PATCH",
        "/v1/event-types/document.signed",
        json={"policy": {"auto_retry": False, "on_exhausted": "drop"}},
    )
    states = [house.get(f"/v1/deliveries/{delivery}")["state"] for delivery in deliveries]

    assert states == ["dropped", "retrying"]


def test_an_endpoint_shows_which_secrets_sign_and_nothing_of_them(house: House) -> None:
    house.tenant()
    made = house.endpoint()
    house.engine.clock.at += 1_000
    house.post(f"/v1/endpoints/{made['id']}/rotate-secret", {"overlap_s": 60})
    secrets = f"/v1/endpoints/{made['id']}/secrets"
    new, old = house.get(secrets)["data"]
    assert (new["signs_until"], old["created_at"]) == (None, made["created_at"])
    assert old["signs_until"] is not None and new.keys() == old.keys() == {
        "created_at",
        "signs_until",
        "key_id",
    }
    house.engine.clock.at += 60_000
    assert house.get(secrets) == {"data": [new], "next": None}


def test_answers_say_by_which_id_a_request_names_its_secrets(house: House) -> None:
    """Where one is made, in the list of those that sign, and in `webhook-key-id`: newest first."""
    house.tenant()
    made = house.endpoint()
    house.engine.clock.at += 1_000
    rotated = house.post(f"/v1/endpoints/{made['id']}/rotate-secret", {"overlap_s": 60})
    signing = [one["key_id"] for one in house.get(f"/v1/endpoints/{made['id']}/secrets")["data"]]
    house.post(f"/v1/endpoints/{made['id']}/test", {})

    assert signing == [rotated["key_id"], made["key_id"]]
    named = re.search(rb"webhook-key-id: (.*?)\r\n", house.engine.transport.sent[-1].headers)
    assert named is not None and named[1].decode().split() == signing


def test_of_an_endpoint_that_is_not_there_no_secrets_are_listed(house: House) -> None:
    house.tenant()
    made = house.endpoint()
    house.call("DELETE", f"/v1/endpoints/{made['id']}")
    assert house.call("GET", f"/v1/endpoints/{made['id']}/secrets").status_code == 404
