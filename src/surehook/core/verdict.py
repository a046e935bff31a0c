"""A receiver's own verdict on an event: problem+json (RFC 9457) that says whether a retry makes sense."""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

from surehook.core import json_text, limits

_PROBLEM_TYPE = re.compile(
    rb"^content-type[ \t]*:[ \t]*application/problem\+json[ \t]*(?:;|\r|\n|\Z)", re.IGNORECASE | re.MULTILINE
)


class Verdict(Struct, frozen=True, gc=False):
    """`retryable` False: the same bytes would be refused for ever. `code` is the receiver's stable code for the reason."""

    retryable: bool
    code: str | None = None


class _Body(Struct):
    retryable: bool
    code: object = None


_decode = msgspec.json.Decoder(_Body).decode


def verdict(headers: bytes, body: bytes) -> Verdict | None:
    """The verdict in an answer, or None where there is none that can be read. Never raises.

    `headers` are header lines as received, `body` the kept part: a truncated body is no JSON and has no verdict.
    """
    if len(body) > limits.VERDICT_BYTES or _PROBLEM_TYPE.search(headers) is None:
        return None
    try:
        said = _decode(body)
    except json_text.DECODE_ERRORS:
        return None
    fits = isinstance(said.code, str) and 0 < len(said.code) <= limits.VERDICT_CODE_CHARS
    return Verdict(said.retryable, str(said.code) if fits else None)
