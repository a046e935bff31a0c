"""Notices, policies, lanes, breakers, health."""

from __future__ import annotations

import pytest

from surehook.core.profiles import PROFILES
from tests.api.house import START, House

ON_SQLITE = True


def test_notices_can_be_cut_by_kind_and_instant(house: House) -> None:
    house.tenant("b")
    house.notice("delivery.dead", START)
    house.notice("breaker.opened", START + 1000)
    kinds = {
        query: [row["kind"] for row in house.get(f"/v1/notices?{query}")["data"]]
        for query in (
            "",
            "kind=delivery.dead",
            "since=2026-03-02T09:30:01Z",
            "tenant=acme",
            "tenant=b",
            "kind=not.known",
        )
    }

    assert kinds == {
        "": ["breaker.opened", "delivery.dead"], "kind=delivery.dead": ["delivery.dead"],
        "since=2026-03-02T09:30:01Z": ["breaker.opened"], "tenant=acme": ["breaker.opened", "delivery.dead"],
        "tenant=b": [], "kind=not.known": [],
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_every_profile_is_served_and_previewed(house: House, name: str) -> None:
    policy = house.get(f"/v1/policies/{name}")
    by_name = house.post("/v1/policies/preview", {"policy": name})
    by_value = house.post("/v1/policies/preview", {"policy": policy})

    assert policy["name"] == policy["profile"] == name and policy in house.get("/v1/policies")["data"]
    assert by_name["policy"] == policy and by_name == by_value


def test_an_unknown_policy_is_not_found_and_the_known_ones_are_named(house: House) -> None:
    response = house.call("GET", "/v1/policies/standart")

    assert (response.status_code, response.json()["code"]) == (404, "not_found")
    assert "standard" in response.json()["hint"]


def test_a_preview_shows_what_was_changed(house: House) -> None:
    preview = house.post(
        "/v1/policies/preview",
        {"policy": {"profile": "webhooks_uno", "schedule": {"wait_factor": {"factor": 150, "retries": 5}}}},
    )

    assert preview["policy"]["name"] is None and len(preview["timeline"]) == 6


def test_health_is_about_the_process_and_readiness_about_the_ledger(house: House) -> None:
    ready = house.call("GET", "/readyz", key=None)
    house.engine.warned = "no process serves the lane retry"
    warned = house.call("GET", "/readyz", key=None)
    house.engine.unready = "the lease is running out"
    unready = house.call("GET", "/readyz", key=None)

    assert (ready.status_code, ready.json()) == (200, {"status": "ready", "warning": None})
    assert (warned.status_code, warned.json()["warning"]) == (200, "no process serves the lane retry")
    assert (unready.status_code, unready.json()["code"], unready.json()["detail"]) == (
        503, "not_ready", "the lease is running out",
    )  # fmt: skip
    assert unready.headers["retry-after"] == "1"
    assert house.call("GET", "/healthz", key=None).json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", "/v1/events", "GET, HEAD, POST"),
        ("GET", "/v1/events/batch", "POST"),
        ("DELETE", "/v1/events/evt_x", "GET, HEAD"),
        ("POST", "/v1/lanes", "GET, HEAD"),
        ("GET", "/v1/policies/preview", "POST"),
        ("PUT", "/v1/endpoints/ep_x", "DELETE, GET, HEAD, PATCH"),
        ("GET", "/v1/endpoints/ep_x/test", "POST"),
        ("OPTIONS", "/v1/endpoints", "GET, HEAD, POST"),
        ("TRACE", "/healthz", "GET, HEAD"),
        ("POST", "/docs", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(house: House, method: str, path: str, allow: str) -> None:
    response = house.call(method, path)

    assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")
    assert response.headers["allow"] == allow


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v2/events",
        "/v1/",
        "/v1/eventss",
        "/v1/events/",
        "/v1/events/a/b",
        "//v1/events",
        "/docs/x",
        "/problems/none",
    ],
)
def test_an_unknown_address_is_a_problem(house: House, path: str) -> None:
    response = house.call("GET", path)

    assert (response.status_code, response.json()["code"]) == (404, "not_found")
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/healthz", "/v1/lanes", "/openapi.json"])
def test_head_is_answered_like_get(house: House, path: str) -> None:
    assert house.call("HEAD", path).status_code == 200
