"""Who may call."""

from __future__ import annotations

import re

import pytest

from surehook.api.auth import digest
from surehook.api.operations import Operation
from surehook.api.table import OPERATIONS
from surehook.ports.registry import ApiKey
from tests.api.house import KEY, START, House

CLOSED = ["/v1/lanes", "/v1/tenants", "/v1/nothing-here", "/v1", "/metrics"]
OPEN = ["/healthz", "/readyz", "/openapi.json", "/docs", "/problems/unauthorized"]


@pytest.mark.parametrize("path", CLOSED)
@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", f"Basic {KEY}", KEY, f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", "Bearer " + "k" * 2000, f"Bearer {KEY.upper()}"],
)  # fmt: skip
def test_no_key_or_a_wrong_one_is_told_how_to_call(
    house: House, path: str, authorization: str | None
) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    response = house.call("GET", path, key=None, headers=headers)

    assert (response.status_code, response.json()["code"]) == (401, "unauthorized")
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", OPEN)
def test_health_and_reference_need_no_key(house: House, path: str) -> None:
    assert house.call("GET", path, key=None).status_code == 200


@pytest.mark.parametrize(
    "operation", [one for one in OPERATIONS if not one.signed], ids=lambda one: f"{one.method} {one.path}"
)
def test_every_operation_is_guarded_as_its_row_says(house: House, operation: Operation) -> None:
    path = re.sub(r"{[^}]*}", "nothing", operation.path)

    refused = house.call(operation.method, path, key=None).status_code == 401

    assert refused is operation.needs_key


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_read_without_regard_to_case(house: House, scheme: str) -> None:
    response = house.call("GET", "/v1/lanes", key=None, headers={"authorization": f"{scheme} {KEY}"})

    assert response.status_code == 200


@pytest.mark.parametrize(
    "query",
    ["api_key=x", "key=x", "access_token=x", "Token=x", "ap%69_key=x", f"q={KEY}", f"limit=1&tenant={KEY}"],
)
@pytest.mark.parametrize("path", ["/v1/endpoints", "/healthz"])
def test_a_key_in_the_query_string_is_refused_even_beside_a_good_header(
    house: House, path: str, query: str
) -> None:
    response = house.call("GET", f"{path}?{query}")

    assert (response.status_code, response.json()["code"]) == (401, "unauthorized")
    assert KEY not in response.text


def test_a_key_in_the_query_string_is_gone_from_the_scope_that_logs_are_written_from(house: House) -> None:
    scope = {
        "type": "http", "method": "GET", "path": "/v1/lanes", "query_string": f"key={KEY}".encode(), "headers": [],
    }  # fmt: skip

    async def receive() -> dict[str, object]:
        return {"type": "http.request"}

    async def send(message: object) -> None: ...

    house.run(house.app(scope, receive, send))

    assert KEY.encode() not in scope["query_string"]


def test_two_authorization_headers_are_none(house: House) -> None:
    headers = [("authorization", f"Bearer {KEY}"), ("authorization", f"Bearer {KEY}")]
    response = house.call("GET", "/v1/lanes", key=None, headers={})
    assert response.status_code == 401

    import httpx

    async def send() -> httpx.Response:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=house.app), base_url="http://t"
        ) as client:
            return await client.get("/v1/lanes", headers=headers)

    assert house.run(send()).status_code == 401


def test_a_key_written_to_the_book_holds_for_the_next_call(house: House) -> None:
    assert house.call("GET", "/v1/lanes", key="a-second-key-of-the-tests").status_code == 401

    row = ApiKey(
        id=b"\x02" * 16, digest=digest(b"a-second-key-of-the-tests"), name="second", created_at=START
    )
    house.run(house.ledger.add_key(row))

    assert house.call("GET", "/v1/lanes", key="a-second-key-of-the-tests").status_code == 200


def test_metrics_can_be_opened() -> None:
    house = House(metrics_open=True)
    response = house.call("GET", "/metrics", key=None)
    house.close()

    assert (response.status_code, response.text) == (200, "surehook_up 1\n")
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
