"""Answers a person can act on: misspelt tenants, ids of another kind, hidden secrets, when a parked delivery goes on."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from surehook.api import openapi, pages
from surehook.core import ids, redact
from tests.api.house import START, House

LISTS = ("/v1/deliveries", "/v1/dead-letters", "/v1/events", "/v1/endpoints", "/v1/notices")


@pytest.mark.parametrize("path", LISTS)
def test_a_list_of_a_tenant_that_is_none_is_refused_with_the_one_that_was_meant(
    house: House, path: str
) -> None:
    house.tenant("acme")
    answer = house.call("GET", f"{path}?tenant=acmee")
    problem = answer.json()

    assert (answer.status_code, problem["code"], problem["field"]) == (422, "unknown_tenant", "tenant")
    assert problem["hint"] == "did you mean acme?"
    assert house.get(f"{path}?tenant=acme")["data"] == []


def test_a_replay_of_a_tenant_that_is_none_is_refused(house: House) -> None:
    answer = house.call("POST", "/v1/replays", json={"filter": {"tenant": "acmee"}, "dry_run": True})

    assert (answer.status_code, answer.json()["field"]) == (422, "filter.tenant")


def test_an_id_of_another_kind_is_named(house: House) -> None:
    event = ids.text(ids.EVENT, b"\x01" * 16)
    path = house.call("GET", f"/v1/deliveries/{event}")
    query = house.call("GET", f"/v1/deliveries?endpoint={event}")

    assert (path.status_code, path.json()["detail"]) == (
        404, "this is an event id (evt_…), a delivery id (dlv_…) is wanted",
    )  # fmt: skip
    assert (query.status_code, query.json()["detail"]) == (
        422, "this is an event id (evt_…), an endpoint id (ep_…) is wanted",
    )  # fmt: skip
    for written in ("evt_", "evt_short", "nothing", "xyz_" + "0" * 26):
        assert "there is no delivery" in house.call("GET", f"/v1/deliveries/{written}").json()["detail"]


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("Authorization", True), ("X-Api-Key", True), ("api-key", True), ("Cookie", True), ("X-Auth-Token", True),
        ("X-Hub-Signature", True), ("client_secret", True), ("Ocp-Apim-Subscription-Key", True), ("X-Tokens", True),
        ("X-Region", False), ("Idempotency-Key", False), ("X-Routing-Key", False), ("X-Tenant", False), ("Key", False),
        ("X-Acme-Pass", True), ("X-Pin", True), ("X-Passcode", True), ("X-Compass", False), ("X-Ping", False),
        ("X-Author", False), ("Accept", False),
    ],
)  # fmt: skip
def test_a_secret_is_known_by_the_name_of_its_header(name: str, is_secret: bool) -> None:
    assert redact.is_secret(name) is is_secret


def test_a_secret_in_a_header_is_sent_and_never_shown(house: House) -> None:
    house.tenant()
    made = house.endpoint(headers={"X-Api-Key": "topsecret", "X-Region": "eu"})
    shown = [made, house.get(f"/v1/endpoints/{made['id']}"), *house.get("/v1/endpoints")["data"]]

    assert all(each["headers"] == {"X-Api-Key": redact.HIDDEN, "X-Region": "eu"} for each in shown)
    house.post(f"/v1/endpoints/{made['id']}/test")
    assert b"topsecret" in house.engine.transport.sent[-1].headers + house.engine.transport.sent[-1].private


def test_headers_that_are_written_back_as_they_were_read_stay_what_they_are(house: House) -> None:
    house.tenant()
    path = f"/v1/endpoints/{house.endpoint(headers={'X-Api-Key': 'topsecret'})['id']}"
    read = house.get(path)["headers"]
    changed = house.call("PATCH", path, json={"headers": {**read, "X-Region": "us"}})
    assert changed.json()["headers"] == {"X-Api-Key": redact.HIDDEN, "X-Region": "us"}
    house.post(f"{path}/test")
    assert b"topsecret" in house.engine.transport.sent[-1].headers + house.engine.transport.sent[-1].private

    invented = house.call("PATCH", path, json={"headers": {"X-Other-Key": redact.HIDDEN}})
    assert (invented.status_code, invented.json()["code"]) == (422, "invalid_header")


def test_what_a_receiver_answered_is_shown_without_its_cookies(house: House) -> None:
    house.tenant()
    _, (delivery,) = house.publish(house.endpoint())
    house.finish(delivery, headers=b"set-cookie: session=abc\r\nserver: nginx\r\n")

    (attempt,) = house.get(f"/v1/deliveries/{delivery}/attempts")["data"]
    assert attempt["response"]["headers"] == {"set-cookie": redact.HIDDEN, "server": "nginx"}


def test_a_parked_delivery_is_due_when_it_is_looked_at_next(house: House) -> None:
    house.tenant()
    policy: Any = {"breaker": {"window": 60, "failure_ratio": 0.1, "calls": 1, "probe_after": 300}}
    endpoint = house.endpoint(policy={"profile": "standard", **policy})
    event, (delivery, other) = house.publish(endpoint, house.endpoint())
    house.settle(delivery, parked="breaker")
    house.settle(other, parked="paused")
    route = house.engine.directory.routes[ids.parse(ids.ENDPOINT, endpoint["id"])]
    open_breaker(route.breaker)

    shown = {each["id"]: each["due_at"] for each in house.get("/v1/deliveries")["data"]}
    assert shown == {delivery: "2026-03-02T09:35:00.000Z", other: None}
    assert house.get(f"/v1/deliveries/{delivery}")["due_at"] == shown[delivery]
    assert {
        each["id"]: each["due_at"] for each in house.get(f"/v1/events/{event}/deliveries")["data"]
    } == shown


def open_breaker(breaker: Any) -> None:
    breaker.state, breaker.opened_at, breaker.probe_at = "open", START, START + 300_000


def test_the_reference_has_a_table_of_the_fields_of_every_body() -> None:
    document, page = openapi.document(), pages.docs()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if "requestBody" not in operation:
                continue
            start = page.index(f'<details id="{operation["operationId"]}"')
            shown = page[start : page.index("</details>", start)]
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            name = schema.get("items", schema)["$ref"].removeprefix(openapi.REF)
            for field in document["components"]["schemas"][name]["properties"]:
                assert f"<td><code>{field}</code></td>" in shown, (method, path, field)
    inner = re.findall(r"<code>(authentication\.[a-z_]+|filter\.[a-z_]+)</code>", page)
    assert {"authentication.password", "authentication.token", "filter.tenant"} <= set(inner)
    assert json.dumps(document)
