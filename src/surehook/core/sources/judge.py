"""Verifies one request: a provider's record, keys, and now → a message, or VerifyError and nothing else.

The order: size, headers, keys, signature, time, body. The body is not parsed before its signature is verified, except where
the signature is in the body or covers its fields. Every signature is compared with every key, none ends the loop early.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from surehook.core import instants, limits
from surehook.core.errors import Problem
from surehook.core.sources import greeting, keys, payload, proof
from surehook.core.sources.message import Item, Message
from surehook.core.sources.provider import (
    Clock,
    First,
    Header,
    Place,
    Provider,
    Signed,
    Standard,
    Token,
)
from surehook.core.sources.request import ID_CHARS, TYPE_CHARS, ReceivedRequest
from surehook.core.verification import (
    NO_FIT,
    Headers,
    Key,
    Keys,
    Verifier,
    VerifyError,
    body_bytes,
    canonical_base64,
    holds,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+", re.ASCII)
_DIGITS = re.compile(r"[0-9]{1,15}", re.ASCII)


class Judge:
    """A provider with the keys of one receiver. Raises VerifyError bad_secret, bad_setup.

    tolerance_s  in place of the provider's own; only where a time is covered
    known        what the receiver knows by itself (`webhook_id` of PayPal, `verify_token` of Meta)
    """

    def __init__(
        self,
        provider: Provider,
        secrets: Keys,
        *,
        tolerance_s: float | None = None,
        known: Mapping[str, str] | None = None,
    ) -> None:
        self.provider = provider
        self.known: Mapping[str, str] = known or {}
        self._tolerance_s = _tolerance(provider, tolerance_s)
        self._id_varies, self._type_varies = _vary(provider.id), _vary(provider.type)
        self._memo: dict[object, frozenset[str]] = {}
        self._standard: Verifier | None = None
        self._matchers: list[tuple[Key, keys.Matcher]] = []
        self._tokens: list[tuple[Key, bytes]] = []
        self.keys = keys.given(secrets)
        scheme = provider.scheme
        if isinstance(scheme, Standard):
            self._standard = Verifier(secrets, tolerance_s=self._tolerance_s or limits.TOLERANCE_S)
        elif isinstance(scheme, Signed):
            self._matchers = [(key, keys.matcher(scheme, key)) for key in self.keys]
        else:
            self._tokens = [(key, keys.token_bytes(scheme, key)) for key in self.keys]

    def verify(self, body: bytes | str, headers: Headers, *, now: float, url: str | None = None) -> Message:
        """Verify one request. `body` as received (text is taken as UTF-8), `now` in Unix seconds, `url` as the
        sender called it (Twilio). Raises VerifyError and nothing else."""
        try:
            return self._verify(body, headers, now, url)
        except VerifyError:
            raise
        except Exception as error:  # the promise of this method: one kind of error, whatever was passed in
            raise VerifyError("bad_signature", f"unreadable request ({type(error).__name__})") from None

    def _verify(self, body: bytes | str, headers: Headers, now: float, url: str | None) -> Message:
        if not isinstance(now, int | float) or not math.isfinite(now):
            raise VerifyError("bad_setup", "now is Unix seconds")
        if not isinstance(url, str | None):
            raise VerifyError("bad_setup", "the URL is text")
        # A body may be longer than its text, never shorter.
        if (
            isinstance(body, bytes | bytearray | memoryview | str)
            and len(body) > self.provider.bounds.body_bytes
        ):
            raise VerifyError("too_large", f"over {self.provider.bounds.body_bytes} bytes")
        raw = body_bytes(body)
        if len(raw) > self.provider.bounds.body_bytes:
            raise VerifyError("too_large", f"over {self.provider.bounds.body_bytes} bytes")
        request = ReceivedRequest(self.provider, headers, raw, url, self.known)
        if self._standard is not None:
            verified = self._standard.verify_read(request.headers, raw, now=now)
            return self._message(request, verified.key, _at(verified.timestamp * 1000), fresh=True)
        key = self._signer(request, now)
        clock = self.provider.sent_at
        sent_ms = None if clock is None else _read(clock, request.text(clock.place))
        fresh = self._tolerance_s is not None
        if self._tolerance_s is not None:
            _check_age(sent_ms, now, self._tolerance_s)
        return self._message(request, key, None if sent_ms is None else _at(sent_ms), fresh=fresh)

    # -- the signature ----------------------------------------------------------------------------------------

    def _signer(self, request: ReceivedRequest, now: float) -> Key:
        scheme = self.provider.scheme
        if isinstance(scheme, Token):
            return self._bearer(request, scheme, now)
        assert isinstance(scheme, Signed)  # Standard has a verifier of its own
        values = _signatures(request, scheme)
        contents = request.contents(scheme.content)
        request.content = contents[0]
        fits: list[tuple[Key, bool]] = []
        for key, matches in self._matchers:
            matched = False
            for content in contents:
                for value in values:
                    matched |= matches(content, value)
            fits.append((key, matched))
        return _chosen(fits, now)

    def _bearer(self, request: ReceivedRequest, scheme: Token, now: float) -> Key:
        text = request.header(scheme.place)
        if text is None:
            raise VerifyError("missing_header", f"{scheme.place.name} is missing")
        # The name of an authentication scheme is the same in any case (RFC 9110 section 11.1), the token is not.
        prefix, rest = text[: len(scheme.prefix)], text[len(scheme.prefix) :]
        held = prefix.lower() == scheme.prefix.lower()
        value = scheme.prefix.encode() + rest.encode("utf-8", "surrogatepass")
        return _chosen(
            [(key, hmac.compare_digest(token, value) and held) for key, token in self._tokens], now
        )

    # -- the message ------------------------------------------------------------------------------------------

    def _message(
        self, request: ReceivedRequest, key: Key, sent_at: datetime | None, *, fresh: bool
    ) -> Message:
        provider = self.provider
        value = request.parsed()
        type_ = _clean(request.joined(provider.type, "."), "type", TYPE_CHARS)
        answer = greeting.answer(provider, type_, value, self.keys)
        if provider.batch:
            return self._batch(request, key, sent_at, fresh)
        msg_id = _clean(request.joined(self.provider.id, ":"), "event id", ID_CHARS)
        if msg_id is None:
            if answer is None:
                raise VerifyError("malformed", "the event id is not where it should be")
            msg_id = _digest(request.raw)
        clock = provider.occurred_at
        occurred = None if clock is None else _read(clock, request.text(clock.place))
        return Message(
            provider=provider.name,
            id=msg_id,
            type=type_,
            occurred_at=None if occurred is None else _at(occurred),
            sent_at=sent_at,
            data=_data(provider, value),
            body=value,
            raw=request.raw,
            proven=self._proven(request, None, occurred is not None),
            fresh=fresh,
            must_refetch=provider.must_refetch,
            key_id=key.id,
            handshake=answer,
        )

    def _batch(self, request: ReceivedRequest, key: Key, sent_at: datetime | None, fresh: bool) -> Message:
        provider, value = self.provider, request.parsed()
        if not isinstance(value, list) or not value:
            raise VerifyError("malformed", "a list of events is expected")
        items = tuple(self._item(request, one) for one in value)
        return Message(
            provider=provider.name,
            id=_digest(request.raw),
            type=None,
            occurred_at=None,
            sent_at=sent_at,
            data=value,
            body=value,
            raw=request.raw,
            proven=self._proven(request, value[0], provider.occurred_at is not None),
            fresh=fresh,
            must_refetch=provider.must_refetch,
            key_id=key.id,
            items=items,
        )

    def _item(self, request: ReceivedRequest, one: object) -> Item:
        provider = self.provider
        item_id = _clean(request.joined(self.provider.id, ":", one), "event id", ID_CHARS)
        if item_id is None:
            raise VerifyError("malformed", "the id of an event is not where it should be")
        clock = provider.occurred_at
        occurred = None if clock is None else _read(clock, request.text(clock.place, one))
        return Item(
            item_id,
            _clean(request.joined(provider.type, ".", one), "type", TYPE_CHARS),
            None if occurred is None else _at(occurred),
            one,
        )

    def _proven(self, request: ReceivedRequest, root: object, has_time: bool) -> frozenset[str]:
        """Names that are proven by the places that had a value in this message. There are few such sets; each is judged once."""
        body_hash_signed = request.body_hash() is not None
        provider = self.provider
        id = request.present(provider.id, root) if self._id_varies else provider.id
        type = request.present(provider.type, root) if self._type_varies else provider.type
        asked = (id, type, has_time, body_hash_signed)
        named = self._memo.get(asked)
        if named is None:
            clock = provider.occurred_at
            named = self._memo[asked] = proof.named(
                provider,
                body=proof.covers_body(provider, body_hash_signed=body_hash_signed),
                id=id,
                type=type,
                time=(clock.place,) if clock is not None and has_time else (),
            )
        return named


def _vary(places: tuple[Place, ...]) -> bool:
    """True if messages differ in which of these places have a value."""
    return any(isinstance(one, First) or getattr(one, "optional", False) for one in places)


def _tolerance(provider: Provider, asked: float | None) -> float | None:
    """The tolerance to apply. Refused where no time is signed: it would have no effect."""
    if asked is None:
        return provider.tolerance_s
    if isinstance(asked, bool) or not isinstance(asked, int | float) or not 0 < asked <= 86_400:
        raise VerifyError("bad_setup", "a tolerance is more than 0 and at most 86,400 seconds")
    clock, body = provider.sent_at, proof.covers_body(provider)
    if clock is None or not proof.covers(provider, clock.place, body=body):
        raise VerifyError(
            "bad_setup", f"{provider.name} signs no time that a tolerance could be held against"
        )
    return asked


def _signatures(request: ReceivedRequest, scheme: Signed) -> list[bytes]:
    """The readable signatures of the request. Raises VerifyError missing_header, bad_signature."""
    place = scheme.place
    if isinstance(place, Header):
        if scheme.numbered:
            texts = request.numbered(place.name)
        elif scheme.elements is not None:
            texts = request.elements().get(scheme.elements[1], []) if request.header(place) else []
        else:
            value = request.header(place)
            texts = [] if value is None else [value]
        if not texts:
            raise VerifyError("missing_header", f"{place.name} is missing or holds no signature")
    else:
        value = request.text(place)
        if value is None:
            raise VerifyError("malformed", f"{place.path} is not in the body")
        texts = [value]
    read = (_decoded(text, scheme) for text in texts)
    return [value for value in read if value is not None]


def _decoded(text: str, scheme: Signed) -> bytes | None:
    """The bytes of a signature in its one spelling (hex in either case), else None."""
    if not text.startswith(scheme.prefix):
        return None
    rest = text[len(scheme.prefix) :]
    if scheme.encoding == "base64":
        return canonical_base64(rest) or None
    return bytes.fromhex(rest) if _HEX.fullmatch(rest) else None


def _chosen(fits: list[tuple[Key, bool]], now: float) -> Key:
    """The first key that matches and is valid now. Raises VerifyError key_not_valid, bad_signature."""
    held = [key for key, fit in fits if fit and holds(key, now)]
    if held:
        return held[0]
    if any(fit for _, fit in fits):
        raise VerifyError("key_not_valid", "signed by a key that does not hold now", hint="rotate the secret")
    raise VerifyError(
        "bad_signature", f"no signature fits any of the secrets given ({len(fits)})", hint=NO_FIT
    )


def _check_age(sent_ms: int | None, now: float, tolerance_s: float) -> None:
    """Check the age, both bounds inclusive. Called after the signature, so that a stranger learns nothing about this clock."""
    if sent_ms is None:
        raise VerifyError("bad_timestamp", "the time of signing is missing or cannot be read")
    if sent_ms < (now - tolerance_s) * 1000:
        raise VerifyError("too_old", "signed too long ago", hint="compare both clocks")
    if sent_ms > (now + tolerance_s) * 1000:
        raise VerifyError("too_new", "signed in the future", hint="compare both clocks")


def _read(clock: Clock, text: str | None) -> int | None:
    """Unix milliseconds, or None where it is no time from 1970 to 9999."""
    if text is None:
        return None
    if clock.unit == "rfc3339":
        try:
            return instants.parse(text)
        except (Problem, ValueError, OverflowError):
            return None
    if _DIGITS.fullmatch(text) is None:
        return None
    at_ms = int(text) * (1000 if clock.unit == "s" else 1)
    return at_ms if at_ms <= 253_402_300_799_999 else None


def _at(at_ms: int) -> datetime | None:
    try:
        return _EPOCH + timedelta(milliseconds=at_ms)
    except OverflowError:
        return None


def _data(provider: Provider, value: object) -> object:
    found = payload.at(value, provider.data) if provider.data else None
    return value if found is None else found


def _clean(text: str | None, what: str, chars: int) -> str | None:
    """The text, if it is visible characters, and no more than an index holds. Raises VerifyError malformed."""
    if text is None:
        return None
    words = text.split(" ")  # a type may have several (`Push Hook`)
    if (
        len(text) > chars
        or not all(words)
        or not text.isprintable()
        or (what == "event id" and len(words) > 1)
    ):
        raise VerifyError("malformed", f"the {what} has 1 to {chars} visible characters")
    return text


def _digest(raw: bytes) -> str:
    return "sha256:" + hashlib.sha256(raw).hexdigest()
