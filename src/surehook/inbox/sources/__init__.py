"""Sources: a provider's record with this receiver's secrets and choices, under a name of its own.

    from surehook.inbox import sources

    sources.named("yousign", secret=[NEW, OLD])
    sources.named("stripe", name="stripe-eu", secret=EU)
    sources.named("adobe_sign", secret=CLIENT_ID, networks=["192.0.2.0/24"], trusted_proxies=["10.0.0.0/8"])
    sources.hmac("partner", secret=SECRET, header="X-Partner-Signature", id=(Field("event_id"),))
    sources.of(Provider(name="mine", scheme=…, id=…), secret=SECRET)

The providers are data in `core/sources`; what the scheme of each proves is computed there and listed in docs/receiving.md.
"""

from __future__ import annotations

from typing import Any

from surehook.core.sources.catalog import PROVIDERS, bearer_provider, hmac_provider
from surehook.core.sources.message import Message
from surehook.core.sources.proof import proven
from surehook.core.sources.provider import (
    BODY,
    Bounds,
    Clock,
    Digest,
    Element,
    Field,
    First,
    Header,
    Known,
    Place,
    Provider,
    Reply,
    Signed,
    SourceError,
    Standard,
    Token,
    Whole,
)
from surehook.core.verification import Key, Keys, VerifyError
from surehook.inbox.sources.source import Source

__all__ = [
    "BODY",
    "PROVIDERS",
    "Bounds",
    "Clock",
    "Digest",
    "Element",
    "Field",
    "First",
    "Header",
    "Key",
    "Known",
    "Message",
    "Place",
    "Provider",
    "Reply",
    "Signed",
    "Source",
    "SourceError",
    "Standard",
    "Token",
    "VerifyError",
    "Whole",
    "bearer",
    "hmac",
    "named",
    "of",
    "proven",
]


def named(provider: str, *, secret: Keys, name: str | None = None, **choices: Any) -> Source:
    """A source of a provider that is known by name; `choices` as of `Source`. Raises SourceError."""
    found = PROVIDERS.get(provider)
    if found is None:
        raise SourceError("provider", f"there is no provider {provider!r}", hint=", ".join(sorted(PROVIDERS)))
    return Source(found, secret, name=name or provider, **choices)


def of(provider: Provider, *, secret: Keys, name: str | None = None, **choices: Any) -> Source:
    """A source of a provider of your own; `choices` as of `Source`. Raises SourceError."""
    return Source(provider, secret, name=name, **choices)


_CHOICES = (
    "tolerance_s", "dedupe_by", "known", "networks", "trusted_proxies", "require", "body_bytes", "tenant",
    "correlation_id", "schema_version", "schema_versions", "unknown_schema", "on_conflict", "ignore",
    "receipts",
)  # fmt: skip


def hmac(name: str, *, secret: Keys, **options: Any) -> Source:
    """A source whose sender puts an HMAC of the body into one header; options of `hmac_provider` and choices of `Source`."""
    choices = {key: options.pop(key) for key in _CHOICES if key in options}
    return Source(hmac_provider(name, **options), secret, **choices)


def bearer(name: str, *, secret: Keys, **options: Any) -> Source:
    """A source whose sender shows a token; options of `bearer_provider` and choices of `Source`."""
    choices = {key: options.pop(key) for key in _CHOICES if key in options}
    return Source(bearer_provider(name, **options), secret, **choices)
