"""Configuration and its management.

Every change that the hot path must know raises the one configuration version and notes under that version what it
changed, in its own transaction. So memory follows by differences (`changes`). The notes go back `NOTES_KEPT`
versions, and a program from before there were notes raises the version without one: whoever cannot be told the
difference reads everything, page by page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from surehook.core.model import Configuration, Endpoint, EventType, Secret, Tenant

# Versions for which notes of changes are kept: fifty changes a second for more than three minutes, which is longer
# than any process that lives goes without looking (it looks every ten seconds). A note takes about 60 bytes.
NOTES_KEPT = 10_000

# Fields that are kept for people alone: no memory holds them, so changing nothing else raises no version.
FOR_PEOPLE: Mapping[str, frozenset[str]] = {
    "tenant": frozenset({"name"}),
    "event_type": frozenset({"description"}),
    "endpoint": frozenset({"description", "updated_at"}),
}


class Page(Struct):
    """One page of a list: values newest first and the position after them (None: the end)."""

    data: list[Any]
    next: bytes | None


class ApiKey(Struct, frozen=True):
    """A key row. The key itself is never stored: `digest` is its SHA-256."""

    id: bytes
    digest: bytes
    name: str
    created_at: int


class Changes(Struct, frozen=True):
    """Everything that a memory must take over to be at `version`. Rows are as they are now, perhaps newer than that."""

    version: int
    rows: Configuration = Configuration()
    gone_tenants: tuple[str, ...] = ()
    gone_event_types: tuple[str, ...] = ()
    gone_endpoints: tuple[bytes, ...] = ()
    more: bool = False  # the ledger has newer changes than these


class ConfigurationPage(Struct, frozen=True):
    """Some of the configuration, and where the next page begins (None: the end)."""

    rows: Configuration
    next: bytes | None


class Registry(Protocol):
    async def version(self) -> int:
        """The configuration version now."""
        ...

    async def changes(self, since: int, *, limit: int) -> Changes | None:
        """The first changes after version `since`, about `limit` rows of them; None where the ledger cannot tell."""
        ...

    async def configuration(self, after: bytes | None, *, limit: int) -> ConfigurationPage:
        """A page of everything: `limit` rows after a place, endpoints in the order of their ids. Pages are snapshots
        each of its own: a reader asks for the version first, and for the changes since then when it is through."""
        ...

    async def secrets(self, endpoint: bytes) -> Sequence[Secret]:
        """The endpoint's secrets, ended ones included, oldest id first."""
        ...

    async def add_tenant(self, tenant: Tenant) -> None:
        """Raises Problem `tenant_exists` (409)."""
        ...

    async def change_tenant(self, tenant: str, changes: Mapping[str, object]) -> Tenant | None: ...

    async def remove_tenant(self, tenant: str) -> bool:
        """False: there is none. Raises Problem `tenant_in_use` (409) while it has endpoints or unfinished deliveries."""
        ...

    async def tenant(self, tenant: str) -> Tenant | None: ...

    async def tenants(self, *, limit: int, after: bytes | None) -> Page: ...

    async def add_event_type(self, event_type: EventType) -> None:
        """Raises Problem `event_type_exists` (409)."""
        ...

    async def change_event_type(self, name: str, changes: Mapping[str, object]) -> EventType | None: ...

    async def event_type(self, name: str) -> EventType | None: ...

    async def event_types(self, *, limit: int, after: bytes | None) -> Page: ...

    async def add_endpoint(self, endpoint: Endpoint, secret: Secret) -> None: ...

    async def change_endpoint(
        self, endpoint: bytes, changes: Mapping[str, object], *, now: int
    ) -> Endpoint | None:
        """Set the given fields and `updated_at`; returns the endpoint as it is now, None where there is none."""
        ...

    async def remove_endpoint(self, endpoint: bytes) -> Endpoint | None:
        """Remove the endpoint and its secrets. Its deliveries are ended by the caller (`Ledger.end_endpoint`)."""
        ...

    async def endpoint(self, endpoint: bytes) -> Endpoint | None: ...

    async def endpoints(
        self, *, tenant: str | None, status: str | None, limit: int, after: bytes | None
    ) -> Page: ...

    async def rotate_secret(self, secret: Secret, *, old_expires_at: int) -> None:
        """Add the secret and give the endpoint's unexpiring ones their end (`old_expires_at`)."""
        ...

    async def keys(self) -> Sequence[ApiKey]: ...

    async def add_key(self, key: ApiKey) -> None: ...
