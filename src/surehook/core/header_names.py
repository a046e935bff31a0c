"""Rules for the header names and values that a tenant may choose.

A header line that a customer can shape is a way into the request: a name with a colon or a value with a line
end adds headers of its own (request smuggling), and some names belong to the transport or to the signature.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from surehook.core import limits
from surehook.core.errors import Problem

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
RESERVED = frozenset({
    # the transport's own framing and connection handling
    "host", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection", "keep-alive",
    "proxy-connection", "proxy-authorization", "proxy-authenticate", "te", "trailer", "upgrade", "expect",
    # ours
    "user-agent", "traceparent", "tracestate", "accept-encoding",
})  # fmt: skip
RESERVED_PREFIXES = ("webhook-", "svix-")


def fault(name: str) -> str | None:
    """The fault of a header name, as half a sentence, or None."""
    if len(name) > limits.HEADER_NAME_CHARS:
        return f"a header name has at most {limits.HEADER_NAME_CHARS} characters"
    if _TOKEN.fullmatch(name) is None:
        return "not a header name (RFC 9110 section 5.1)"
    if name.lower() in RESERVED or name.lower().startswith(RESERVED_PREFIXES):
        return f"the header {name} is set by surehook"
    return None


def check_headers(headers: Mapping[str, str], *, field: str = "headers") -> None:
    """Judge the custom headers of an endpoint. Raises Problem `invalid_header` with the field `headers.NAME`."""
    if len(headers) > limits.HEADERS:
        raise Problem("invalid_header", f"at most {limits.HEADERS} headers", field=field)
    seen: set[str] = set()
    for name, value in headers.items():
        wrong = fault(name) or value_fault(value)
        if wrong is None and name.lower() in seen:
            wrong = "given twice"
        if wrong is not None:
            raise Problem("invalid_header", wrong, field=f"{field}.{name[: limits.HEADER_NAME_CHARS]}")
        seen.add(name.lower())


def value_fault(value: str, *, chars: int = limits.HEADER_VALUE_CHARS) -> str | None:
    """The fault of a header value, as half a sentence, or None."""
    if len(value) > chars:
        return f"a header value has at most {chars:,} characters"
    if value and _VALUE.fullmatch(value) is None:
        return "a header value is visible ASCII with spaces or tabs inside"
    return None
