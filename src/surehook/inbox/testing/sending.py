"""Messages as a provider would send them, signed for one source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count

from msgspec import Struct, structs

from surehook.core.errors import SettingsError
from surehook.core.sources.catalog import PROVIDERS
from surehook.core.sources.provider import Digest, Field, Provider, Signed, Standard
from surehook.core.sources.writing import RequestContent, write
from surehook.core.verification import holds
from surehook.host.clock import SystemClock
from surehook.inbox.receive import IncomingRequest
from surehook.inbox.sources.source import Source
from surehook.ports.clock import Clock

URL = "http://testserver/hooks/"
RETRY = "webhook-retry-count"
SECRET = "whsec_" + "YSB0ZXN0J3Mgb3duIHNlY3JldCwgMzIgYnl0ZXMgbG9uZw=="
TEXT = "a secret that only tests know, of many characters"
OTHER_SECRET = "whsec_" + "T3RoZXIgcGVvcGxlJ3Mgc2VjcmV0LCAzMiBieXRlcy4="


class Sender(Struct, frozen=True, kw_only=True):
    """A signing sender: a provider, the secret that its messages are signed with, and the source that they are sent to."""

    provider: Provider
    secret: str
    source: str
    url: str | None = None
    known: Mapping[str, str] = {}

    @classmethod
    def to(cls, source: Source, *, at: float, secret: str | None = None, url: str | None = None) -> Sender:
        """The sender of a source, with the first of its secrets that holds at this instant (Unix seconds).

        A source with a public key cannot tell what it is signed with: give `secret`, the private key as PEM.
        """
        provider = source.provider
        if secret is None:
            secret = next((key.secret for key in source.keys if holds(key, at)), source.keys[0].secret)
            scheme = provider.scheme
            if secret.startswith("whpk_") or (isinstance(scheme, Signed) and "hmac" not in scheme.algorithm):
                raise SettingsError("secret", f"{source.name} has a public key: sign with the private one")
        return cls(provider=provider, secret=secret, source=source.name, url=url, known=source.known)

    @classmethod
    def named(
        cls, provider: str, *, secret: str, url: str | None = None, known: Mapping[str, str] | None = None
    ) -> Sender:
        """The sender that a provider of this name is. Raises SettingsError where there is none."""
        found = PROVIDERS.get(provider)
        if found is None:
            raise SettingsError("provider", f"there is no {provider!r}", hint=", ".join(sorted(PROVIDERS)))
        return cls(provider=found, secret=secret, source=provider, url=url, known=known or {})

    @property
    def names_events(self) -> bool:
        """True if the provider gives events ids; otherwise they are told apart by their bodies."""
        return not all(isinstance(place, Digest) for place in self.provider.id)

    def wanted(
        self,
        numbers: Iterator[int],
        id: str | None,
        type: str | None,
        data: object,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        fields: Mapping[str, object],
    ) -> RequestContent:
        """Describe a message to be made; without an id, and where there are ids, it gets the next of `evt_1`, `evt_2`, …"""
        if id is None and self.names_events:
            id = f"evt_{next(numbers)}"
        return RequestContent(id=id, type=type, data=data, body=body, headers=headers or {}, fields=fields)

    def message(self, wanted: RequestContent, *, at: float) -> Message:
        """A signed message. `at` is Unix seconds."""
        made = write(self.provider, self.secret, wanted, at=at, url=self._url, known=self.known)
        return Message(
            body=made.body,
            headers=made.headers,
            url=self._url,
            id=wanted.id,
            type=wanted.type,
            sender=self,
            wanted=wanted,
            at=at,
        )

    @property
    def _url(self) -> str:
        return self.url or URL + self.source


class Message(Struct, frozen=True, kw_only=True):
    """One request, ready to be sent by any client: `client.post(path, content=message.body, headers=message.headers)`.

    id   the sender's event id, None where the provider has none
    url  as the sender calls it
    at   when it was signed, Unix seconds
    """

    body: bytes
    headers: dict[str, str]
    url: str
    id: str | None
    type: str | None
    sender: Sender
    wanted: RequestContent
    at: float

    @property
    def source(self) -> str:
        return self.sender.source

    def again(self, *, at: float, retry: int = 0, replay: bool = False) -> Message:
        """The same event, the same bytes, signed at another time, as senders do when they try again."""
        more = {RETRY: str(retry), "webhook-attempt": str(retry + 1)} | (
            {"webhook-replay": "1"} if replay else {}
        )
        kept = {} if isinstance(self.sender.provider.scheme, Standard) else self._unsigned()
        wanted = RequestContent(id=self._told_id(), body=self.body, headers=kept | more)
        return structs.replace(self.sender.message(wanted, at=at), id=self.id, type=self.type)

    def call(self) -> IncomingRequest:
        """As `Inbox.receive` takes it."""
        return IncomingRequest(
            method="POST",
            source=self.source,
            query=self.url.partition("?")[2],
            url=self.url,
            headers=[(name.lower(), value) for name, value in self.headers.items()],
            peer="127.0.0.1",
            body=self.body,
        )

    def _told_id(self) -> str | None:
        return self.id if isinstance(self.sender.provider.scheme, Standard) else None

    def _unsigned(self) -> dict[str, str]:
        """The headers that say which event it is: they are no matter of when it was sent."""
        provider = self.sender.provider
        own = {getattr(place, "name", "").lower() for place in (*provider.id, *provider.type)}
        return {name: value for name, value in self.headers.items() if name.lower() in own}


def forgeries(message: Message, *, proven: frozenset[str]) -> dict[str, Message]:
    """Make, by name, what somebody without the secret can make of a message. What the scheme does not prove cannot be refused."""
    sender, scheme = message.sender, message.sender.provider.scheme
    stranger = structs.replace(sender, secret=OTHER_SECRET)
    made: dict[str, Message] = {}
    if not (isinstance(scheme, Signed) and isinstance(scheme.place, Field)):
        made["no signature"] = structs.replace(message, headers=_without_signature(message))
    elif message.wanted.body is not None:
        return made  # the signature is in a body that somebody else wrote
    if not isinstance(scheme, Signed) or scheme.algorithm.startswith("hmac"):
        made["other secret"] = stranger.message(message.wanted, at=message.at)
    if "body" in proven:
        made["another body"] = structs.replace(message, body=message.body[:-1] + b" " + message.body[-1:])
    if "id" in proven and isinstance(scheme, Standard):
        made["another id"] = structs.replace(
            message, headers=message.headers | {"webhook-id": f"{message.id}_other"}
        )
    return made


def _without_signature(message: Message) -> dict[str, str]:
    scheme = message.sender.provider.scheme
    name = "webhook-signature" if isinstance(scheme, Standard) else getattr(scheme.place, "name", "")
    return {one: value for one, value in message.headers.items() if not one.lower().startswith(name.lower())}


def ready_sources() -> list[Source]:
    """A source for each provider that a text is enough to sign for, for tests that are about none of them in particular."""
    found = []
    for name, provider in PROVIDERS.items():
        scheme = provider.scheme
        if isinstance(scheme, Signed) and not scheme.algorithm.startswith("hmac"):
            continue
        secret = SECRET if isinstance(scheme, Standard) else TEXT
        found.append(Source(provider, secret, name=name))
    return found


def signing(clock: Clock | None = None) -> Callable[..., Message]:
    """`sign(provider, type, data, secret=…)` for a client of one's own, by the clock (None: this machine's)."""
    now, numbers = (clock or SystemClock()).now, count(1)

    def sign(
        provider: str,
        type: str | None = None,
        data: object = None,
        *,
        secret: str,
        id: str | None = None,
        body: bytes | None = None,
        url: str | None = None,
        known: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        **fields: object,
    ) -> Message:
        sender, at = Sender.named(provider, secret=secret, url=url, known=known), now() / 1000
        return sender.message(sender.wanted(numbers, id, type, data, body, headers, fields), at=at)

    return sign
