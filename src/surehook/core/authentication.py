"""The authentication that an endpoint asks for: basic, bearer, an API key in a header, or OAuth2.

The secret parts are write-only: they are stored, sent to the receiver (OAuth2: to the token server), and never
shown again, neither in answers nor by `repr`, which is what logs and tracebacks print.

Every text here ends up in a header line or in a form, so each is judged by the rule of its own place: RFC 7617
(basic), RFC 9110 section 5.5 (header values), RFC 6749 sections 2.3.1 and 4.4 (client credentials).
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Literal
from urllib.parse import quote_plus

from msgspec import Struct

from surehook.core import header_names, limits
from surehook.core.errors import Problem
from surehook.core.redact import HIDDEN

_VISIBLE = re.compile(r"[\x21-\x7e]+")
_VSCHAR = re.compile(r"[\x20-\x7e]+")  # RFC 6749 appendix A
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")  # RFC 6749 section 3.3
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Basic(Struct, frozen=True, tag="basic", tag_field="type", forbid_unknown_fields=True):
    """RFC 7617. Either part may be empty (many services take a key as one of the two), not both."""

    username: str
    password: str

    def __repr__(self) -> str:
        return f"Basic(username={self.username!r}, password={HIDDEN})"


class Bearer(Struct, frozen=True, tag="bearer", tag_field="type", forbid_unknown_fields=True):
    """A fixed token, `Authorization: Bearer …` (RFC 6750)."""

    token: str

    def __repr__(self) -> str:
        return f"Bearer(token={HIDDEN})"


class KeyHeader(Struct, frozen=True, tag="api_key", tag_field="type", forbid_unknown_fields=True):
    """A key in a header of the receiver's choice."""

    header: str
    value: str

    def __repr__(self) -> str:
        return f"KeyHeader(header={self.header!r}, value={HIDDEN})"


class ClientCredentials(Struct, frozen=True, tag="oauth2", tag_field="type", forbid_unknown_fields=True):
    """OAuth2 client credentials (RFC 6749 section 4.4). `style`: how the client authenticates to the token server,
    by basic authentication or in the form; `audience` is a parameter that many token servers ask for."""

    token_url: str
    client_id: str
    client_secret: str
    scopes: tuple[str, ...] = ()
    audience: str | None = None
    style: Literal["basic", "body"] = "basic"

    def __repr__(self) -> str:
        return f"ClientCredentials(token_url={self.token_url!r}, client_id={self.client_id!r}, client_secret={HIDDEN})"


Authentication = Basic | Bearer | KeyHeader | ClientCredentials


def check(given: Authentication, *, field: str = "authentication") -> None:
    """Judge what a caller gave, apart from the token URL, which the transport judges like any other.

    Raises Problem `invalid_authentication` with the field at fault; never with any part of a secret.
    """
    if isinstance(given, Basic):
        _check_basic(given, field)
    elif isinstance(given, Bearer):
        _must(_VISIBLE, given.token, limits.TOKEN_CHARS, f"{field}.token", "visible ASCII without spaces")
    elif isinstance(given, KeyHeader):
        _check_key(given, field)
    else:
        _check_client(given, field)


def check_beside(authentication: Authentication | None, headers: Mapping[str, str]) -> None:
    """An endpoint's own headers and its authentication must not both set the same header.

    Raises Problem `authentication_conflict`."""
    name = header_name(authentication)
    if name is not None and any(own.lower() == name for own in headers):
        raise Problem(
            "authentication_conflict",
            f"the endpoint's headers and its authentication both set {name}",
            field="authentication",
            hint="take the header away, or set authentication to null",
        )


def header_name(authentication: Authentication | None) -> str | None:
    """The header that the authentication sets, in lower case."""
    if authentication is None:
        return None
    return authentication.header.lower() if isinstance(authentication, KeyHeader) else "authorization"


def fixed_line(authentication: Authentication | None) -> str | None:
    """The header line (without line end) that is the same on every attempt; None where there is none, as with OAuth2,
    whose token changes."""
    if isinstance(authentication, Basic):
        return f"authorization: {basic(authentication.username, authentication.password)}"
    if isinstance(authentication, Bearer):
        return f"authorization: Bearer {authentication.token}"
    if isinstance(authentication, KeyHeader):
        return f"{authentication.header}: {authentication.value}"
    return None


def basic(username: str, password: str) -> str:
    """The value of an `Authorization` header (RFC 7617), texts as UTF-8."""
    return "Basic " + b64encode(f"{username}:{password}".encode()).decode()


def token_request(client: ClientCredentials) -> tuple[dict[str, str], bytes]:
    """Header fields and form of the request for a token (RFC 6749 sections 2.3.1 and 4.4.2)."""
    form = {"grant_type": "client_credentials"}
    headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    if client.scopes:
        form["scope"] = " ".join(client.scopes)
    if client.audience is not None:
        form["audience"] = client.audience
    if client.style == "basic":
        # Section 2.3.1: both parts are form-encoded before they are put together.
        headers["authorization"] = basic(quote_plus(client.client_id), quote_plus(client.client_secret))
    else:
        form |= {"client_id": client.client_id, "client_secret": client.client_secret}
    return headers, "&".join(f"{name}={quote_plus(value)}" for name, value in form.items()).encode()


def _check_basic(given: Basic, field: str) -> None:
    if not given.username and not given.password:
        raise _refused(f"{field}.username", "username and password are both empty")
    if ":" in given.username:
        raise _refused(f"{field}.username", "a colon would end the username (RFC 7617 section 2)")
    for name, text in (("username", given.username), ("password", given.password)):
        if len(text.encode()) > limits.CREDENTIAL_BYTES:
            raise _refused(f"{field}.{name}", f"longer than {limits.CREDENTIAL_BYTES:,} bytes")
        if _CONTROL.search(text) is not None:
            raise _refused(f"{field}.{name}", "control characters cannot be sent (RFC 7617 section 2)")


def _check_key(given: KeyHeader, field: str) -> None:
    wrong = header_names.fault(given.header)
    if wrong is not None:
        raise _refused(f"{field}.header", wrong)
    wrong = header_names.value_fault(given.value, chars=limits.TOKEN_CHARS)
    if wrong is not None or not given.value:
        raise _refused(f"{field}.value", wrong or "empty")


def _check_client(given: ClientCredentials, field: str) -> None:
    plain = "ASCII without control characters (RFC 6749 appendix A)"
    _must(_VSCHAR, given.client_id, limits.CREDENTIAL_BYTES, f"{field}.client_id", plain)
    _must(_VSCHAR, given.client_secret, limits.CREDENTIAL_BYTES, f"{field}.client_secret", plain)
    if len(given.scopes) > limits.SCOPES:
        raise _refused(f"{field}.scopes", f"more than {limits.SCOPES} scopes")
    if len(set(given.scopes)) != len(given.scopes):
        raise _refused(f"{field}.scopes", "a scope is given twice")
    for place, scope in enumerate(given.scopes):
        said = "visible ASCII without quotes, backslashes and spaces (RFC 6749 section 3.3)"
        _must(_SCOPE, scope, limits.SCOPE_CHARS, f"{field}.scopes.{place}", said)
    if given.audience is not None:
        _must(_VISIBLE, given.audience, limits.AUDIENCE_CHARS, f"{field}.audience", "visible ASCII")


def _must(pattern: re.Pattern[str], text: str, chars: int, field: str, what: str) -> None:
    if not text:
        raise _refused(field, "empty")
    if len(text) > chars:
        raise _refused(field, f"longer than {chars:,} characters")
    if pattern.fullmatch(text) is None:
        raise _refused(field, f"not {what}")


def _refused(field: str, detail: str) -> Problem:
    return Problem("invalid_authentication", detail, field=field, hint="null takes the authentication away")
