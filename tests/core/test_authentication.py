"""What an endpoint's authentication may say, and what becomes of it on the wire."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import parse_qs

import msgspec
import pytest

from surehook.core import authentication, limits
from surehook.core.authentication import Authentication, Basic, Bearer, ClientCredentials, KeyHeader
from surehook.core.errors import Problem
from surehook.core.model import EndpointTls

SECRET = "s3cr3t-of-the-tests"


def client(**fields: Any) -> ClientCredentials:
    return ClientCredentials(
        **{"token_url": "https://t.example/token", "client_id": "me", "client_secret": SECRET, **fields}
    )


GOOD = [
    Basic("user", SECRET), Basic("", SECRET), Basic("key", ""), Basic("jürgen", "pä:ss word"),
    Basic("u" * 1024, "p" * 1024), Bearer("a.b-c_~+/=="), Bearer("t" * 4096), KeyHeader("X-Api-Key", "a b"),
    KeyHeader("Authorization", "Token x"), KeyHeader("x", "v" * 4096), client(), client(scopes=("a", "b:c/d")),
    client(audience="https://api.example"), client(style="body"), client(client_id="with space"),
    client(scopes=tuple(f"s{n}" for n in range(50))),
]  # fmt: skip


@pytest.mark.parametrize("given", GOOD, ids=lambda one: type(one).__name__)
def test_ordinary_credentials_pass(given: Authentication) -> None:
    authentication.check(given)


BAD: list[tuple[Authentication, str]] = [
    (Basic("", ""), "username"), (Basic("a:b", "c"), "username"), (Basic("a\r\nb", "c"), "username"),
    (Basic("a\x00", "c"), "username"), (Basic("a", "c\n"), "password"), (Basic("a", "\x7f"), "password"),
    (Basic("a", "\x85"), "password"), (Basic("u" * 1025, "p"), "username"), (Basic("u", "ü" * 513), "password"),
    (Bearer(""), "token"), (Bearer("a b"), "token"), (Bearer("a\r\nx: y"), "token"), (Bearer("a\n"), "token"),
    (Bearer("tökén"), "token"), (Bearer("t" * 4097), "token"), (Bearer("a\tb"), "token"),
    (KeyHeader("", "v"), "header"), (KeyHeader("a b", "v"), "header"), (KeyHeader("a:b", "v"), "header"),
    (KeyHeader("x\r\ny", "v"), "header"), (KeyHeader("Host", "v"), "header"), (KeyHeader("webhook-id", "v"), "header"),
    (KeyHeader("Content-Type", "v"), "header"), (KeyHeader("é", "v"), "header"), (KeyHeader("a" * 65, "v"), "header"),
    (KeyHeader("x", ""), "value"), (KeyHeader("x", " v"), "value"), (KeyHeader("x", "v\r\ny: z"), "value"),
    (KeyHeader("x", "\x00"), "value"), (KeyHeader("x", "é"), "value"), (KeyHeader("x", "v" * 4097), "value"),
    (client(client_id=""), "client_id"), (client(client_id="a\r\n"), "client_id"), (client(client_id="é"), "client_id"),
    (client(client_id="i" * 1025), "client_id"), (client(client_secret=""), "client_secret"),
    (client(client_secret="a\n"), "client_secret"), (client(client_secret="ü"), "client_secret"),
    (client(client_secret="s" * 1025), "client_secret"), (client(scopes=("",)), "scopes.0"),
    (client(scopes=("a", "b c")), "scopes.1"), (client(scopes=('a"b',)), "scopes.0"), (client(scopes=("a\\b",)), "scopes.0"),
    (client(scopes=("a\n",)), "scopes.0"), (client(scopes=("a", "a")), "scopes"), (client(scopes=("s" * 257,)), "scopes.0"),
    (client(scopes=tuple(f"s{n}" for n in range(51))), "scopes"), (client(audience=""), "audience"),
    (client(audience="a b"), "audience"), (client(audience="é"), "audience"), (client(audience="a" * 1025), "audience"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "field"), BAD)
def test_what_could_shape_a_request_is_refused_with_its_field(given: Authentication, field: str) -> None:
    with pytest.raises(Problem) as caught:
        authentication.check(given)
    problem = caught.value
    assert (problem.code, problem.field, problem.status) == (
        "invalid_authentication",
        f"authentication.{field}",
        422,
    )
    assert problem.hint


@pytest.mark.parametrize("given", [Basic("u", SECRET), Bearer(SECRET), KeyHeader("x", SECRET), client()])
def test_a_secret_shows_up_neither_in_repr_nor_in_a_refusal(given: Authentication) -> None:
    assert SECRET not in repr(given) and SECRET not in f"{[given]}"
    for field in msgspec.structs.fields(given):
        if getattr(given, field.name) == SECRET:
            with pytest.raises(Problem) as caught:
                authentication.check(msgspec.structs.replace(given, **{field.name: SECRET + "\r\n"}))
            assert SECRET not in f"{caught.value} {caught.value.hint}"


def test_a_private_key_shows_up_in_no_repr() -> None:
    assert "PRIVATE" not in repr(EndpointTls("ca", "cert", "-----BEGIN PRIVATE KEY-----"))


@pytest.mark.parametrize(
    ("given", "headers"),
    [
        (Basic("a", "b"), {"Authorization": "x"}), (Bearer("a"), {"AUTHORIZATION": "x"}),
        (client(), {"authorization": "x"}), (KeyHeader("X-Key", "a"), {"x-key": "x"}),
        (KeyHeader("authorization", "a"), {"Authorization": "x"}),
    ],
)  # fmt: skip
def test_a_header_is_not_set_twice(given: Authentication, headers: dict[str, str]) -> None:
    authentication.check_beside(given, {"x-other": "1"})
    authentication.check_beside(None, headers)
    with pytest.raises(Problem) as caught:
        authentication.check_beside(given, headers)
    assert (caught.value.code, caught.value.field) == ("authentication_conflict", "authentication")


def test_the_fixed_line_is_what_the_schemes_say() -> None:
    basic = authentication.fixed_line(Basic("Aladdin", "open sesame"))
    assert basic == "authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="  # RFC 7617 section 2
    assert authentication.fixed_line(Bearer("mF_9.B5f-4.1JqM")) == "authorization: Bearer mF_9.B5f-4.1JqM"
    assert authentication.fixed_line(KeyHeader("X-Key", "v")) == "X-Key: v"
    assert authentication.fixed_line(client()) is None
    assert authentication.fixed_line(None) is None


def test_a_token_request_shows_the_client_as_its_style_says() -> None:
    fields = {
        "client_id": "a b:c",
        "client_secret": "p&=%",
        "scopes": ("one", "two"),
        "audience": "https://x/?a=b",
    }
    headers, form = authentication.token_request(client(**fields))
    said = base64.b64decode(headers["authorization"].removeprefix("Basic ")).decode()
    assert said == "a+b%3Ac:p%26%3D%25"  # RFC 6749 section 2.3.1: encoded first
    assert parse_qs(form.decode()) == {
        "grant_type": ["client_credentials"], "scope": ["one two"], "audience": ["https://x/?a=b"],
    }  # fmt: skip
    headers, form = authentication.token_request(client(**fields, style="body"))
    assert "authorization" not in headers
    assert parse_qs(form.decode())["client_secret"] == ["p&=%"]
    assert parse_qs(form.decode())["client_id"] == ["a b:c"]


def test_a_credential_fits_a_header_line_of_8_kib() -> None:
    """The shortest bound that common servers have for one header line."""
    longest = authentication.fixed_line(Basic("u" * limits.CREDENTIAL_BYTES, "p" * limits.CREDENTIAL_BYTES))
    assert longest is not None and len(longest) < 8192 and limits.TOKEN_CHARS < 8000
