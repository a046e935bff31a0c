"""Handshakes: challenges of providers and the answers that they expect.

A challenge is answered only if the caller has proven something: the token agreed with Meta, a valid signature (Slack, Zoom),
the client id agreed with Adobe. Signing whatever a stranger sends (Zoom's token) would produce signatures for forgeries, so
the token must come signed and be a plain word, which no signed content is. Echoed values are short, plain, and sent as
text, so that they cannot be a page for a browser.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence

import msgspec

from surehook.core.sources import payload
from surehook.core.sources.provider import (
    EchoField,
    EchoHeader,
    EchoQuery,
    HashField,
    Header,
    Ping,
    Provider,
    Reply,
)
from surehook.core.sources.request import header_of
from surehook.core.verification import Headers, Key, VerifyError

_WORD = re.compile(r"[A-Za-z0-9._~+/=-]{1,256}", re.ASCII)
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)  # no colon: `v0:time:body` is what Zoom signs
_TEXT = (("content-type", "text/plain; charset=utf-8"), ("x-content-type-options", "nosniff"))
_JSON = (("content-type", "application/json"), ("x-content-type-options", "nosniff"))


def answer(provider: Provider, type: str | None, body: object, keys: Sequence[Key]) -> Reply | None:
    """The answer to a verified message that is a handshake and no event, or None. Raises VerifyError malformed."""
    shake = provider.handshake
    if isinstance(shake, Ping) and type == shake.type:
        return provider.success
    if isinstance(shake, EchoField) and type == shake.type:
        return Reply(200, _plain(payload.at(body, shake.field), _WORD).encode("ascii"), _TEXT)
    if isinstance(shake, HashField) and type == shake.type:
        token = _plain(payload.at(body, shake.field), _TOKEN)
        hashed = hmac.digest(keys[0].secret.encode(), token.encode("ascii"), "sha256").hex()
        return Reply(200, msgspec.json.encode({shake.names[0]: token, shake.names[1]: hashed}), _JSON)
    return None


def greet(
    provider: Provider,
    keys: Sequence[Key],
    known: Mapping[str, str],
    *,
    query: Mapping[str, str],
    headers: Headers,
) -> Reply:
    """The answer to a GET, with which some providers try an address before they use it.

    Raises VerifyError: `bad_signature` where the asker has not shown what was agreed, `malformed` where this provider sends no
    GET (answer 405), `bad_setup`.
    """
    shake = provider.handshake
    try:
        if isinstance(shake, EchoQuery):
            return _echo_query(shake, known, query)
        if isinstance(shake, EchoHeader):
            return Reply(200, b"", ((shake.name, _agreed(shake, keys, headers)),))
    except VerifyError:
        raise
    except Exception as error:  # as everywhere in this package: one kind of error
        raise VerifyError("bad_signature", f"unreadable request ({error.__class__.__name__})") from None
    raise VerifyError("malformed", f"{provider.name} sends no GET")


def success(provider: Provider, keys: Sequence[Key], headers: Headers) -> Reply:
    """The answer to a message that was stored: the provider's own words, and Adobe's client id back to it."""
    shake = provider.handshake
    if not isinstance(shake, EchoHeader):
        return provider.success
    agreed = (shake.name, _agreed(shake, keys, headers))
    return Reply(provider.success.status, provider.success.body, (*provider.success.headers, agreed))


def _echo_query(shake: EchoQuery, known: Mapping[str, str], query: Mapping[str, str]) -> Reply:
    agreed = known.get("verify_token")
    if not isinstance(agreed, str) or not agreed:
        raise VerifyError(
            "bad_setup", "the token agreed with the provider is needed", hint="known={'verify_token': …}"
        )
    shown = hmac.compare_digest(query.get(shake.token, "").encode(), agreed.encode())
    if not shown or query.get(shake.fixed[0]) != shake.fixed[1]:
        raise VerifyError("bad_signature", "the token is not the one agreed")
    return Reply(200, _plain(query.get(shake.challenge), _WORD).encode("ascii"), _TEXT)


def _agreed(shake: EchoHeader, keys: Sequence[Key], headers: Headers) -> str:
    """The configured value that equals the header. The echo is ours, not the stranger's."""
    value = (header_of(headers, Header(shake.name)) or "").encode("utf-8", "surrogatepass")
    found = [key.secret for key in keys if hmac.compare_digest(key.secret.encode(), value)]
    if not found:
        raise VerifyError("bad_signature", f"{shake.name} is not one agreed")
    return found[0]


def _plain(value: object, pattern: re.Pattern[str]) -> str:
    if type(value) is not str or pattern.fullmatch(value) is None:
        raise VerifyError("malformed", "the challenge is not a plain word")
    return value
