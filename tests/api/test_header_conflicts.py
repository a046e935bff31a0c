"""A policy names no header that its endpoint sets itself, whichever of the two changes; and none goes out twice."""

from __future__ import annotations

from typing import Any

import pytest

from surehook.delivery import header_conflicts
from tests.api.house import House

pytestmark = pytest.mark.usefixtures("a_tenant")

BEARER = {"type": "bearer", "token": "hush"}
KEY = {"type": "api_key", "header": "X-Key", "value": "hush"}
OAUTH = {
    "type": "oauth2",
    "token_url": "https://tokens.example.com/t",
    "client_id": "i",
    "client_secret": "hush",
}
CONFLICTS: list[tuple[dict[str, str], dict[str, Any], str, str]] = [
    ({"delivery_id": "Authorization"}, {"authentication": BEARER}, "delivery_id", "authentication"),
    ({"delivery_id": "authorization"}, {"authentication": OAUTH}, "delivery_id", "authentication"),
    ({"retry_count": "x-key"}, {"authentication": KEY}, "retry_count", "authentication"),
    ({"retry_count": "X-A"}, {"headers": {"x-a": "mine"}}, "retry_count", "headers"),
]


def conflict(house: House, method: str, path: str, body: dict[str, Any]) -> str:
    response = house.call(method, path, json=body)
    assert (response.status_code, response.json()["code"]) == (422, "authentication_conflict"), response.text
    assert response.json()["hint"]
    return str(response.json()["field"])


def endpoint(**fields: Any) -> dict[str, Any]:
    return {"tenant": "acme", "url": "https://hooks.example.com/a", "event_types": ["*"], **fields}


@pytest.mark.parametrize(("names", "own", "key", "field"), CONFLICTS)
def test_an_endpoints_policy_and_its_own_headers_are_judged_together(
    house: House, names: dict[str, str], own: dict[str, Any], key: str, field: str
) -> None:
    policy = {"policy": {"headers": names}}
    assert conflict(house, "POST", "/v1/endpoints", endpoint(**policy, **own)) == f"policy.headers.{key}"
    with_own, with_policy = house.endpoint(**own), house.endpoint(**policy)
    at = "/v1/endpoints/" + with_own["id"]
    assert conflict(house, "PATCH", at, policy) == f"policy.headers.{key}"
    assert conflict(house, "PATCH", "/v1/endpoints/" + with_policy["id"], own) == field
    without = {name: {} if name == "headers" else None for name in own}
    assert house.call("PATCH", at, json={**policy, **without}).status_code == 200


@pytest.mark.parametrize(("names", "own", "key", "field"), CONFLICTS)
def test_an_event_types_policy_is_judged_with_the_endpoints_it_holds_for(
    house: House, names: dict[str, str], own: dict[str, Any], key: str, field: str
) -> None:
    policy = {"policy": {"headers": names}}
    made = house.endpoint(**own, event_types=["document.*"])
    house.post("/v1/event-types", {"name": "document.signed"}, 201)
    at, mine = "/v1/event-types/document.signed", "/v1/endpoints/" + made["id"]
    assert conflict(house, "PATCH", at, policy) == f"policy.headers.{key}"
    assert (
        conflict(house, "POST", "/v1/event-types", {"name": "document.a", **policy})
        == f"policy.headers.{key}"
    )

    house.call("PATCH", mine, json={"policy": "standard"})
    assert house.call("PATCH", at, json=policy).status_code == 200, "the endpoint has a policy of its own now"
    assert conflict(house, "PATCH", mine, {"policy": None}) == "policy"
    assert conflict(house, "POST", "/v1/endpoints", endpoint(**own)) == field
    other = house.endpoint(**own, event_types=["invoice.*"])["id"]
    assert (
        conflict(house, "PATCH", f"/v1/endpoints/{other}", {"event_types": ["document.signed"]})
        == "event_types"
    )
    assert house.call("PATCH", f"/v1/endpoints/{other}", json={"description": "d"}).status_code == 200


def test_a_profiles_headers_are_judged_too(house: House) -> None:
    own = {"headers": {"x-yousign-retry-count": "9"}}
    assert (
        conflict(house, "POST", "/v1/endpoints", endpoint(policy="yousign", **own))
        == "policy.headers.retry_count"
    )


@pytest.mark.parametrize("is_of_type", [False, True], ids=["own", "of the event type"])
@pytest.mark.parametrize(("names", "own", "key", "field"), CONFLICTS)
def test_no_name_goes_out_twice_whatever_is_stored(
    house: House, monkeypatch: pytest.MonkeyPatch, names: dict[str, str], own: dict[str, Any], key: str, field: str,
    is_of_type: bool,
) -> None:  # fmt: skip
    """As from two nodes at once, or from before this was judged."""
    monkeypatch.setattr(header_conflicts, "_conflict", lambda *told: None)
    policy = {"policy": {"headers": names}}
    made = house.endpoint(**own, **({} if is_of_type else policy))
    if is_of_type:
        house.post("/v1/event-types", {"name": "surehook.test", **policy}, 201)
    if own.get("authentication") == OAUTH:
        token = b'{"access_token":"t","token_type":"bearer","expires_in":60}'
        house.engine.transport.answer.body = token
    house.post(f"/v1/endpoints/{made['id']}/test")

    request = house.engine.transport.sent[-1]
    lines = (request.headers + request.private).decode().lower().split("\r\n")[:-1]
    sent = [line.split(": ", 1) for line in lines]
    wanted = next(iter(names.values())).lower()
    ((_, value),) = [line for line in sent if line[0] == wanted]
    assert value in ("bearer hush", "bearer t", "hush", "mine"), "the endpoint's own"
    assert len(lines) == len({name for name, _ in sent})
