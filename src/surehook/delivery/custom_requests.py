"""Custom requests of an endpoint, judged when they are given: headers, authentication, TLS.

What is judged here for a clear answer holds for every later attempt, except where a token URL's name leads: that is
judged again whenever a token is fetched, as with the endpoint's own URL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surehook.core import authentication, header_names, limits
from surehook.core.authentication import ClientCredentials
from surehook.core.errors import Problem
from surehook.core.model import Endpoint, EndpointTls
from surehook.delivery.managing import Manager


def check(given: Mapping[str, Any], before: Endpoint | None) -> None:
    """Judge the given fields, together with those of the endpoint that stay. Raises Problem."""
    headers = given.get("headers", before.headers if before is not None else {})
    shown = given.get("authentication", before.authentication if before is not None else None)
    if "headers" in given:
        header_names.check_headers(headers)
    if given.get("authentication") is not None:
        authentication.check(shown)
    if "headers" in given or "authentication" in given:
        authentication.check_beside(shown, headers)


async def check_token_url(manager: Manager, given: Mapping[str, object], *, tenant: str) -> None:
    """Judge where tokens come from like any other URL. Raises Problem with the field `authentication.token_url`."""
    client = given.get("authentication")
    if not isinstance(client, ClientCredentials):
        return
    try:
        await manager.transport.check(client.token_url, tenant=tenant)
    except Problem as problem:
        raise Problem(
            problem.code,
            problem.detail,
            field="authentication.token_url",
            hint=problem.hint,
            status=problem.status,
        ) from None


def checked_tls(given: EndpointTls | None) -> EndpointTls | None:
    """The TLS of an endpoint within its bounds; one that says nothing is None. Raises Problem `invalid_tls`."""
    if given is None or given == EndpointTls():
        return None
    for name in ("ca", "client_certificate", "client_key"):
        text = getattr(given, name)
        if text is None:
            continue
        if len(text) > limits.PEM_BYTES or not text.isascii():
            detail = f"not ASCII text of at most {limits.PEM_BYTES:,} bytes"
            raise Problem("invalid_tls", detail, field=f"tls.{name}", hint="PEM text, RFC 7468")
        if "-----BEGIN " not in text:
            raise Problem(
                "invalid_tls", "not PEM text", field=f"tls.{name}", hint='it begins with "-----BEGIN …-----"'
            )
    if (given.client_certificate is None) != (given.client_key is None):
        missing = "client_key" if given.client_key is None else "client_certificate"
        hint = "the key is never shown: give it again with each change of tls"
        detail = "a client certificate and its key come together"
        raise Problem("invalid_tls", detail, field=f"tls.{missing}", hint=hint)
    return given
