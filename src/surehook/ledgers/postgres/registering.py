"""The registry's methods: reads the hot path needs are hand-written, the rest waits for SQLAlchemy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surehook.core.errors import CommitUnknown, LedgerUnavailable
from surehook.core.model import Endpoint, EventType, Secret, Tenant
from surehook.ledgers.postgres import configuration
from surehook.ledgers.postgres.desk import Desk
from surehook.ports.registry import ApiKey, Changes, ConfigurationPage, Page


class Registering(Desk):
    async def version(self) -> int:
        return await self._write(configuration.version)

    async def changes(self, since: int, *, limit: int) -> Changes | None:
        return await self._write(configuration.changes, since, limit=limit)

    async def configuration(self, after: bytes | None, *, limit: int) -> ConfigurationPage:
        return await self._write(configuration.page, after, limit=limit)

    async def secrets(self, endpoint: bytes) -> Sequence[Secret]:
        return await self._write(configuration.secrets, endpoint)

    async def add_tenant(self, tenant: Tenant) -> None:
        await self._change("add_tenant", tenant)

    async def change_tenant(self, tenant: str, changes: Mapping[str, Any]) -> Tenant | None:
        changed: Tenant | None = await self._change("change_tenant", tenant, changes)
        return changed

    async def remove_tenant(self, tenant: str) -> bool:
        removed: bool = await self._change("remove_tenant", tenant)
        return removed

    async def tenant(self, tenant: str) -> Tenant | None:
        found: Tenant | None = await self._show("tenant", tenant)
        return found

    async def tenants(self, *, limit: int, after: bytes | None) -> Page:
        page: Page = await self._show("tenants", limit=limit, after=after)
        return page

    async def add_event_type(self, event_type: EventType) -> None:
        await self._change("add_event_type", event_type)

    async def change_event_type(self, name: str, changes: Mapping[str, Any]) -> EventType | None:
        changed: EventType | None = await self._change("change_event_type", name, changes)
        return changed

    async def event_type(self, name: str) -> EventType | None:
        found: EventType | None = await self._show("event_type", name)
        return found

    async def event_types(self, *, limit: int, after: bytes | None) -> Page:
        page: Page = await self._show("event_types", limit=limit, after=after)
        return page

    async def add_endpoint(self, endpoint: Endpoint, secret: Secret) -> None:
        await self._change("add_endpoint", endpoint, secret)

    async def change_endpoint(
        self, endpoint: bytes, changes: Mapping[str, Any], *, now: int
    ) -> Endpoint | None:
        changed: Endpoint | None = await self._change("change_endpoint", endpoint, changes, now=now)
        return changed

    async def remove_endpoint(self, endpoint: bytes) -> Endpoint | None:
        removed: Endpoint | None = await self._change("remove_endpoint", endpoint)
        return removed

    async def endpoint(self, endpoint: bytes) -> Endpoint | None:
        found: Endpoint | None = await self._show("endpoint", endpoint)
        return found

    async def endpoints(
        self, *, tenant: str | None, status: str | None, limit: int, after: bytes | None
    ) -> Page:
        page: Page = await self._show("endpoints", tenant=tenant, status=status, limit=limit, after=after)
        return page

    async def rotate_secret(self, secret: Secret, *, old_expires_at: int) -> None:
        await self._change("rotate_secret", secret, old_expires_at=old_expires_at)

    async def keys(self) -> Sequence[ApiKey]:
        return await self._write(configuration.keys)

    async def add_key(self, key: ApiKey) -> None:
        await self._change("add_key", key)

    async def _change(self, name: str, *args: Any, **kwargs: Any) -> Any:
        core_sql = await self._core_sql()
        try:
            return await self._write(core_sql.change, getattr(core_sql.registry, name), *args, **kwargs)
        except CommitUnknown as error:  # run again, it could take its own work for somebody else's
            detail = "the connection was lost while the change was committed: look whether it holds, then try again"
            raise LedgerUnavailable(detail) from error

    async def _show(self, name: str, *args: Any, **kwargs: Any) -> Any:
        core_sql = await self._core_sql()
        return await self._read(core_sql.look, getattr(core_sql.registry, name), *args, **kwargs)
