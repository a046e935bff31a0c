"""The record of a provider: places in a request, the scheme of its signature, and the checks of a definition.

Places are values, so that the same one can be read, signed and looked up among the covered ones.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from surehook.core.errors import SurehookError

# -- places in a request -------------------------------------------------------------------------------------


class Header(Struct, frozen=True):
    """A header, by its name in any case. `aliases` are other names of the same; two that differ are refused."""

    name: str
    aliases: tuple[str, ...] = ()
    optional: bool = False


class Element(Struct, frozen=True):
    """A named part of the signature header, such as `t` of `t=1700000000,v1=…`."""

    name: str


class Field(Struct, frozen=True):
    """A value of the parsed body, by dotted path; a number steps into a list: `entry.0.time`."""

    path: str
    optional: bool = False


class First(Struct, frozen=True):
    """The first of several places that has a value."""

    places: tuple[Header | Field, ...]
    optional: bool = False


class Digest(Struct, frozen=True):
    """`sha256:…` of the raw body, or of the content that was signed: an id for providers that give none."""

    of: Literal["body", "content"]


class Known(Struct, frozen=True):
    """Values that the receiver knows and no request brings, such as the webhook id that PayPal signs."""

    name: str


class Whole(Struct, frozen=True):
    """All of the body as one part of what is signed.

    bytes         as it came
    crc32         only its CRC-32, as decimal text: no protection, since a body with the same sum is easily made
    url_and_form  the URL that was called, and after it the fields of the form, sorted, names and values joined without
                  anything between; with `bodySHA256` in the URL, the URL alone, and the body must have that hash
    """

    how: Literal["bytes", "crc32", "url_and_form"] = "bytes"


BODY = Whole()
Place = Header | Element | Field | First | Digest
Part = str | Header | Element | Field | Known | Whole  # a str is literal


class Clock(Struct, frozen=True):
    """A time and how it is written: Unix seconds, Unix milliseconds, or RFC 3339."""

    place: Header | Element | Field
    unit: Literal["s", "ms", "rfc3339"] = "s"


# -- schemes -------------------------------------------------------------------------------------------------


class Standard(Struct, frozen=True):
    """Standard Webhooks 1.0.0, `v1` and `v1a`, also under the names `svix-…`. Rules: `core/verification.py`."""


class Signed(Struct, frozen=True):
    """A signature over parts of the request.

    place      where it stands: a header, or a field of the body
    content    the signed parts, in order
    algorithm  HMACs take the secret as text; the others a public key
    encoding   of the signature
    prefix     what precedes the signature (`sha256=`); it must be there
    elements   separator and name, where the header is a list of named elements (`t=…,v1=…`): (",", "v1")
    numbered   the name is a prefix: `…-1`, `…-2`, one header for each key of the sender
    """

    place: Header | Field
    content: tuple[Part, ...]
    algorithm: Literal[
        "hmac-sha256", "hmac-sha512", "hmac-sha1", "ecdsa-p256-sha256", "rsa-sha256", "ed25519"
    ] = "hmac-sha256"
    encoding: Literal["hex", "base64"] = "hex"
    prefix: str = ""
    elements: tuple[str, str] | None = None
    numbered: bool = False


class Token(Struct, frozen=True):
    """A text that the caller knows. It proves nothing about the message. `prefix` precedes it (`Bearer `)."""

    place: Header
    prefix: str = ""


Scheme = Standard | Signed | Token

# -- handshakes and answers ----------------------------------------------------------------------------------


class Reply(Struct, frozen=True):
    """An answer: status, headers, body."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class EchoQuery(Struct, frozen=True):
    """GET with a challenge in the query: returned if the token beside it is the one agreed (`known["verify_token"]`)."""

    challenge: str
    token: str
    fixed: tuple[str, str]


class EchoField(Struct, frozen=True):
    """A signed message of type `type`: the text of `field` is returned."""

    type: str
    field: str


class HashField(Struct, frozen=True):
    """A signed message of type `type`: the token of `field` is returned with its HMAC-SHA256 under the secret."""

    type: str
    field: str
    names: tuple[str, str]


class EchoHeader(Struct, frozen=True):
    """GET with a header, and every message: the header is returned if its value is one agreed."""

    name: str


class Ping(Struct, frozen=True):
    """A message of type `type` only tries the connection: it gets the success reply and is no event."""

    type: str


Handshake = EchoQuery | EchoField | HashField | EchoHeader | Ping


class Bounds(Struct, frozen=True):
    """Bounds of a stranger's body: bytes, levels of nesting, keys of all objects, values in all."""

    body_bytes: int = 1024 * 1024  # the default of receivers; a signing event is some KB
    depth: int = 64  # later parsers begin to give up at about 100
    keys: int = 10_000
    values: int = 100_000
    digits: int = 308  # more is infinite as a double


class SourceError(SurehookError):
    """A provider or a source has a contradictory definition. `field` names the part."""

    def __init__(self, field: str, detail: str, *, hint: str | None = None) -> None:
        super().__init__(f"{field}: {detail}" + (f"\n  hint: {hint}" if hint else ""))
        self.code = "bad_source"
        self.field = field
        self.detail = detail
        self.hint = hint


class Provider(Struct, frozen=True, kw_only=True):
    """The way one sender signs and writes. Raises SourceError when defined with a contradiction.

    name          of the provider, `[a-z0-9_-]`
    scheme        Standard, Signed or Token
    id            place of the event id; several places are joined by `:`. It identifies repeats, so a time alone, or a
                  type and a time, are refused
    type          place of the type; several places are joined by `.`; empty: there is none
    sent_at       place of the time at which this request was signed or sent, or None
    occurred_at   place of the time at which the event happened, or None
    tolerance_s   how far `sent_at` may be from now, in seconds; None: not checked. Only a time that is covered by the
                  signature can have one
    body          json, form, or multipart (`part` names the part that holds JSON)
    correlation   place of an id by which a document is followed through systems, or None
    data          dotted path of the business data in the body; all of it where empty or absent
    volatile      fields that describe a delivery and not the event (a count of tries): repeats of one event may differ in them
    batch         the body is a list, each item an event
    handshake     the provider's challenge, or None
    success       the answer that it expects
    must_refetch  the body is not proven in a way to act on: fetch the object from the provider's API first
    caveat        one sentence for people about what the scheme leaves open
    """

    name: str
    scheme: Scheme
    id: tuple[Place, ...]
    type: tuple[Place, ...] = ()
    sent_at: Clock | None = None
    occurred_at: Clock | None = None
    tolerance_s: float | None = None
    body: Literal["json", "form", "multipart"] = "json"
    part: str = ""
    correlation: Field | Header | None = None
    data: str = ""
    volatile: tuple[Field, ...] = ()
    batch: bool = False
    handshake: Handshake | None = None
    success: Reply = Reply()
    must_refetch: bool = False
    bounds: Bounds = Bounds()
    caveat: str = ""

    def __post_init__(self) -> None:
        if re.fullmatch(r"[a-z0-9_-]{1,64}", self.name) is None:
            raise SourceError("name", "1 to 64 of a-z, 0-9, _ and -")
        for places in ("id", "type", "volatile"):
            if not isinstance(getattr(self, places), tuple):
                raise SourceError(places, "has to be a tuple of places", hint=f"{places}=(Field('name'),)")
        check_id(self.id, self)
        if self.tolerance_s is not None and (self.sent_at is None or not 0 < self.tolerance_s <= 86_400):
            raise SourceError("tolerance_s", "more than 0 and at most a day, and only where there is a time")
        if (self.body == "multipart") != bool(self.part):
            raise SourceError("part", "names the part of a multipart body, and only of one")
        if taken := {*self.id, *self.type}.intersection(self.volatile):
            raise SourceError("volatile", f"{', '.join(str(one) for one in taken)} says which event it is")
        if isinstance(self.scheme, Signed):
            _check_scheme(self.scheme)


def _check_scheme(scheme: Signed) -> None:
    if all(isinstance(part, str | Known) for part in scheme.content):
        raise SourceError("scheme.content", "the same for every message: one signature would pass for all")
    if scheme.elements is not None and (scheme.numbered or not isinstance(scheme.place, Header)):
        raise SourceError("scheme.elements", "named elements stand in one header")
    if scheme.elements is None and any(isinstance(part, Element) for part in scheme.content):
        raise SourceError("scheme.content", "an element is signed, and the header has none")


# The last word of a name that means a time: created_at, eventDate, X-Request-Timestamp, event_ts.
_TIME = re.compile(
    r"(?:\A|[^A-Za-z])(?:at|ts|t|time|date|datetime|timestamp|created|updated|sent|issued)\Z", re.IGNORECASE
)
_TIME_CAMEL = re.compile(r"[a-z0-9](?:At|Ts|Time|Date|DateTime|Timestamp)\Z")


def check_id(places: tuple[Place, ...], provider: Provider) -> None:
    """Refuse, with SourceError, an id that two events can share by happening at the same time."""
    if not places:
        raise SourceError("id", "says what repeats are recognised by, and may not be empty")
    times = {clock.place for clock in (provider.sent_at, provider.occurred_at) if clock is not None}
    if all(place in times or place in provider.type or _is_time(place) for place in places):
        raise SourceError(
            "id",
            "a time, or a type and a time, cannot tell two events apart",
            hint="the event id, or more fields beside it, or Digest('body')",
        )
    if all(getattr(place, "optional", False) for place in places):
        raise SourceError("id", "at least one place must be required")


def _is_time(place: Place) -> bool:
    if isinstance(place, First):
        return any(_is_time(one) for one in place.places)
    if isinstance(place, Digest):
        return False
    name = place.path if isinstance(place, Field) else place.name
    return _TIME.search(name) is not None or _TIME_CAMEL.search(name) is not None
