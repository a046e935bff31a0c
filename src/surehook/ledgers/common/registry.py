"""The registry's methods, for every SQL ledger. Only lists wait for SQLAlchemy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from surehook.core.model import Endpoint, EventType, Secret, Tenant
from surehook.ledgers.common import changing, configuration
from surehook.ledgers.common.sessions import Sessions
from surehook.ports.registry import ApiKey, Changes, ConfigurationPage, Page


class RegistryMethods(Sessions):
    """Implements `ports.registry.Registry`."""

    async def version(self) -> int:
        return await self._load(configuration.version)

    async def changes(self, since: int, *, limit: int) -> Changes | None:
        return await self._refresh(configuration.changes, since, limit=limit)

    async def configuration(self, after: bytes | None, *, limit: int) -> ConfigurationPage:
        return await self._load_page(configuration.page, after, limit=limit)

    async def secrets(self, endpoint: bytes) -> Sequence[Secret]:
        return await self._load(configuration.secrets, endpoint)

    # -- tenants ----------------------------------------------------------------------------------------

    async def add_tenant(self, tenant: Tenant) -> None:
        await self._change(changing.add_tenant, tenant)

    async def change_tenant(self, tenant: str, changes: Mapping[str, object]) -> Tenant | None:
        return await self._change(changing.change_tenant, tenant, changes)

    async def remove_tenant(self, tenant: str) -> bool:
        return await self._change(changing.remove_tenant, tenant)

    async def tenant(self, tenant: str) -> Tenant | None:
        return await self._show(configuration.tenant, tenant)

    async def tenants(self, *, limit: int, after: bytes | None) -> Page:
        await self._import_lists()
        from surehook.ledgers.common import configured

        return await self._list(configured.tenants, limit=limit, after=after)

    # -- event types ------------------------------------------------------------------------------------

    async def add_event_type(self, event_type: EventType) -> None:
        await self._change(changing.add_event_type, event_type)

    async def change_event_type(self, name: str, changes: Mapping[str, object]) -> EventType | None:
        return await self._change(changing.change_event_type, name, changes)

    async def event_type(self, name: str) -> EventType | None:
        return await self._show(configuration.event_type, name)

    async def event_types(self, *, limit: int, after: bytes | None) -> Page:
        await self._import_lists()
        from surehook.ledgers.common import configured

        return await self._list(configured.event_types, limit=limit, after=after)

    # -- endpoints and their secrets --------------------------------------------------------------------

    async def add_endpoint(self, endpoint: Endpoint, secret: Secret) -> None:
        await self._change(changing.add_endpoint, endpoint, secret)

    async def change_endpoint(
        self, endpoint: bytes, changes: Mapping[str, object], *, now: int
    ) -> Endpoint | None:
        return await self._change(changing.change_endpoint, endpoint, changes, now=now)

    async def remove_endpoint(self, endpoint: bytes) -> Endpoint | None:
        return await self._change(changing.remove_endpoint, endpoint)

    async def endpoint(self, endpoint: bytes) -> Endpoint | None:
        return await self._show(configuration.endpoint, endpoint)

    async def endpoints(
        self, *, tenant: str | None, status: str | None, limit: int, after: bytes | None
    ) -> Page:
        await self._import_lists()
        from surehook.ledgers.common import configured

        return await self._list(configured.endpoints, tenant=tenant, status=status, limit=limit, after=after)

    async def rotate_secret(self, secret: Secret, *, old_expires_at: int) -> None:
        await self._change(changing.rotate_secret, secret, old_expires_at=old_expires_at)

    # -- API keys ---------------------------------------------------------------------------------------

    async def keys(self) -> Sequence[ApiKey]:
        return await self._load(configuration.keys)

    async def add_key(self, key: ApiKey) -> None:
        await self._change(changing.add_key, key)
