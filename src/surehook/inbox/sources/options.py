"""The options of sources as types, so that a type checker knows a misspelt one before anything runs.

`Source` and the providers' records are what is true; the tests compare these with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypedDict

from surehook.core.sources.provider import Place
from surehook.inbox.sources.receipts_to import ReceiptsTo

ProviderName = Literal[
    "adobe_sign", "bearer", "docusign", "dropbox_sign", "github", "gitlab", "gitlab_token", "hmac", "insigner", "linear",
    "meta", "paddle", "paypal", "sendgrid", "shopify", "slack", "standard", "stripe", "surehook", "svix", "twilio",
    "twilio_shared_key", "yousign", "zoom",
]  # fmt: skip


class Choices(TypedDict, total=False):
    """The choices of every source, as `Source` describes them."""

    tolerance_s: float | None
    dedupe_by: tuple[Place, ...] | None
    known: Mapping[str, str] | None
    networks: Sequence[str]
    trusted_proxies: Sequence[str]
    require: Iterable[str]
    body_bytes: int | None
    tenant: str | Place
    correlation_id: Place | None
    schema_version: Place | None
    schema_versions: Iterable[str]
    unknown_schema: Literal["refuse", "park"]
    on_conflict: Literal["refuse", "accept"] | None
    ignore: Iterable[str]
    receipts: ReceiptsTo | None


class BearerOptions(Choices, total=False):
    """Choices, and options of `bearer_provider`."""

    header: str
    prefix: str
    id: tuple[Place, ...]
    type: tuple[Place, ...]


class HmacOptions(BearerOptions, total=False):
    """Choices, and options of `hmac_provider`."""

    algorithm: Literal["hmac-sha256", "hmac-sha512", "hmac-sha1"]
    encoding: Literal["hex", "base64"]
