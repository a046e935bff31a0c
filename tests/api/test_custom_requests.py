"""/v1/endpoints: method, authentication, TLS."""

from __future__ import annotations

from typing import Any

import pytest

from surehook.core import ids
from tests.api.house import House

ON_SQLITE = True

OAUTH2 = {
    "type": "oauth2", "token_url": "https://login.example.com/token", "client_id": "me", "client_secret": "hush-hush",
}  # fmt: skip
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nhush-hush\n-----END PRIVATE KEY-----\n"

# given, shown
SHOWN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"type": "basic", "username": "u", "password": "hush-hush"},
        {"type": "basic", "username": "u", "password": None},
    ),
    ({"type": "bearer", "token": "hush-hush"}, {"type": "bearer", "token": None}),
    (
        {"type": "api_key", "header": "X-Key", "value": "hush-hush"},
        {"type": "api_key", "header": "X-Key", "value": None},
    ),
    (
        OAUTH2,
        {**OAUTH2, "client_secret": None, "scopes": [], "audience": None, "style": "basic"},
    ),
    (
        {**OAUTH2, "scopes": ["a", "b"], "audience": "x", "style": "body"},
        {**OAUTH2, "client_secret": None, "scopes": ["a", "b"], "audience": "x", "style": "body"},
    ),
]


@pytest.mark.parametrize(("given", "shown"), SHOWN)
def test_credentials_are_shown_without_their_secrets(house: House, given: Any, shown: Any) -> None:
    house.tenant()
    made = house.endpoint(authentication=given, method="PATCH")
    address = f"/v1/endpoints/{made['id']}"

    assert made["authentication"] == shown and made["method"] == "PATCH"
    assert house.get(address)["authentication"] == shown
    elsewhere = [
        house.call("GET", "/v1/endpoints").text,
        house.call("PATCH", address, json={"description": "x"}).text,
        house.call("POST", f"{address}/rotate-secret").text,
    ]
    assert not any("hush-hush" in text for text in elsewhere)
    kept = house.run(house.ledger.endpoint(ids.parse(ids.ENDPOINT, made["id"])))
    assert "hush-hush" not in repr(kept)
    gone = house.call("PATCH", address, json={"authentication": None, "method": "PUT"}).json()
    assert (gone["authentication"], gone["method"]) == (None, "PUT")


def test_an_endpoint_without_custom_requests_shows_them_absent(house: House) -> None:
    house.tenant()
    made = house.endpoint()
    assert (made["method"], made["authentication"], made["tls"]) == ("POST", None, None)
    told = house.endpoint(authentication=None, tls=None)
    assert (told["authentication"], told["tls"]) == (None, None)


# fields, code, field
BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"method": "GET"}, "out_of_range", "method"),
    ({"method": "post"}, "out_of_range", "method"),
    ({"method": None}, "wrong_type", "method"),
    ({"authentication": "x"}, "wrong_type", "authentication"),
    ({"authentication": {}}, "missing_field", "authentication.type"),
    ({"authentication": {"type": "digest"}}, "out_of_range", "authentication.type"),
    ({"authentication": {"type": "basic", "username": "u"}}, "missing_field", "authentication.password"),
    ({"authentication": {"type": "basic", "username": "u", "password": None}}, "wrong_type", "authentication.password"),
    ({"authentication": {"type": "bearer", "token": "a", "tokn": "b"}}, "unknown_field", "authentication.tokn"),
    ({"authentication": {"type": "bearer", "token": "a\r\nb"}}, "invalid_authentication", "authentication.token"),
    ({"authentication": {"type": "api_key", "header": "Host", "value": "x"}}, "invalid_authentication", "authentication.header"),
    ({"authentication": {**OAUTH2, "style": "jwt"}}, "out_of_range", "authentication.style"),
    ({"authentication": {**OAUTH2, "scopes": "a"}}, "wrong_type", "authentication.scopes"),
    ({"authentication": {**OAUTH2, "scopes": [1]}}, "wrong_type", "authentication.scopes.0"),
    ({"authentication": {**OAUTH2, "scopes": ["a b"]}}, "invalid_authentication", "authentication.scopes.0"),
    ({"authentication": {**OAUTH2, "token_url": "https://10.0.0.1/"}}, "address_forbidden", "authentication.token_url"),
    ({"authentication": {**OAUTH2, "token_url": "ftp://x/"}}, "url_scheme", "authentication.token_url"),
    (
        {"authentication": {"type": "bearer", "token": "a"}, "headers": {"Authorization": "b"}},
        "authentication_conflict", "authentication",
    ),
    (
        {"authentication": {"type": "api_key", "header": "x-k", "value": "a"}, "headers": {"X-K": "b"}},
        "authentication_conflict", "authentication",
    ),
    ({"tls": "x"}, "wrong_type", "tls"),
    ({"tls": {"cert": "x"}}, "unknown_field", "tls.cert"),
    ({"tls": {"ca": "x"}}, "invalid_tls", "tls.ca"),
    ({"tls": {"ca": "é" + CERTIFICATE}}, "invalid_tls", "tls.ca"),
    ({"tls": {"ca": CERTIFICATE + " " * 65_536}}, "invalid_tls", "tls.ca"),
    ({"tls": {"client_certificate": CERTIFICATE}}, "invalid_tls", "tls.client_key"),
    ({"tls": {"client_key": KEY}}, "invalid_tls", "tls.client_certificate"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "code", "field"), BAD)
def test_what_cannot_be_is_refused_when_made_and_when_changed(
    house: House, fields: dict[str, Any], code: str, field: str
) -> None:
    house.tenant()
    body = {"tenant": "acme", "url": "https://hooks.example.com/a", "event_types": ["*"], **fields}
    refused = house.post("/v1/endpoints", body, 422)
    made = house.endpoint()
    changed = house.call("PATCH", f"/v1/endpoints/{made['id']}", json=fields)

    for problem in (refused, changed.json()):
        assert (problem["code"], problem["field"]) == (code, field)
    assert changed.status_code == 422
    assert house.get(f"/v1/endpoints/{made['id']}") == {**made, "secret": None, "key_id": None}


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"method": "GET"}, "one of: POST, PUT, PATCH"),
        ({"authentication": {"type": "digest"}}, "one of: basic, bearer, api_key, oauth2"),
        ({"authentication": {**OAUTH2, "style": "jwt"}}, "one of: basic, body"),
        ({"authentication": {"type": "oauth2", "client_secrt": "x"}}, "did you mean client_secret?"),
    ],
)
def test_a_closed_list_is_told(house: House, fields: dict[str, Any], hint: str) -> None:
    made = {"tenant": "acme", "url": "https://hooks.example.com/a", "event_types": ["*"], **fields}
    assert house.post("/v1/endpoints", made, 422)["hint"] == hint


def test_a_change_is_judged_with_what_stays(house: House) -> None:
    house.tenant()
    bearer = {"type": "bearer", "token": "a"}
    shown, headed = house.endpoint(authentication=bearer), house.endpoint(headers={"authorization": "x"})

    for made, change in ((shown, {"headers": {"authorization": "x"}}), (headed, {"authentication": bearer})):
        problem = house.call("PATCH", f"/v1/endpoints/{made['id']}", json=change).json()
        assert problem["code"] == "authentication_conflict"
    moved = {"headers": {}, "authentication": bearer}
    assert house.call("PATCH", f"/v1/endpoints/{headed['id']}", json=moved).status_code == 200


def test_tls_is_shown_without_its_key_and_taken_away_by_null(house: House) -> None:
    house.tenant()
    tls = {"ca": CERTIFICATE, "client_certificate": CERTIFICATE, "client_key": KEY}
    made = house.endpoint(tls=tls)
    address = f"/v1/endpoints/{made['id']}"

    assert made["tls"] == {**tls, "client_key": None}
    assert "hush" not in house.call("GET", "/v1/endpoints").text
    only_ca = house.call("PATCH", address, json={"tls": {"ca": CERTIFICATE}}).json()["tls"]
    assert only_ca == {"ca": CERTIFICATE, "client_certificate": None, "client_key": None}
    assert house.call("PATCH", address, json={"tls": {"ca": None}}).json()["tls"] is None
