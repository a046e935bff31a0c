"""Answers of token servers (RFC 6749 sections 5.1 and 5.2): untrusted, like those of any receiver.

A token is usable when the answer is 200 with one JSON object that has `access_token` (visible ASCII, bounded) and
`token_type` `bearer`. How long it may be used is `expires_in`, within bounds; servers that leave it out mean to
document it elsewhere, so a short life is assumed.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

from surehook.core import json_text, limits, outcome

LIFE_DEFAULT_S = 300.0  # without `expires_in`: common lives are 5 minutes and more
LIFE_MAX_S = 86_400.0  # a longer-lived token is renewed once a day
MARGIN_S = 30.0  # a token is not used this close to its end, since requests take time and clocks differ …
MARGIN_SHARE = 0.1  # … but at most this fraction of its life

_TOKEN = re.compile(r"[\x21-\x7e]+")
_SECONDS = re.compile(r"[0-9]{1,12}")
DEPTH = 8  # nesting of the answer: real ones are flat
DIGITS = 20

# RFC 6749 section 5.2 and 4.1.2.1: words that may be shown, since they are no stranger's text
ERRORS = frozenset({
    "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
    "invalid_scope", "server_error", "temporarily_unavailable", "access_denied",
})  # fmt: skip


class Issued(Struct, frozen=True):
    """A token, and the seconds that it may be used from the moment it was asked for."""

    token: str
    life_s: float

    def __repr__(self) -> str:
        return f"Issued(token=•••, life_s={self.life_s})"


class _Answer(Struct, frozen=True):
    access_token: str
    token_type: str
    expires_in: float | str | None = None


class _Refusal(Struct, frozen=True):
    error: str


_read = msgspec.json.Decoder(_Answer).decode
_read_refusal = msgspec.json.Decoder(_Refusal).decode


def read(*, status: int | None, failure: str | None, body: bytes, truncated: bool) -> Issued | str:
    """The token, or the name of the failure: a `token_…` name of ports/transport.py, or the name of a failure on our
    side."""
    if failure is not None:
        return _failed(failure)
    if status == 200:
        issued = None if truncated else _issued(body)
        return issued or "token_unusable"
    assert status is not None, "an answer has a status or a failure"
    if 200 <= status < 300:
        return "token_unusable"
    if 300 <= status < 400:
        return "token_redirected"
    return "token_failed" if status >= 500 or status == 429 else "token_refused"


def error_word(body: bytes) -> str | None:
    """The `error` of a refusal, where it is one of the standard's words."""
    try:
        word = _read_refusal(body).error
    except json_text.DECODE_ERRORS:
        return None
    return word if word in ERRORS else None


def _failed(failure: str) -> str:
    if failure in outcome.OURS:
        return failure
    kind = outcome.BY_FAILURE[failure]
    if kind == "blocked":
        return "token_forbidden"
    if kind == "timed_out" or failure.endswith("_timeout"):
        return "token_timeout"
    return "token_unusable" if kind == "garbled" else "token_unreachable"


def _issued(body: bytes) -> Issued | None:
    if json_text.flaw(body, depth=DEPTH, digits=DIGITS) is not None:
        return None
    try:
        answer = _read(body)
    except json_text.DECODE_ERRORS:
        return None
    if json_text.duplicate_key(body) is not None or answer.token_type.lower() != "bearer":
        return None
    token, life_s = answer.access_token, _life_s(answer.expires_in)
    if life_s is None or len(token) > limits.TOKEN_CHARS or _TOKEN.fullmatch(token) is None:
        return None
    return Issued(token, life_s - min(MARGIN_S, life_s * MARGIN_SHARE))


def _life_s(given: float | str | None) -> float | None:
    """Seconds of life, or None where the value is unusable. Some servers write the number as text."""
    if given is None:
        return LIFE_DEFAULT_S
    if isinstance(given, str):
        if _SECONDS.fullmatch(given) is None:
            return None
        given = float(given)
    return min(given, LIFE_MAX_S) if given >= 1 else None
