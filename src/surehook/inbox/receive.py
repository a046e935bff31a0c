"""One HTTP request, judged: either an answer at once, or something to store and then to answer.

No socket and no database here: what comes in and what goes out are values, so that every framework has the same rules.

    size, encoding → caller → signature → handshake → schema version → a Request with its events → stored → reply
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from surehook.core import redact
from surehook.core.errors import SettingsError
from surehook.core.meant import meant
from surehook.core.sources import payload
from surehook.core.sources.message import Message
from surehook.core.sources.provider import Field, Header, Reply, Token
from surehook.core.sources.request import header_of
from surehook.core.verification import VerifyError
from surehook.inbox.answers import problem, refused
from surehook.inbox.log_limits import OncePer
from surehook.inbox.refusals import Refusals
from surehook.inbox.safe_log import log
from surehook.inbox.sources.source import TENANT_CHARS, Source
from surehook.ports.inbox import Stored, StoredEvent, StoredRequest

HEADERS = 100  # more than any sender has; a request with more wants something else
HEADER_BYTES = 32 * 1024  # stored with every request
EVENTS = 1_000  # in one body: the largest batch a provider sends
SCHEMA_CHARS = 64
CORRELATION_CHARS = 256
LOST_S = 60.0  # between two lines about requests to no source
NO_SOURCE = "There is no such source at this address: it is that of the receiver's mount, a slash, and the source's name"
BODY_S = 60.0  # between two lines about bodies that somebody in front has read
NO_BODY = (
    "a request to %s came without its body: either its sender hung up, or something in front of the inbox (a middleware, a "
    "before_request) has read it; let it leave the inbox's path alone%s"
)
CHANGED = (
    "a request to %s came with a body of %d bytes, and its headers announce %d: something in front of the inbox (a middleware) "
    "has read or changed it, and a signature covers the bytes as they were sent; let it leave the inbox's path alone%s"
)
# Refusals by the head alone, after which most senders do not try again.
LOST_BY_HEAD = {
    "too_large": "its body is larger than the source takes: body_bytes= allows more",
    "unsupported_encoding": "its body is compressed, and a signature covers what is sent: have its sender, or a proxy, not do so",
    "headers_too_large": f"more than {HEADERS} headers, or {HEADER_BYTES} bytes of them",
    "caller_refused": "it came from outside the source's networks",
}
_HIDDEN = ("authorization", "proxy-authorization", "cookie")

Pairs = Sequence[tuple[str, str]]


class IncomingRequest(Struct, frozen=True):
    """One HTTP request as a framework gives it. `url` is the full one that the sender called, as far as can be told."""

    method: str
    source: str
    query: str
    url: str
    headers: Pairs
    peer: str
    body: bytes


class BelievedRequest(Struct, frozen=True, gc=False):
    """A believed request to be stored; `reply` says what to answer then. What it came in is let go: hundreds may wait for one
    commit, and the garbage collector looks at all that they hold, again and again."""

    source: Source
    request: StoredRequest
    success: Reply

    def reply(self, ends: Sequence[Stored]) -> Reply:
        """Answer the same 2xx to new and repeated events; a conflict by the source's rule."""
        if self.source.on_conflict == "refuse" and any(end.kind == "conflict" for end in ends):
            return problem("event_conflict")
        return self.success


class Receiver:
    """The sources of an inbox, and what was refused of them.

    `identify(now)` makes an id of sixteen bytes, `boot` counts seconds.
    """

    def __init__(self, identify: Callable[[int], bytes], boot: Callable[[], float]) -> None:
        self.sources: dict[str, Source] = {}
        self.refusals = Refusals(boot)
        self._identify = identify
        self._lost = OncePer(boot, LOST_S)
        self._told = OncePer(boot, BODY_S)

    def before_body(self, call: IncomingRequest, length: int | None) -> Reply | None:
        """Answer from the head alone, or None. `length` is the body's, by the sender's word."""
        source = self.sources.get(call.source)
        if source is None:
            return self._unknown(call)
        size, forwarded, encoded = 0, [], False
        for name, value in call.headers:
            size += len(name) + len(value)
            if name == "x-forwarded-for":
                forwarded.append(value)
            elif name == "content-encoding":
                encoded = encoded or value.strip().lower() not in ("", "identity")
        if len(call.headers) > HEADERS or size > HEADER_BYTES:
            return self.refuse(call.source, "headers_too_large")
        if not source.admits(call.peer, forwarded):
            return self.refuse(call.source, "caller_refused")
        if call.method == "GET":
            return self._greet(source, call)
        if call.method != "POST":
            return self.refuse(call.source, "method_not_allowed")
        if encoded:
            return self.refuse(call.source, "unsupported_encoding")
        if length is not None and length > source.body_bytes:
            return self.refuse(call.source, "too_large")
        return None

    def _unknown(self, call: IncomingRequest) -> Reply:
        """Answer for a source that is not there. Strangers ask for anything: it is logged rarely, counted without the name."""
        self.refusals.count("", "unknown_source")
        if self._lost.may("unknown_source"):
            log.warning(
                "%s %s: there is no source %r here; sources: %s. The address is that of the mount, a slash, and the source",
                redact.printable(call.method, chars=16), redact.printable(call.url.partition("?")[0], chars=200),
                redact.printable(call.source, chars=64), ", ".join(self.sources) or "none",
            )  # fmt: skip
        return problem("unknown_source", NO_SOURCE)

    def refuse(self, source: str, code: str) -> Reply:
        """Refuse what was not looked at further: a number, and no sample. What is lost by it is logged, once a minute."""
        self.refusals.count(source, code)
        if (cure := LOST_BY_HEAD.get(code)) is not None and self._told.may((source, code)):
            log.warning("refused a message of %s: %s (%s)", source, code, cure)
        return problem(code, headers=(("allow", "POST"),) if code == "method_not_allowed" else ())

    def note_missing(self, source: str, cure: str = "") -> None:
        """Log once a minute that a body did not come. Its sender is told nothing of use: it has sent one."""
        if self._told.may("missing"):
            log.warning(NO_BODY, source, cure)

    def note_changed(self, source: str, length: int, announced: int, cure: str = "") -> None:
        """Log once a minute that a body has another length than its headers announce."""
        if self._told.may("changed"):
            log.warning(CHANGED, source, length, announced, cure)

    def body_bytes(self, name: str) -> int:
        """Return the size of the largest body that is read for a source."""
        return self.sources[name].body_bytes

    def judge(self, call: IncomingRequest, *, now: int) -> Reply | BelievedRequest:
        """Verify a request: a refusal, or what is to be stored. `now` is in Unix milliseconds. Never raises for its content."""
        source = self.sources[call.source]
        try:
            message = source.verify(call.body, call.headers, now=now / 1000, url=call.url)
            if message.handshake is not None:
                return message.handshake
            request = self._request(source, message, call, now)
            return BelievedRequest(source, request, source.success(call.headers))
        except VerifyError as error:
            self.note(
                call, error.code, f"{error.detail}; {error.hint}" if error.hint else error.detail, now=now
            )
            return refused(error)
        except UnknownSchema as error:
            self.note(call, "unknown_schema", str(error), now=now)
            return problem("unknown_schema")

    def note(self, call: IncomingRequest, code: str, detail: str, *, now: int) -> None:
        self.refusals.note(call.source, code, detail, headers=call.headers, body=call.body, now=now)

    def _greet(self, source: Source, call: IncomingRequest) -> Reply:
        try:
            return source.greet(query=dict(parse_qsl(call.query)), headers=call.headers)
        except VerifyError as error:
            if error.code == "malformed":
                return self.refuse(source.name, "method_not_allowed")
            self.refusals.count(source.name, error.code)
            return refused(error)
        except ValueError:  # a query with more fields than anybody sends
            return self.refuse(source.name, "malformed")

    def _request(self, source: Source, message: Message, call: IncomingRequest, now: int) -> StoredRequest:
        messages = message.each()
        if len(messages) > EVENTS:
            raise VerifyError("malformed", f"over {EVENTS} events in one body")
        batch = message.items is not None
        events = tuple(
            self._event(source, one, call.headers, index if batch else None, now)
            for index, one in enumerate(messages)
        )
        return StoredRequest(
            id=events[0].id,
            source=source.name,
            received_at=now,
            url=call.url if "bodySHA256=" in call.url else None,
            headers=_kept(source, call.headers),
            body=call.body,
            events=events,
        )

    def _event(
        self, source: Source, message: Message, headers: Pairs, item: int | None, now: int
    ) -> StoredEvent:
        version = _found(source.schema_version, message, headers, SCHEMA_CHARS)
        known = not source.schema_versions or version in source.schema_versions
        if not known and source.unknown_schema == "refuse":
            raise UnknownSchema(f"schema version {version!r}")
        tenant = source.tenant
        if not isinstance(tenant, str):
            found = _found(tenant, message, headers, TENANT_CHARS)
            if found is None:
                raise VerifyError("malformed", "the tenant is not where it should be")
            if found != found.strip():  # some databases take it for the same with and without
                raise VerifyError("malformed", "the tenant has spaces around it")
            tenant = found
        raw = message.raw if item is None else _sorted(message.body)
        if (lasting := payload.without(message.body, source.provider.volatile)) is not message.body:
            raw = _sorted(lasting)
        return StoredEvent(
            id=self._identify(now),
            source=source.name,
            tenant=tenant,
            event_id=message.id,
            type=message.type,
            body_sha256=hashlib.sha256(raw).digest(),
            item=item,
            occurred_at=_millis(message.occurred_at),
            sent_at=_millis(message.sent_at),
            proven=",".join(sorted(message.proven)),
            key_id=message.key_id,
            schema_version=version,
            correlation_id=_found(source.correlation_id, message, headers, CORRELATION_CHARS),
            parked=not known,
        )


class UnknownSchema(Exception):
    """A schema version that the source refuses."""


def _sorted(value: object) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _found(place: Field | Header | None, message: Message, headers: Pairs, chars: int) -> str | None:
    """Read the text at a place; None for what is missing, too long or not visible."""
    if place is None:
        return None
    if isinstance(place, Header):
        value = header_of(headers, place)
    else:
        value = payload.at(message.body, place.path)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
    if not isinstance(value, str) or not 0 < len(value) <= chars or not value.isprintable():
        return None
    return value


def _kept(source: Source, headers: Pairs) -> str:
    """Write the headers as JSON, without credentials that would let a reader of the table in elsewhere."""
    hidden: Mapping[str, bool] = dict.fromkeys(_HIDDEN, True)
    scheme = source.provider.scheme
    token = scheme.place.name.lower() if isinstance(scheme, Token) else None
    shown = [(name, redact.HIDDEN if name in hidden or name == token else value) for name, value in headers]
    return msgspec.json.encode(shown).decode()


def _millis(at: datetime | None) -> int | None:
    return None if at is None else round(at.timestamp() * 1000)


def no_source(
    name: str, known: Collection[str], none: str = "there are none yet: add(source) comes first"
) -> SettingsError:
    """Make the error for a source that an inbox does not define; `none` is its hint where no source is defined."""
    hint = meant(str(name), known, "sources") if known else none
    return SettingsError("source", f"this inbox has no source {name!r:.80}", hint=hint)
