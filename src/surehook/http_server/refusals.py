"""Answers to callers that the server refuses by itself."""

from __future__ import annotations

from surehook.core import limits
from surehook.core.errors import Problem


def head_too_late() -> Problem:
    return Problem(
        "request_timeout",
        f"the head was not complete within {limits.HEAD_S} s",
        hint="send the whole head at once",
        status=408,
    )


def body_too_slow() -> Problem:
    return Problem(
        "request_timeout",
        f"the body comes too slowly: {limits.BODY_RATE_BYTES} bytes a second at least, {limits.BODY_S} s in all",
        hint="send smaller batches",
        status=408,
    )


def body_too_large(limit: int) -> Problem:
    return Problem("body_too_large", f"the body is larger than {limit:,} bytes", status=413)


def too_many_bytes() -> Problem:
    return Problem(
        "too_many_bytes",
        "too many bytes of request bodies are being read",
        hint="ask again, with smaller batches where this goes on",
        status=503,
    )


def too_many_chunks() -> Problem:
    return Problem(
        "too_many_bytes",
        "too many bodies of small chunks are being read",
        hint="send Content-Length, or larger chunks",
        status=503,
    )


def too_many_connections(limit: int) -> Problem:
    return Problem(
        "too_many_connections",
        f"{limit} connections are open",
        hint="keep connections and use them again; the operator can raise `connections`",
        status=503,
    )
