"""Header lines of an endpoint that are the same on every attempt."""

from __future__ import annotations

from surehook import __version__
from surehook.core import authentication, ids, receipt
from surehook.core.model import Endpoint

USER_AGENT = f"surehook/{__version__}"


def static_heads(endpoint: Endpoint) -> tuple[bytes, bytes]:
    """The header lines that are the same on every attempt: those that say what is sent, and the private ones, which
    are the endpoint's other headers and its fixed credentials. (An OAuth2 token is put on when the request leaves.)"""
    said = {"content-type": "application/json", "user-agent": USER_AGENT}
    said.update((name.lower(), value) for name, value in endpoint.headers.items() if name.lower() in said)
    shown = authentication.header_name(endpoint.authentication)
    private = [
        f"{name}: {value}" for name, value in endpoint.headers.items() if name.lower() not in (shown, *said)
    ]
    credentials = authentication.fixed_line(endpoint.authentication)
    if credentials is not None:
        private.append(credentials)
    if endpoint.receipts is not None:
        said[receipt.HEADER] = ids.text(ids.ENDPOINT, endpoint.id)  # who asks, and never where to
    return _lines([f"{name}: {value}" for name, value in said.items()]), _lines(private)


def _lines(lines: list[str]) -> bytes:
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1")
