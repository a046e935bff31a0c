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

from collections.abc import Mapping
from typing import Any, Unpack

from surehook.core.meant import meant
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
from surehook.inbox.sources.options import BearerOptions, Choices, HmacOptions, ProviderName
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


def named(
    provider: ProviderName, *, secret: Keys, name: str | None = None, **choices: Unpack[Choices]
) -> Source:
    """A source of a provider that is known by name; `choices` as of `Source`. Raises SourceError.

    Where the name is not in the code but in a setting: `of(PROVIDERS[name], …)`."""
    found = PROVIDERS.get(provider)
    if found is None:
        raise SourceError(
            "provider",
            f"there is no provider {provider!r}",
            hint=meant(str(provider), PROVIDERS, "providers"),
        )
    _check(choices, Choices)
    return Source(found, secret, name=name or provider, **choices)


def of(provider: Provider, *, secret: Keys, name: str | None = None, **choices: Unpack[Choices]) -> Source:
    """A source of a provider of your own; `choices` as of `Source`. Raises SourceError."""
    _check(choices, Choices)
    return Source(provider, secret, name=name, **choices)


def hmac(name: str, *, secret: Keys, **options: Unpack[HmacOptions]) -> Source:
    """A source whose sender puts an HMAC of the body into one header; options of `hmac_provider` and choices of `Source`."""
    _check(options, HmacOptions)
    record, choices = _parted(options)
    return Source(hmac_provider(name, **record), secret, **choices)


def bearer(name: str, *, secret: Keys, **options: Unpack[BearerOptions]) -> Source:
    """A source whose sender shows a token; options of `bearer_provider` and choices of `Source`."""
    _check(options, BearerOptions)
    record, choices = _parted(options)
    return Source(bearer_provider(name, **record), secret, **choices)


def _check(given: Mapping[str, object], kind: type) -> None:
    known = kind.__annotations__
    for name in given:
        if name not in known:
            raise SourceError(name, "a source has no such option", hint=meant(name, known, "options"))


def _parted(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the provider's record, and choices of the source."""
    choices = {name: value for name, value in options.items() if name in Choices.__annotations__}
    return {name: value for name, value in options.items() if name not in choices}, choices
