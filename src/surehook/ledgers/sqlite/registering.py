"""The registry's methods. Lists alone wait for SQLAlchemy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar

from surehook.core.model import Endpoint, EventType, Secret, Tenant
from surehook.ledgers.common import changing
from surehook.ledgers.common.changing import Changing
from surehook.ledgers.sqlite import configuration, configuring
from surehook.ledgers.sqlite.desk import Desk
from surehook.ports.registry import ApiKey, Changes, ConfigurationPage, Page

P = ParamSpec("P")
R = TypeVar("R")


class Registering(Desk):
    async def version(self) -> int:
        return await self._read(configuration.version)

    async def changes(self, since: int, *, limit: int) -> Changes | None:
        # On the writing connection: accepts wait for this, and a list may take long.
        return await self._write(configuration.changes, since, limit=limit)

    async def configuration(self, after: bytes | None, *, limit: int) -> ConfigurationPage:
        return await self._read(configuration.page, after, limit=limit)

    async def secrets(self, endpoint: bytes) -> Sequence[Secret]:
        return await self._read(configuration.secrets, endpoint)

    async def add_tenant(self, tenant: Tenant) -> None:
        await self._change(changing.add_tenant, tenant)

    async def change_tenant(self, tenant: str, changes: Mapping[str, Any]) -> Tenant | None:
        return await self._change(changing.change_tenant, tenant, changes)

    async def remove_tenant(self, tenant: str) -> bool:
        return await self._change(changing.remove_tenant, tenant)

    async def tenant(self, tenant: str) -> Tenant | None:
        return await self._read(configuration.tenant, tenant)

    async def tenants(self, *, limit: int, after: bytes | None) -> Page:
        page: Page = await self._show("tenants", limit=limit, after=after)
        return page

    async def add_event_type(self, event_type: EventType) -> None:
        await self._change(changing.add_event_type, event_type)

    async def change_event_type(self, name: str, changes: Mapping[str, Any]) -> EventType | None:
        return await self._change(changing.change_event_type, name, changes)

    async def event_type(self, name: str) -> EventType | None:
        return await self._read(configuration.event_type, name)

    async def event_types(self, *, limit: int, after: bytes | None) -> Page:
        page: Page = await self._show("event_types", limit=limit, after=after)
        return page

    async def add_endpoint(self, endpoint: Endpoint, secret: Secret) -> None:
        await self._change(changing.add_endpoint, endpoint, secret)

    async def change_endpoint(
        self, endpoint: bytes, changes: Mapping[str, Any], *, now: int
    ) -> Endpoint | None:
        return await self._change(changing.change_endpoint, endpoint, changes, now=now)

    async def remove_endpoint(self, endpoint: bytes) -> Endpoint | None:
        return await self._change(changing.remove_endpoint, endpoint)

    async def endpoint(self, endpoint: bytes) -> Endpoint | None:
        return await self._read(configuration.endpoint, endpoint)

    async def endpoints(
        self, *, tenant: str | None, status: str | None, limit: int, after: bytes | None
    ) -> Page:
        page: Page = await self._show("endpoints", tenant=tenant, status=status, limit=limit, after=after)
        return page

    async def rotate_secret(self, secret: Secret, *, old_expires_at: int) -> None:
        await self._change(changing.rotate_secret, secret, old_expires_at=old_expires_at)

    async def keys(self) -> Sequence[ApiKey]:
        return await self._read(configuration.keys)

    async def add_key(self, key: ApiKey) -> None:
        await self._change(changing.add_key, key)

    async def _change(self, work: Callable[P, Changing[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        # Joined with neighbours: a commit of each change's own would take turns with those of accepts.
        return await self._join(configuring.change, partial(work, *args, **kwargs))

    async def _show(self, name: str, *args: Any, **kwargs: Any) -> Any:
        core_sql = await self._core_sql()
        return await self._read(core_sql.look, getattr(core_sql.configured, name), *args, **kwargs)
