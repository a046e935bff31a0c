"""Every list: its envelope, its pages, its filters, and the queries that are refused."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.e2e.calling import Caller
from tests.e2e.shapes import check
from tests.e2e.shop import Shop

LISTS = {
    "/v1/tenants": [],
    "/v1/event-types": [],
    "/v1/endpoints": ["tenant", "status"],
    "/v1/events": ["tenant", "type", "subject", "correlation_id", "since", "until"],
    "/v1/deliveries": ["tenant", "endpoint", "state", "type", "outcome", "since", "until"],
    "/v1/dead-letters": ["tenant", "endpoint", "type", "outcome", "since", "until"],
    "/v1/notices": ["tenant", "endpoint", "kind", "since"],
    "/v1/policies": [],
    "/v1/breakers": [],
    "/v1/lanes": [],
}
GOOD = {
    "tenant": "acme", "type": "document.signed", "subject": "doc", "correlation_id": "c", "since": "2026-01-01T00:00:00Z",
    "until": "2100-01-01T00:00:00.000Z", "state": "dead", "status": "active", "outcome": "refused", "kind": "delivery.dead",
    "endpoint": "ep_01m7yzjtp2fxeafje1rtd5vgwk",
}  # fmt: skip
FILTERS = [(path, name) for path, names in LISTS.items() for name in names]


@pytest.mark.parametrize("path", LISTS)
def test_a_list_is_data_and_next(api: Caller, path: str) -> None:
    page = api.get(path)
    assert list(page) == ["data", "next"] and isinstance(page["data"], list) and len(page["data"]) <= 50


@pytest.mark.parametrize(("path", "name"), FILTERS)
def test_every_filter_of_the_page_is_there_and_given_twice_it_is_a_422(
    api: Caller, path: str, name: str
) -> None:
    value = quote(GOOD[name])
    if name == "tenant":  # an empty list is refused where there is no such tenant
        assert api.ask("POST", "/v1/tenants", {"id": GOOD[name], "name": "Acme"}).status in (201, 409)
    assert list(api.get(f"{path}?{name}={value}")) == ["data", "next"]
    problem = api.refused("GET", f"{path}?{name}={value}&{name}={value}")
    assert problem["status"] == 422 and problem["field"] == name, problem


@pytest.mark.parametrize("path", ["/v1/events", "/v1/deliveries", "/v1/tenants", "/v1/notices"])
@pytest.mark.parametrize(
    ("query", "field"),
    [("limit=0", "limit"), ("limit=201", "limit"), ("limit=-1", "limit"), ("limit=x", "limit"), ("limit=1.5", "limit"),
     ("limit=", "limit"), ("limit=5&limit=5", "limit"), ("cursor=nonsense", "cursor"), ("cursor=%00", "cursor"),
     ("cursor=a&cursor=a", "cursor"), ("sort=asc", "sort"), ("page=2", "page")],
)  # fmt: skip
def test_a_query_that_means_nothing_is_a_422_with_its_field(
    api: Caller, path: str, query: str, field: str
) -> None:
    problem = api.refused("GET", f"{path}?{query}")
    assert problem["status"] == 422 and problem["field"] == field, problem


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [("/v1/deliveries", "state=lost", "state"), ("/v1/deliveries", "outcome=odd", "outcome"),
     ("/v1/deliveries", "endpoint=acme", "endpoint"), ("/v1/deliveries", "since=yesterday", "since"),
     ("/v1/events", "until=2026-13-01T00:00:00Z", "until"), ("/v1/events", "since=2026-01-01", "since"),
     ("/v1/endpoints", "status=dead", "status")],
)  # fmt: skip
def test_a_filter_outside_its_closed_list_is_a_422(api: Caller, path: str, query: str, field: str) -> None:
    problem = api.refused("GET", f"{path}?{query}")
    assert problem["status"] == 422 and problem["field"] == field, problem


def test_pages_hold_every_row_once_and_newest_first(shop: Shop) -> None:
    tenant = shop.tenant()
    event = {"tenant": tenant, "type": "a", "data": 1}
    made = [answer["id"] for answer in shop.api.post("/v1/events/batch", [event] * 120, 202)]
    rows = list(shop.api.pages("/v1/events", tenant=tenant))
    assert sorted(row["id"] for row in rows) == sorted(made)
    assert [row["accepted_at"] for row in rows] == sorted((row["accepted_at"] for row in rows), reverse=True)
    assert list(shop.api.pages("/v1/events", tenant=tenant, limit=7)) == rows
    page = shop.api.get("/v1/events", tenant=tenant, limit=120)
    assert len(page["data"]) == 120 and page["next"] is None
    assert len(shop.api.get("/v1/events", tenant=tenant)["data"]) == 50


def test_a_page_turned_while_rows_come_in_neither_repeats_nor_skips(shop: Shop) -> None:
    tenant = shop.tenant()
    made = [shop.publish(tenant) for _ in range(6)]
    page = shop.api.get("/v1/events", tenant=tenant, limit=3)
    shop.publish(tenant)
    rest = shop.api.get("/v1/events", tenant=tenant, limit=3, cursor=page["next"])
    assert [row["id"] for row in page["data"] + rest["data"]] == made[::-1]


def test_a_cursor_of_another_list_is_refused(shop: Shop) -> None:
    tenant = shop.tenant()
    for _ in range(2):
        shop.endpoint(tenant, "http://127.0.0.1:9999/x")
        shop.publish(tenant)
    cursor = shop.api.get("/v1/events", limit=1)["next"]
    assert shop.api.refused("GET", f"/v1/deliveries?cursor={quote(cursor)}")["field"] == "cursor"


def test_events_are_found_by_each_filter(shop: Shop) -> None:
    tenant = shop.tenant()
    plain = shop.publish(tenant, type="document.sent")
    full = shop.publish(tenant, subject="doc_7", correlation_id="case-7")
    at = {id_: shop.api.get(f"/v1/events/{id_}")["accepted_at"] for id_ in (plain, full)}
    expected: list[tuple[dict[str, Any], list[str]]] = [
        ({"type": "document.sent"}, [plain]),
        ({"subject": "doc_7"}, [full]),
        ({"correlation_id": "case-7"}, [full]),
        ({"subject": "doc_8"}, []),
        ({"since": at[plain]}, [full, plain]),
        ({"until": "2020-01-01T00:00:00Z"}, []),
        ({"since": "2100-01-01T00:00:00Z"}, []),
    ]
    for query, ids in expected:
        rows = shop.api.get("/v1/events", tenant=tenant, **query)["data"]
        assert [check("event", row)["id"] for row in rows] == ids, query


def test_deliveries_are_found_by_each_filter(shop: Shop) -> None:
    tenant = shop.tenant()
    policy = {"schedule": {"fixed": []}}
    good = shop.endpoint(tenant, shop.receiver.spot().url, policy=policy, event_types=["good"])["id"]
    bad = shop.endpoint(tenant, shop.receiver.spot(500).url, policy=policy, event_types=["bad"])["id"]
    late = shop.endpoint(
        tenant, shop.receiver.spot(500).url, policy={"schedule": {"fixed": [900]}}, event_types=["late"]
    )["id"]
    held = shop.endpoint(tenant, shop.receiver.spot().url, event_types=["held"])["id"]
    shop.api.patch(f"/v1/endpoints/{held}", {"status": "paused"})
    found = {
        type_: shop.delivery(shop.publish(tenant, type=type_))["id"]
        for type_ in ("good", "bad", "late", "held")
    }
    for type_, state in {"good": "delivered", "bad": "dead", "late": "retrying", "held": "parked"}.items():
        shop.reaches(found[type_], state)
    expected: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["held", "late", "bad", "good"]),
        ({"endpoint": good}, ["good"]),
        ({"endpoint": late}, ["late"]),
        ({"state": "dead"}, ["bad"]),
        ({"state": "delivered"}, ["good"]),
        ({"state": "retrying"}, ["late"]),
        ({"state": "parked"}, ["held"]),
        ({"state": "scheduled"}, []),
        ({"state": "cancelled"}, []),
        ({"type": "bad"}, ["bad"]),
        ({"outcome": "refused"}, ["late", "bad"]),
        ({"outcome": "delivered"}, ["good"]),
        ({"outcome": "refused", "state": "retrying", "endpoint": bad}, []),
        ({"until": "2020-01-01T00:00:00Z"}, []),
    ]
    for query, types in expected:
        rows = list(shop.api.pages("/v1/deliveries", tenant=tenant, limit=2, **query))
        assert [check("delivery", row)["id"] for row in rows] == [found[type_] for type_ in types], query
    assert [row["id"] for row in shop.api.pages("/v1/dead-letters", tenant=tenant)] == [found["bad"]]
