"""Writes a request as a provider would send it, for tests of receivers.

It uses the record in the other direction: ids, types and times are put where they are looked for, and the covered content is
signed. So a message made here proves that a receiver is set up for the record's scheme; that the record is right is proven
elsewhere, by signers that were written by hand (see docs/receiving.md).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from surehook.core import signature
from surehook.core.signature import read_secret
from surehook.core.sources import keys
from surehook.core.sources.provider import (
    Clock,
    Digest,
    Element,
    Field,
    First,
    Header,
    Place,
    Provider,
    Signed,
    SourceError,
    Standard,
    Token,
)
from surehook.core.sources.request import ReceivedRequest

BOUNDARY = "surehook-boundary"
_HASHES = {"hmac-sha256": "sha256", "hmac-sha512": "sha512", "hmac-sha1": "sha1"}


class RequestContent(Struct, frozen=True, kw_only=True):
    """The content of a request to be written.

    id, type  where the provider has a place for them; None: left out
    data      the business data, at the provider's place for it
    fields    further fields of the body, by dotted path
    body      the whole body instead, byte for byte: then ids and times are put into headers only
    headers   further headers
    """

    id: str | None
    type: str | None = None
    data: object = None
    fields: Mapping[str, object] = {}
    body: bytes | None = None
    headers: Mapping[str, str] = {}


class Written(Struct, frozen=True):
    body: bytes
    headers: dict[str, str]


def write(
    provider: Provider,
    secret: str,
    wanted: RequestContent,
    *,
    at: float,
    url: str | None = None,
    known: Mapping[str, str] | None = None,
) -> Written:
    """A signed request. `at` is Unix seconds, `secret` the sender's: a private key (PEM) where the scheme is asymmetric.

    Raises SourceError for what the provider has no place for, SecretError for a secret that cannot sign.
    """
    return _Writer(provider, secret, wanted, at, url, known or {}).written()


class _Writer:
    def __init__(
        self,
        provider: Provider,
        secret: str,
        wanted: RequestContent,
        at: float,
        url: str | None,
        known: Mapping[str, str],
    ) -> None:
        self._provider, self._secret, self._wanted, self._at = provider, secret, wanted, at
        self._url, self._known = url, known
        self._headers: dict[str, str] = {}
        self._elements: dict[str, str] = {}
        self._value: dict[str, object] = {}

    def written(self) -> Written:
        self._headers["content-type"] = self._content_type()
        if self._wanted.body is None:
            self._fill()
        self._place_all()
        self._headers |= self._wanted.headers
        body = self._body()
        scheme = self._provider.scheme
        if isinstance(scheme, Standard):
            self._standard(body)
        elif isinstance(scheme, Token):
            self._headers[scheme.place.name] = scheme.prefix + self._secret
        else:
            body = self._signed(scheme, body)
        return Written(body, self._headers)

    # -- content ----------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        wanted, provider = self._wanted, self._provider
        data = {} if wanted.data is None else deepcopy(wanted.data)
        if provider.data:
            _put(self._value, provider.data, data)
        elif isinstance(data, Mapping):
            self._value |= data
        else:
            raise SourceError("data", f"the body of {provider.name} is its data: an object")
        for path, value in wanted.fields.items():
            _put(self._value, path, deepcopy(value))

    def _place_all(self) -> None:
        provider, wanted = self._provider, self._wanted
        for clock in (provider.sent_at, provider.occurred_at):
            if clock is not None:
                self._place(clock.place, _time(clock, self._at))
        if wanted.type is not None:
            self._place_type(wanted.type)
        if wanted.id is not None:
            self._place_id(wanted.id)
        scheme = provider.scheme
        for part in scheme.content if isinstance(scheme, Signed) else ():
            if isinstance(part, Header):
                self._place(part, wanted.id or "1")

    def _place_type(self, type: str) -> None:
        places = self._provider.type
        if not places:
            raise SourceError("type", f"{self._provider.name} gives none")
        words = type.split(".", len(places) - 1)
        for place, word in zip(places, words, strict=False):
            self._place(place, word)

    def _place_id(self, id: str) -> None:
        """Put the id at the first place that nothing else decides; the others are the type, a time, or may be missing."""
        taken = {self._provider.type, getattr(self._provider.scheme, "place", None)}
        taken |= {clock.place for clock in (self._provider.sent_at, self._provider.occurred_at) if clock}
        taken |= set(self._provider.type)
        for place in self._provider.id:
            if place not in taken and not isinstance(place, Digest):
                self._place(place, id)
                return
        raise SourceError(
            "id", f"{self._provider.name} has no event id: events are told apart by their bodies"
        )

    def _place(self, place: Place, text: str | int) -> None:
        """Put a text at its place, unless that was given by name. A given body is left as it is: then headers have to do."""
        if isinstance(place, First):
            headers = [one for one in place.places if isinstance(one, Header)]
            place = headers[0] if headers and self._wanted.body is not None else place.places[0]
        if isinstance(place, Header):
            self._headers.setdefault(place.name, str(text))
        elif isinstance(place, Element):
            self._elements.setdefault(place.name, str(text))
        elif isinstance(place, Field) and self._wanted.body is None and _at(self._value, place.path) is None:
            _put(self._value, place.path, text)

    # -- encoding --------------------------------------------------------------------------------------------

    def _content_type(self) -> str:
        return {
            "json": "application/json",
            "form": "application/x-www-form-urlencoded",
            "multipart": f'multipart/form-data; boundary="{BOUNDARY}"',
        }[self._provider.body]

    def _body(self) -> bytes:
        if self._wanted.body is not None:
            return self._wanted.body
        if self._provider.body == "form":
            return urlencode(self._value).encode()
        value = [self._value] if self._provider.batch else self._value
        text = msgspec.json.encode(value)
        if self._provider.body == "json":
            return text
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{self._provider.part}"\r\n'
        return (
            head.encode()
            + b"Content-Type: application/json\r\n\r\n"
            + text
            + f"\r\n--{BOUNDARY}--\r\n".encode()
        )

    # -- signatures -------------------------------------------------------------------------------------------

    def _standard(self, body: bytes) -> None:
        kind, material = read_secret(self._secret)
        signing = signature.sign if kind == signature.V1 else signature.sign_v1a
        id, at = self._wanted.id or "1", int(self._at)
        self._headers |= {
            "webhook-id": id,
            "webhook-timestamp": str(at),
            "webhook-signature": signing(material, id, at, body).decode("ascii"),
        }

    def _signed(self, scheme: Signed, body: bytes) -> bytes:
        """Put the signature where the scheme has it. If that is the body, it is written again, unless it was given."""
        if isinstance(scheme.place, Field) and self._wanted.body is not None:
            return body
        if scheme.elements is not None and isinstance(scheme.place, Header):
            mark = scheme.elements[0]
            named = mark.join(f"{name}={value}" for name, value in self._elements.items())
            self._headers[scheme.place.name] = named
        request = ReceivedRequest(self._provider, self._headers, body, self._url, self._known)
        made = _sign(scheme.algorithm, self._secret, request.contents(scheme.content)[0])
        text = scheme.prefix + (made.hex() if scheme.encoding == "hex" else _base64(made))
        if isinstance(scheme.place, Field):
            _put(self._value, scheme.place.path, text)
            return self._body()
        name = scheme.place.name + ("-1" if scheme.numbered else "")
        if scheme.elements is not None:
            mark, element = scheme.elements
            before = self._headers[name]
            text = f"{before}{mark if before else ''}{element}={text}"
        self._headers[name] = text
        return body


def _sign(algorithm: str, secret: str, content: bytes) -> bytes:
    if algorithm in _HASHES:
        return hmac.digest(keys.secret_bytes(secret), content, _HASHES[algorithm])
    from cryptography.hazmat.primitives.asymmetric import ec, padding
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    private: Any = load_pem_private_key(secret.encode(), None)
    if algorithm == "ecdsa-p256-sha256":
        made: bytes = private.sign(content, ec.ECDSA(SHA256()))
    elif algorithm == "rsa-sha256":
        made = private.sign(content, padding.PKCS1v15(), SHA256())
    else:
        made = private.sign(content)
    return made


def _base64(made: bytes) -> str:
    from binascii import b2a_base64

    return b2a_base64(made, newline=False).decode("ascii")


def _time(clock: Clock, at: float) -> str | int:
    if clock.unit == "rfc3339":
        return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return int(at * (1000 if clock.unit == "ms" else 1))


def _at(value: object, path: str) -> object:
    for step in path.split("."):
        if not isinstance(value, Mapping) or step not in value:
            return None
        value = value[step]
    return value


def _put(value: Any, path: str, item: object) -> None:
    """Set the value at a dotted path; a number steps into a list."""
    step, dot, rest = path.partition(".")
    key: object = int(step) if isinstance(value, list) else step
    if not dot:
        value[key] = item
        return
    if isinstance(value, dict) and key not in value:
        value[key] = [{}] if rest.partition(".")[0].isdigit() else {}
    _put(value[key], rest, item)
