"""One source of an inbox: a provider, the receiver's secrets, and what the receiver decides beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import structs

from surehook.core.errors import SettingsError
from surehook.core.sources import callers, greeting, proof
from surehook.core.sources.judge import Judge
from surehook.core.sources.message import Message
from surehook.core.sources.provider import (
    Bounds,
    Field,
    Header,
    Place,
    Provider,
    Reply,
    SourceError,
    Token,
)
from surehook.core.verification import Headers, Key, Keys, VerifyError
from surehook.inbox.patterns import check_pattern, matches
from surehook.inbox.sources.receipts_to import ReceiptsTo

TENANT_CHARS = 128  # it stands in the key of every event
PROVABLE = frozenset({"body", "time", "id", "type"})


class Source:
    """A sender's configuration, checked once and used for every request. Raises SourceError for a choice that cannot be right.

    name             of this source in storage and metrics, `[a-z0-9_-]` (None: the provider's)
    secret           one or several, as for `surehook.verify`
    tolerance_s      in place of the provider's, where a time is signed
    dedupe_by        places of the event id, in place of the provider's; a time alone is refused
    known            what the receiver knows (`webhook_id` of PayPal, `verify_token` of Meta)
    networks         CIDRs the caller must be in; empty: any. Beside the signature, never in its place
    trusted_proxies  CIDRs of our own proxies, whose `X-Forwarded-For` is believed
    require          what must be proven (`body`, `time`, `id`, `type`); refused at definition where the scheme cannot
    body_bytes       the largest body, in place of the provider's

    What an inbox does with its events:

    tenant           a name, or the place where the tenant is: ids of events are unique within it. A place that is not covered
                     by the signature is refused, as a captured request would pass again under another tenant
    correlation_id   the place of the id by which people follow a document through systems; None: the provider's, if any
    schema_version   the place of the version of the event's schema, or None
    schema_versions  those that are understood here; empty: any
    unknown_schema   what to do with others: `refuse` (terminal answer), or `park` (stored, answered 2xx, processed once
                     `schema_versions` has it)
    on_conflict      what to answer to another body under a known id, which is kept in either case: `refuse` (409, terminal)
                     or `accept` (as if it were new: most senders would repeat it for days, or stop sending). None: `refuse`
                     for surehook's own messages, `accept` for all others
    ignore           types that are not wanted (`invoice.paid`, `invoice.*`): recorded as ignored where no handler fits. Anything
                     else for which there is no handler waits, parked, until there is one
    receipts         where to tell a sender that asks what became of its events; None: nowhere, whoever asks
    """

    def __init__(
        self,
        provider: Provider,
        secret: Keys,
        *,
        name: str | None = None,
        tolerance_s: float | None = None,
        dedupe_by: tuple[Place, ...] | None = None,
        known: Mapping[str, str] | None = None,
        networks: Sequence[str] = (),
        trusted_proxies: Sequence[str] = (),
        require: Iterable[str] = (),
        body_bytes: int | None = None,
        tenant: str | Place = "",
        correlation_id: Place | None = None,
        schema_version: Place | None = None,
        schema_versions: Iterable[str] = (),
        unknown_schema: Literal["refuse", "park"] = "refuse",
        on_conflict: Literal["refuse", "accept"] | None = None,
        ignore: Iterable[str] = (),
        receipts: ReceiptsTo | None = None,
    ) -> None:
        self.name = provider.name if name is None else name
        if re.fullmatch(r"[a-z0-9_-]{1,64}", self.name) is None:
            raise SourceError("name", "1 to 64 of a-z, 0-9, _ and -")
        if body_bytes is not None:
            provider = structs.replace(provider, bounds=_bounds(provider.bounds, body_bytes))
        if dedupe_by is not None:
            provider = structs.replace(provider, id=dedupe_by)
        self.provider = provider
        self.known: Mapping[str, str] = known or {}
        self._networks = callers.networks(networks, "networks")
        self._proxies = callers.networks(trusted_proxies, "trusted_proxies")
        _check_required(provider, frozenset(_listed(require, "require")))
        self.tenant = _tenant(provider, tenant)
        self.correlation_id = _readable(correlation_id, "correlation_id") or provider.correlation
        self.schema_version = _readable(schema_version, "schema_version")
        self.schema_versions = frozenset(_listed(schema_versions, "schema_versions"))
        if self.schema_versions and schema_version is None:
            raise SourceError("schema_version", "the place where an event says its version is needed")
        if unknown_schema not in ("refuse", "park"):
            raise SourceError("unknown_schema", "refuse or park")
        if on_conflict is None:
            on_conflict = "refuse" if provider.name == "surehook" else "accept"
        if on_conflict not in ("refuse", "accept"):
            raise SourceError("on_conflict", "refuse or accept")
        self.unknown_schema = unknown_schema
        self.on_conflict = on_conflict
        self._ignored = _patterns(ignore)
        try:
            self._judge = Judge(provider, secret, tolerance_s=tolerance_s, known=known)
        except VerifyError as error:
            field = "secret" if error.code == "bad_secret" else "tolerance_s"
            raise SourceError(field, error.detail, hint=error.hint) from None
        self.receipts = _receipts(receipts)
        self.receipt_secrets: tuple[bytes, ...] = ()
        if receipts is not None:
            self.receipt_secrets = receipts.materials(provider.scheme, self._judge.keys)

    @property
    def body_bytes(self) -> int:
        """The largest body that is taken: stop reading beyond it."""
        return self.provider.bounds.body_bytes

    @property
    def keys(self) -> Sequence[Key]:
        """The receiver's secrets or public keys."""
        return self._judge.keys

    @property
    def proven(self) -> frozenset[str]:
        """The parts of a message that the scheme always covers."""
        return proof.proven(self.provider)

    def ignores(self, type: str | None) -> bool:
        """Tell whether events of this type are not wanted."""
        return any(matches(one, type) for one in self._ignored)

    def admits(self, peer: str, forwarded_for: Sequence[str] = ()) -> bool:
        """Tell whether the caller may send to this source at all (403 if not): its address, seen through trusted proxies."""
        if not self._networks:
            return True
        address = callers.caller(peer, forwarded_for, self._proxies)
        return address is not None and callers.contains(self._networks, address)

    def verify(self, body: bytes | str, headers: Headers, *, now: float, url: str | None = None) -> Message:
        """Believe or refuse one request. Raises VerifyError and nothing else. A message with `handshake` is no event."""
        return self._judge.verify(body, headers, now=now, url=url)

    def greet(self, *, query: Mapping[str, str], headers: Headers) -> Reply:
        """Answer a GET. Raises VerifyError (`malformed`: this provider sends none; answer 405)."""
        return greeting.greet(self.provider, self._judge.keys, self.known, query=query, headers=headers)

    def success(self, headers: Headers) -> Reply:
        """The answer to a verified message that is safely stored, now or before."""
        return greeting.success(self.provider, self._judge.keys, headers)


def listed(sources: Iterable[Source]) -> Iterable[Source]:
    """Check that an inbox is given a list of sources. Raises SettingsError."""
    if isinstance(sources, Source | str) or not isinstance(sources, Iterable):
        raise SettingsError(
            "sources",
            f"a list of sources, and no {type(sources).__name__}",
            hint="Inbox(url, [sources.named(…)])",
        )
    return sources


def _receipts(given: ReceiptsTo | None) -> ReceiptsTo | None:
    if given is None or isinstance(given, ReceiptsTo):
        return given
    raise SourceError(
        "receipts",
        f"a {type(given).__name__} is no ReceiptsTo",
        hint="receipts=ReceiptsTo('https://…/v1/receipts'); None: nowhere",
    )


def _bounds(bounds: Bounds, body_bytes: int) -> Bounds:
    if isinstance(body_bytes, bool) or not isinstance(body_bytes, int) or not 0 < body_bytes <= 2**27:
        raise SourceError("body_bytes", "1 byte to 128 MiB: a body is held in memory several times over")
    return structs.replace(bounds, body_bytes=body_bytes)


def _check_required(provider: Provider, required: frozenset[str]) -> None:
    if unknown := required - PROVABLE:
        raise SourceError("require", f"{', '.join(sorted(unknown))}: only {', '.join(sorted(PROVABLE))}")
    if missing := required - proof.proven(provider):
        raise SourceError(
            "require", f"{provider.name} does not prove {', '.join(sorted(missing))}", hint=provider.caveat
        )


def _listed(given: Iterable[str], field: str) -> Iterable[str]:
    if isinstance(given, str):  # which is a list too, of letters
        raise SourceError(field, "a list, and not one text", hint=f"{field}=[{given!r}]")
    return given


def _patterns(types: Iterable[str]) -> tuple[str, ...]:
    try:
        return tuple(check_pattern(one) for one in _listed(types, "ignore"))
    except SettingsError as error:
        raise SourceError("ignore", error.detail, hint=error.hint) from None


def _tenant(provider: Provider, tenant: str | Place) -> str | Field | Header:
    if isinstance(tenant, str):
        if len(tenant) > TENANT_CHARS or (tenant and not tenant.isprintable()) or tenant != tenant.strip():
            raise SourceError(
                "tenant", f"at most {TENANT_CHARS} visible characters, and no spaces around them"
            )
        return tenant
    place = _readable(tenant, "tenant")
    assert place is not None
    # Where nothing is signed at all, whoever knows the token writes what they like anyway.
    signed = proof.covers(provider, place, body=proof.covers_body(provider))
    if not signed and not isinstance(provider.scheme, Token):
        raise SourceError("tenant", f"{provider.name} does not sign what stands there")
    return place


def _readable(place: Place | None, field: str) -> Field | Header | None:
    if place is None or isinstance(place, Field | Header):
        return place
    raise SourceError(field, "a Field of the body or a Header")
