"""/v1/tenants and /v1/event-types"""

from __future__ import annotations

import pytest

from surehook.core import limits
from tests.api.house import House

ON_SQLITE = True


def test_a_tenant_is_made_under_the_callers_id_or_one_of_ours(house: House) -> None:
    response = house.call("POST", "/v1/tenants", json={"id": "acme_1-x", "name": "Acme"})
    made = house.post("/v1/tenants", {"name": "Other"}, 201)

    assert response.status_code == 201 and response.headers["location"] == "/v1/tenants/acme_1-x"
    assert house.get("/v1/tenants/acme_1-x") == response.json()
    assert made["id"].startswith("ten_") and house.get(f"/v1/tenants/{made['id']}") == made


def test_a_tenant_exists_once(house: House) -> None:
    house.tenant()
    problem = house.post("/v1/tenants", {"id": "acme", "name": "again"}, 409)

    assert problem["code"] == "tenant_exists"


def test_a_tenant_is_changed_field_by_field(house: House) -> None:
    house.tenant()
    house.call("PATCH", "/v1/tenants/acme", json={"strict": True})
    changed = house.call("PATCH", "/v1/tenants/acme", json={"name": "New"}).json()
    untouched = house.call("PATCH", "/v1/tenants/acme", json={}).json()

    assert (changed["name"], changed["strict"]) == ("New", True) and untouched == changed
    assert house.engine.directory.tenants["acme"].strict


def test_a_tenant_in_use_stays(house: House) -> None:
    house.tenant()
    endpoint = house.endpoint()
    refused = house.call("DELETE", "/v1/tenants/acme")
    house.call("DELETE", f"/v1/endpoints/{endpoint['id']}")
    removed = house.call("DELETE", "/v1/tenants/acme")

    assert (refused.status_code, refused.json()["code"]) == (409, "tenant_in_use")
    assert (removed.status_code, removed.content) == (204, b"")
    assert house.call("GET", "/v1/tenants/acme").status_code == 404


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "tenant",
    ["nobody", "a" * 10_240, "%00", "'; drop table tenant; --", "%F0%9F%92%A9", "..", "%2e%2e%2fetc"],
)
def test_a_tenant_that_is_not_there_is_not_found(house: House, method: str, tenant: str) -> None:
    kwargs = {"json": {"name": "x"}} if method == "PATCH" else {}
    response = house.call(method, f"/v1/tenants/{tenant}", **kwargs)

    assert response.status_code in (404, 405)  # `..` leads to another path
    assert response.json()["code"] in ("not_found", "method_not_allowed")


def test_an_event_type_is_registered_once_and_changed(house: House) -> None:
    new = {"name": "document.signed", "description": "d", "schema": {"type": "object"}, "policy": "signing"}
    made = house.post("/v1/event-types", new, 201)
    again = house.post("/v1/event-types", new, 409)
    patch = {
        "description": None,
        "policy": {"profile": "yousign", "auto_retry": False},
        "schema_version": "2",
    }
    changed = house.call("PATCH", "/v1/event-types/document.signed", json=patch).json()

    assert (made["schema"], made["policy"], made["schema_version"]) == ({"type": "object"}, "signing", "1")
    assert again["code"] == "event_type_exists"
    assert changed == {**made, **patch}
    assert house.get("/v1/event-types/document.signed") == changed


def test_the_schemas_of_all_event_types_together_are_bounded(house: House) -> None:
    """Each process keeps them read, in twelve times their bytes: 600 of 230 KB took 1.7 GB, after each restart as well."""
    long = {"description": "x" * (255 << 10)}
    made = 0
    while (
        response := house.call("POST", "/v1/event-types", json={"name": f"t{made}", "schema": long})
    ).is_success:
        made += 1
    assert (response.status_code, response.json()["code"]) == (409, "too_many_schemas")
    assert made == limits.SCHEMAS_BYTES // (255 << 10)
    house.post("/v1/event-types", {"name": "plain"}, 201)
    assert house.call("PATCH", "/v1/event-types/t0", json={"description": "d"}).is_success
    assert house.call("PATCH", "/v1/event-types/plain", json={"schema": long}).status_code == 409
    assert house.call("PATCH", "/v1/event-types/t0", json={"schema": None}).is_success
    assert house.call("PATCH", "/v1/event-types/plain", json={"schema": long}).is_success


def test_schemas_of_several_versions_stand_side_by_side_and_move_on(house: House) -> None:
    first, second = {"type": "object"}, {"type": "object", "required": ["id"]}
    made = house.post("/v1/event-types", {"name": "a", "schema": first, "schemas": {"2": second}}, 201)
    moved_on = house.call(
        "PATCH",
        "/v1/event-types/a",
        json={"schema": None, "schema_version": "2", "schemas": {"1": first, "2": second}},
    ).json()
    one_for_all = house.call("PATCH", "/v1/event-types/a", json={"schemas": None}).json()

    assert (made["schema"], made["schema_version"], made["schemas"]) == (first, "1", {"2": second})
    assert moved_on == {
        **made,
        "schema": None,
        "schema_version": "2",
        "schemas": {"1": first, "2": second},
    } and one_for_all == {**moved_on, "schemas": None}
    assert house.get("/v1/event-types/a") == one_for_all


@pytest.mark.parametrize(
    ("given", "code", "field"),
    [
        ({"schemas": {"2": {"type": "text"}}}, "invalid_schema", "schemas.2"),
        ({"schemas": {"1": {}}, "schema": {}}, "invalid_schema", "schemas.1"),
        ({"schemas": {"": {}}}, "out_of_range", "schemas"),
        ({"schemas": {"v" * 65: {}}}, "out_of_range", "schemas"),
        ({"schemas": {str(n): {} for n in range(21)}}, "out_of_range", "schemas"),
        ({"schemas": {"2": None}}, "wrong_type", "schemas.2"),
        ({"schemas": []}, "wrong_type", "schemas"),
    ],
)
def test_schemas_that_cannot_be_are_refused(
    house: House, given: dict[str, object], code: str, field: str
) -> None:
    refused = house.post("/v1/event-types", {"name": "a", **given}, 422)
    assert (refused["code"], refused["field"].partition(".[")[0]) == (code, field)


@pytest.mark.parametrize("changes", [{"schema_version": "2"}, {"schemas": {"1": {}}}])
def test_a_change_cannot_give_a_version_two_schemas(house: House, changes: dict[str, object]) -> None:
    made = house.post("/v1/event-types", {"name": "a", "schema": {}, "schemas": {"2": {}}}, 201)
    refused = house.call("PATCH", "/v1/event-types/a", json=changes)

    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_schema")
    assert house.get("/v1/event-types/a") == made
    assert house.call("PATCH", "/v1/event-types/none", json=changes).status_code == 404


@pytest.mark.parametrize("name", ["document.sent", "a b", "%00", "a" * 10_240])
def test_an_event_type_that_is_not_there_is_not_found(house: House, name: str) -> None:
    assert house.call("GET", f"/v1/event-types/{name}").json()["code"] == "not_found"
    assert house.call("PATCH", f"/v1/event-types/{name}", json={"description": "x"}).status_code == 404


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "text"},
        {"pattern": "(?=a)"},
        {"$ref": "http://schemas.example.com/a"},
        {"$ref": "https://schemas.example.com/a"},
        {"$ref": "file:///etc/hostname"},
        {"$ref": "#/$defs/nowhere"},
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_before_anything_is_written(
    house: House, schema: dict[str, object]
) -> None:
    refused = house.post("/v1/event-types", {"name": "a", "schema": schema}, 422)
    missing = house.call("GET", "/v1/event-types/a")
    made = house.post("/v1/event-types", {"name": "a", "schema": {"type": "object"}}, 201)
    unchanged = house.call("PATCH", "/v1/event-types/a", json={"schema": schema, "description": "d"})

    assert (refused["code"], refused["field"]) == ("invalid_schema", "schema")
    assert missing.status_code == 404
    assert (unchanged.status_code, unchanged.json()["code"]) == (422, "invalid_schema")
    assert house.get("/v1/event-types/a") == made
