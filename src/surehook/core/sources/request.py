"""One received request, and reading places in it. Whatever was passed in, only VerifyError comes out."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from surehook.core import limits
from surehook.core.sources import payload
from surehook.core.sources.provider import (
    Digest,
    Element,
    Field,
    First,
    Header,
    Known,
    Part,
    Place,
    Provider,
    Signed,
    Whole,
)
from surehook.core.verification import Headers, VerifyError, header_text

ID_CHARS = 255  # of an id made of one or several places: databases can index it
TYPE_CHARS = 255
VALUE_BYTES = 8 * 1024  # of one header that is read: an RSA signature of 4096 bits is 684, a long token 4,096


class ReceivedRequest:
    """Headers, body, URL and the receiver's own values, read on demand.

    `found` remembers which of several places had a value, since only that one can be proven. `was_read`: the body was read as it
    was received, within the bounds of then.
    """

    def __init__(
        self,
        provider: Provider,
        headers: Headers,
        raw: bytes,
        url: str | None,
        known: Mapping[str, str],
        *,
        was_read: bool = False,
    ) -> None:
        self.provider, self.raw, self.url, self.known = provider, raw, url, known
        self._headers = headers
        if not was_read:  # what are no headers is refused before anything is looked at
            self.headers = _collected(headers)
        self._bounds = None if was_read else provider.bounds
        self._parsed: tuple[object] | None = None
        self._form: list[tuple[str, str]] | None = None
        self._elements: dict[str, list[str]] | None = None
        self.content = b""  # what was signed, once that is known

    # -- headers ----------------------------------------------------------------------------------------------

    @cached_property
    def headers(self) -> dict[str, list[str]]:
        """Names in lower case, each with all its values. Raises VerifyError bad_setup."""
        return _collected(self._headers)

    def header(self, place: Header) -> str | None:
        """The one value of a header and its aliases, or None. Raises VerifyError duplicate_header."""
        return _one(self.headers, place)

    def numbered(self, prefix: str) -> list[str]:
        """The values of `prefix-1` to `prefix-32`, each header once; numbers may be missing."""
        values = (self.header(Header(f"{prefix}-{number}")) for number in range(1, limits.SIGNATURES + 1))
        return [value for value in values if value is not None]

    def elements(self) -> dict[str, list[str]]:
        """The named elements of the signature header: `t=1,v1=a,v1=b` as {"t": ["1"], "v1": ["a", "b"]}."""
        if self._elements is None:
            scheme = self.provider.scheme
            if (
                not isinstance(scheme, Signed)
                or not isinstance(scheme.place, Header)
                or scheme.elements is None
            ):
                raise VerifyError("bad_setup", f"the signature of {self.provider.name} has no elements")
            text = self.header(scheme.place) or ""
            parts = text.split(scheme.elements[0])
            if len(parts) > limits.SIGNATURES + 1:
                raise VerifyError("too_many_signatures", f"over {limits.SIGNATURES} signatures")
            self._elements = {}
            for part in parts:
                name, equals, value = part.strip(" ").partition("=")
                if equals:
                    self._elements.setdefault(name, []).append(value)
        return self._elements

    # -- body -------------------------------------------------------------------------------------------------

    def parsed(self) -> Any:
        """The parsed body, read once. Raises VerifyError: malformed, unsafe_json."""
        if self._parsed is None:
            self._parsed = (self._read(),)
        return self._parsed[0]

    def _read(self) -> Any:
        if self.provider.body == "multipart":
            content_type = self.header(Header("content-type")) or ""
            part = payload.read_part(self.raw, content_type, self.provider.part)
            return payload.read_json(part, self._bounds)
        if self.provider.body == "form" and self.body_hash() is None:
            return dict(self.form())
        return payload.read_json(self.raw, self._bounds)

    def form(self) -> list[tuple[str, str]]:
        if self._form is None:
            self._form = payload.read_form(self.raw)
        return self._form

    def body_hash(self) -> str | None:
        """The `bodySHA256` of the URL's query: then the body is JSON, and this its hash."""
        if not self.url or "bodySHA256=" not in self.url:
            return None
        query = self.url.partition("?")[2]
        found = [part[11:] for part in query.split("&") if part.startswith("bodySHA256=")]
        return found[0] if found else None

    # -- places -----------------------------------------------------------------------------------------------

    def text(self, place: Place, root: object = None) -> str | None:
        """The value of a place as text, or None where there is none. `root` is an item of a batch."""
        if isinstance(place, Header):
            return self.header(place) or None
        if isinstance(place, Element):
            given = self.elements().get(place.name, [])
            if len(given) > 1:
                raise VerifyError("duplicate_header", f"{place.name} is given more than once")
            return given[0] if given else None
        if isinstance(place, First):
            return next((text for one in place.places if (text := self.text(one, root)) is not None), None)
        if isinstance(place, Digest):
            of = self.raw if place.of == "body" else self.content
            return "sha256:" + hashlib.sha256(of).hexdigest()
        value = payload.at(self.parsed() if root is None else root, place.path)
        if type(value) is str:
            return value or None
        return str(value) if type(value) is int else None

    def present(self, places: tuple[Place, ...], root: object = None) -> tuple[Place, ...]:
        """The places that have a value; of `First` the one whose value is taken."""
        found: list[Place] = []
        for place in places:
            options = place.places if isinstance(place, First) else (place,)
            found.extend([one for one in options if self.text(one, root) is not None][:1])
        return tuple(found)

    def joined(self, places: tuple[Place, ...], mark: str, root: object = None) -> str | None:
        """Several places as one text, the mark inside a value escaped so that no two lists of values look alike.
        None where a required one is missing."""
        texts = []
        for place in places:
            text = self.text(place, root)
            if text is None:
                if not getattr(place, "optional", False):
                    return None
                continue
            texts.append(text)
        if len(places) > 1 and mark == ":":
            texts = [text.replace("%", "%25").replace(":", "%3A") for text in texts]
        return mark.join(texts) or None

    # -- signed content ---------------------------------------------------------------------------------------

    def contents(self, parts: tuple[Part, ...]) -> list[bytes]:
        """The bytes that were signed; several where the sender may have spelled the URL in several ways."""
        contents = [b""]
        for part in parts:
            spelled = self._spelled(part)
            contents = [before + after for before in contents for after in spelled]
        return contents

    def _spelled(self, part: Part) -> list[bytes]:
        if isinstance(part, str):
            return [part.encode()]
        if isinstance(part, Whole):
            if part.how == "bytes":
                return [self.raw]
            if part.how == "crc32":
                return [str(zlib.crc32(self.raw)).encode("ascii")]
            return self._url_and_form()
        if isinstance(part, Known):
            value = self.known.get(part.name)
            if not isinstance(value, str) or not value:
                raise VerifyError(
                    "bad_setup", f"{part.name} is not known here", hint=f"known={{'{part.name}': …}}"
                )
            return [value.encode()]
        text = self.text(part)
        if text is None:
            missing = isinstance(part, Header | Element)
            raise VerifyError(
                "missing_header" if missing else "malformed", f"{part_name(part)} is not in the request"
            )
        # Header values are bytes of Latin-1 on the wire; those of the body are text in UTF-8.
        return [text.encode("utf-8" if isinstance(part, Field) else "latin-1", "surrogatepass")]

    def _url_and_form(self) -> list[bytes]:
        if not isinstance(self.url, str) or "://" not in self.url:
            raise VerifyError("bad_setup", "the URL that the sender called is needed", hint="url='https://…'")
        wanted = self.body_hash()
        joined = ""
        if wanted is not None:
            if hashlib.sha256(self.raw).hexdigest() != wanted.lower():
                raise VerifyError("bad_signature", "the body has not the hash that is signed")
        else:
            joined = "".join(name + value for name, value in sorted(set(self.form())))
        return [(url + joined).encode("utf-8", "surrogatepass") for url in _ports(self.url)]


def part_name(part: object) -> str:
    return str(getattr(part, "path", None) or getattr(part, "name", "a part"))


def _ports(url: str) -> list[str]:
    """The URL without its port, as given, and with the default port: senders differ in the one they sign."""
    scheme, mark, rest = url.partition("://")
    cut = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    netloc, tail = rest[:cut], rest[cut:]
    host, colon, port = netloc.rpartition(":")
    bare = host if colon and port.isdigit() else netloc
    usual = "443" if scheme.lower() == "https" else "80"
    return list(dict.fromkeys([f"{scheme}{mark}{bare}{tail}", url, f"{scheme}{mark}{bare}:{usual}{tail}"]))


def header_of(headers: Headers, place: Header) -> str | None:
    """The one value of a header and its aliases, or None. Raises VerifyError duplicate_header."""
    return _one(_collected(headers), place)


def _one(headers: dict[str, list[str]], place: Header) -> str | None:
    """The one value. A header given twice is refused, even with equal values: readers take the first or the last."""
    value: str | None = None
    for name in (place.name, *place.aliases):
        given = headers.get(name.lower(), ())
        if len(given) > 1 or (given and value is not None and given[0] != value):
            raise VerifyError("duplicate_header", f"{name} is given more than once")
        value = given[0] if given else value
    if value is not None and len(value) > VALUE_BYTES:
        raise VerifyError("bad_signature", f"{place.name} is over {VALUE_BYTES} bytes")
    return value


def _collected(headers: Headers) -> dict[str, list[str]]:
    """Lower-case names, each with all its values. Names and values may be text or bytes."""
    found: dict[str, list[str]] = {}
    try:
        for name, value in headers.items() if isinstance(headers, Mapping) else headers:
            key = (name if type(name) is str else header_text(name)).lower()
            text = (value if type(value) is str else header_text(value)).strip(" \t")
            given = found.get(key)
            if given is None:
                found[key] = [text]
            else:
                given.append(text)
    except (TypeError, ValueError):
        raise VerifyError("bad_setup", "headers are a mapping, or pairs of name and value") from None
    return found
