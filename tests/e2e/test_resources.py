"""Tenants, event types and endpoints on a real server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.calling import Caller
from tests.e2e.shapes import INSTANT, check
from tests.e2e.shop import Shop


def test_a_tenant_is_made_read_changed_listed_and_deleted(api: Caller) -> None:
    made = api.post("/v1/tenants", {"id": "one_of-9", "name": "One"}, 201)
    assert made["id"] == "one_of-9" and made["name"] == "One"
    assert api.get("/v1/tenants/one_of-9") == made
    changed = api.patch("/v1/tenants/one_of-9", {"name": "Two"})
    assert changed == {**made, "name": "Two"}
    assert changed in list(api.pages("/v1/tenants"))
    api.delete("/v1/tenants/one_of-9")
    assert api.refused("GET", "/v1/tenants/one_of-9")["status"] == 404


def test_a_tenant_without_an_id_gets_one(api: Caller) -> None:
    assert api.post("/v1/tenants", {"name": "No id"}, 201)["id"].startswith("ten_")


@pytest.mark.parametrize("bad", ["", "A", "a b", "é", "x" * 65, "a/b", 7, "a\n"])
def test_an_id_that_is_no_tenant_id_is_refused_with_its_field(api: Caller, bad: Any) -> None:
    problem = api.refused("POST", "/v1/tenants", {"id": bad, "name": "x"})
    assert problem["status"] == 422 and problem["field"] == "id"


def test_a_tenant_is_made_once(api: Caller) -> None:
    api.post("/v1/tenants", {"id": "once", "name": "x"}, 201)
    assert api.refused("POST", "/v1/tenants", {"id": "once", "name": "x"})["status"] == 409


def test_an_event_type_is_made_and_read(api: Caller) -> None:
    given = {
        "name": "invoice.paid",
        "description": "Paid.",
        "schema": {"type": "object"},
        "policy": "signing",
    }
    answer = api.ask("POST", "/v1/event-types", given)
    if answer.status == 422:  # schemas may not be checked yet; then they are refused, never ignored
        assert answer.json["field"] == "schema"
        del given["schema"]
        answer = api.ask("POST", "/v1/event-types", given)
    assert answer.status == 201, answer
    made = answer.json
    assert {key: made[key] for key in given} == given
    assert api.get("/v1/event-types/invoice.paid") == made
    assert made in list(api.pages("/v1/event-types"))
    assert api.refused("POST", "/v1/event-types", given)["status"] == 409
    assert api.refused("GET", "/v1/event-types/invoice.lost")["status"] == 404


def test_an_endpoint_has_the_shape_and_shows_its_secret_only_when_made_and_rotated(shop: Shop) -> None:
    api, tenant = shop.api, shop.tenant()
    url = "http://127.0.0.1:9999/hook?a=b"
    made = check("endpoint", shop.endpoint(tenant, url, event_types=["document.*"], description="d"))
    assert made["secret"].startswith("whsec_")
    expected = {
        "tenant": tenant, "url": url, "event_types": ["document.*"], "policy": None, "status": "active",
        "reason": None, "failure_count": 0, "order": "none", "headers": {}, "description": "d",
    }  # fmt: skip
    assert {key: made[key] for key in expected} == expected
    path = f"/v1/endpoints/{made['id']}"
    hidden = {**made, "secret": None, "key_id": None}
    assert check("endpoint", api.get(path)) == hidden
    assert api.get("/v1/endpoints", tenant=tenant) == {"data": [hidden], "next": None}
    changed = check("endpoint", api.patch(path, {"description": None}))
    assert changed["secret"] is None and changed["description"] is None
    rotated = check("endpoint", api.post(f"{path}/rotate-secret"))
    assert rotated["secret"].startswith("whsec_") and rotated["secret"] != made["secret"]
    assert api.get(path)["secret"] is None
    api.delete(path)
    assert api.refused("GET", path)["status"] == 404
    assert api.get("/v1/endpoints", tenant=tenant) == {"data": [], "next": None}


def test_every_field_of_an_endpoint_can_be_changed(shop: Shop) -> None:
    made = shop.endpoint(shop.tenant(), "http://127.0.0.1:9999/a")
    change = {
        "url": "http://127.0.0.1:9999/b", "event_types": ["a.*", "b"], "headers": {"x-mine": "1"}, "description": "new",
        "policy": {"profile": "yousign", "auto_retry": False}, "status": "paused",
    }  # fmt: skip
    changed = check("endpoint", shop.api.patch(f"/v1/endpoints/{made['id']}", change))
    assert {key: changed[key] for key in change} == change
    assert changed["created_at"] == made["created_at"] and changed["updated_at"] >= made["updated_at"]
    back = shop.api.patch(f"/v1/endpoints/{made['id']}", {"policy": None, "status": "active"})
    assert back["policy"] is None and back["status"] == "active"
    assert INSTANT.fullmatch(back["updated_at"])


def test_endpoints_are_listed_by_status(shop: Shop) -> None:
    tenant = shop.tenant()
    one, two = (shop.endpoint(tenant, "http://127.0.0.1:9999/x")["id"] for _ in range(2))
    shop.api.patch(f"/v1/endpoints/{one}", {"status": "paused"})
    for status, expected in {"paused": [one], "active": [two], "inactive": [], "failure": []}.items():
        rows = shop.api.get("/v1/endpoints", tenant=tenant, status=status)["data"]
        assert [row["id"] for row in rows] == expected, status
    assert shop.api.refused("GET", "/v1/endpoints?status=asleep")["field"] == "status"


BAD_ENDPOINTS: list[tuple[dict[str, Any], str]] = [
    ({"order": "subject"}, "order"),
    ({"order": "strict"}, "order"),
    ({"event_types": []}, "event_types"),
    ({"event_types": ["*.x"]}, "event_types"),
    ({"event_types": "document"}, "event_types"),
    ({"url": "ftp://127.0.0.1/x"}, "url"),
    ({"url": "http://10.0.0.1:8000/"}, "url"),
    ({"url": "http://169.254.169.254/latest"}, "url"),
    ({"url": "http://2130706433:9999/"}, "url"),
    ({"url": "http://[::ffff:10.0.0.1]/"}, "url"),
    ({"url": "http://user:pw@127.0.0.1:9999/"}, "url"),
    ({"url": "nonsense"}, "url"),
    ({"url": None}, "url"),
    ({"policy": "standart"}, "policy"),
    ({"policy": {"profile": "standard", "patience": 3}}, "policy.patience"),
    ({"policy": {"timeouts": {"first": -1}}}, "policy.timeouts.first"),
    ({"policy": {"schedule": {"fixed": [1, "x"]}}}, "policy.schedule.fixed"),
    ({"headers": {"host": "evil"}}, "headers"),
    ({"headers": {"webhook-id": "evil"}}, "headers"),
    ({"headers": {"x-a": "a\r\nb: c"}}, "headers"),
    ({"tenant": "nobody-there"}, "tenant"),
    ({"secret": "whsec_mine"}, "secret"),
    ({"retries": 3}, "retries"),
]


@pytest.mark.parametrize(("change", "field"), BAD_ENDPOINTS)
def test_an_endpoint_that_cannot_be_kept_is_a_422_with_its_field(
    shop: Shop, change: dict[str, Any], field: str
) -> None:
    good = {"tenant": "shared-bad", "url": "http://127.0.0.1:9999/x", "event_types": ["*"]}
    shop.api.ask("POST", "/v1/tenants", {"id": "shared-bad", "name": "x"})
    problem = shop.api.refused("POST", "/v1/endpoints", {**good, **change})
    assert problem["status"] == 422, problem
    assert (problem["field"] or "").startswith(field), problem


@pytest.mark.parametrize("missing", ["tenant", "url", "event_types"])
def test_what_an_endpoint_needs_is_named_where_it_is_missing(api: Caller, missing: str) -> None:
    body = {"tenant": "shared-bad", "url": "http://127.0.0.1:9999/x", "event_types": ["*"]}
    del body[missing]
    problem = api.refused("POST", "/v1/endpoints", body)
    assert problem["status"] == 422 and problem["field"] == missing


def test_a_name_that_does_not_resolve_is_accepted_and_judged_at_each_attempt(shop: Shop) -> None:
    made = shop.endpoint(shop.tenant(), "https://no-such-host.invalid/hook")
    assert made["status"] == "active"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"status": "inactive"}, "status"),
        ({"status": "failure"}, "status"),
        ({"order": "subject"}, "order"),
        ({"id": "ep_x"}, "id"),
        ({"tenant": "other"}, "tenant"),
        ({"url": None}, "url"),
        ({"url": "http://10.0.0.1:8000/"}, "url"),
        ({"secret": "x"}, "secret"),
    ],
)
def test_what_cannot_be_changed_on_an_endpoint_is_a_422(
    shop: Shop, change: dict[str, Any], field: str
) -> None:
    made = shop.endpoint(shop.tenant(), "http://127.0.0.1:9999/x")
    problem = shop.api.refused("PATCH", f"/v1/endpoints/{made['id']}", change)
    assert problem["status"] == 422 and problem["field"] == field
    assert shop.api.get(f"/v1/endpoints/{made['id']}") == {**made, "secret": None, "key_id": None}


CREATING = [
    ("POST", "/v1/tenants", {"name": "x"}),
    ("POST", "/v1/event-types", {"name": "some.type"}),
    ("POST", "/v1/replays", {"filter": {"tenant": "x"}}),
    ("POST", "/v1/policies/preview", {"policy": "standard"}),
]


@pytest.mark.parametrize(("method", "path", "body"), CREATING)
def test_unknown_fields_are_refused_and_not_ignored(api: Caller, method: str, path: str, body: Any) -> None:
    problem = api.refused(method, path, {**body, "surprise": 1})
    assert (problem["status"], problem["code"], problem["field"]) == (422, "unknown_field", "surprise")


@pytest.mark.parametrize(
    "path",
    ["/v1/tenants/nobody", "/v1/endpoints/ep_01m7yzjtp2fxeafje1rtd5vgwk", "/v1/events/evt_01m7yzjtpaem8asakf7ec54n7g",
     "/v1/deliveries/dlv_01m7yzjtpaem8asaq2psvckn7k", "/v1/policies/none", "/v1/event-types/none", "/v1/none", "/none",
     "/v1/replays/rpl_01m7yzjtpaem8asaq2psvckn7k", "/v1/deliveries/dlv_01m7yzjtpaem8asaq2psvckn7k/attempts",
     "/v1/events/evt_01m7yzjtpaem8asakf7ec54n7g/deliveries"],
)  # fmt: skip
def test_what_is_not_there_is_a_404_problem(api: Caller, path: str) -> None:
    problem = api.refused("GET", path)
    assert problem["status"] == 404 and problem["code"] == "not_found"


def test_another_method_is_a_405_that_says_which_are_there(api: Caller) -> None:
    answer = api.ask("PUT", "/v1/tenants", {})
    assert answer.status == 405 and "GET" in answer.headers["allow"] and "POST" in answer.headers["allow"]
    assert api.refused("DELETE", "/v1/events/batch")["status"] == 405


def test_calls_without_a_valid_key_are_401_problems(stranger: Caller) -> None:
    for method, path in [
        ("GET", "/v1/tenants"),
        ("POST", "/v1/events"),
        ("POST", "/v1/events/batch"),
        ("GET", "/v1/lanes"),
    ]:
        for headers in (
            [],
            [("Authorization", "Bearer wrong-key-0123456789")],
            [("Authorization", "Basic eDp5")],
        ):
            answer = stranger.ask(method, path, {} if method == "POST" else None, headers=headers)
            assert answer.status == 401 and answer.json["code"] == "unauthorized", (
                method,
                path,
                headers,
                answer,
            )
            assert answer.headers["www-authenticate"].startswith("Bearer")
