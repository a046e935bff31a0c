"""Configuration and its management. Every change raises the one configuration version in its own transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from surehook.core.model import Configuration, Endpoint, EventType, Secret, Tenant


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


class Registry(Protocol):
    async def version(self) -> int:
        """The configuration version now."""
        ...

    async def configuration(self) -> Configuration:
        """Everything the hot path keeps in memory, read in one snapshot with its version."""
        ...

    async def add_tenant(self, tenant: Tenant) -> None:
        """Raises Problem `tenant_exists` (409)."""
        ...

    async def change_tenant(self, tenant: str, changes: Mapping[str, Any]) -> Tenant | None: ...

    async def remove_tenant(self, tenant: str) -> bool:
        """False: there is none. Raises Problem `tenant_in_use` (409) while it has endpoints or unfinished deliveries."""
        ...

    async def tenant(self, tenant: str) -> Tenant | None: ...

    async def tenants(self, *, limit: int, after: bytes | None) -> Page: ...

    async def add_event_type(self, event_type: EventType) -> None:
        """Raises Problem `event_type_exists` (409)."""
        ...

    async def change_event_type(self, name: str, changes: Mapping[str, Any]) -> EventType | None: ...

    async def event_type(self, name: str) -> EventType | None: ...

    async def event_types(self, *, limit: int, after: bytes | None) -> Page: ...

    async def add_endpoint(self, endpoint: Endpoint, secret: Secret) -> None: ...

    async def change_endpoint(
        self, endpoint: bytes, changes: Mapping[str, Any], *, now: int
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
