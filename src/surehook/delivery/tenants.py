"""Tenants: make, change, remove."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surehook.core import ids
from surehook.core.errors import Problem
from surehook.core.model import Tenant
from surehook.delivery.managing import Manager, new_id


async def create(manager: Manager, *, tenant: str | None, name: str, strict: bool) -> Tenant:
    """A new tenant under the caller's id, or under one of ours (`ten_…`). Raises Problem `tenant_exists`."""
    now = manager.clock.now()
    made = Tenant(
        id=tenant or ids.text(ids.TENANT, new_id(manager, now)), name=name, strict=strict, created_at=now
    )
    await manager.ledger.add_tenant(made)
    await manager.changed()
    return made


async def find(manager: Manager, tenant: str) -> Tenant:
    return _there(await manager.ledger.tenant(tenant), tenant)


async def change(manager: Manager, tenant: str, changes: Mapping[str, Any]) -> Tenant:
    """Set the given fields (`name`, `strict`)."""
    if not changes:
        return await find(manager, tenant)
    changed = _there(await manager.ledger.change_tenant(tenant, changes), tenant)
    await manager.changed()
    return changed


async def remove(manager: Manager, tenant: str) -> None:
    """Remove a tenant that has neither endpoints nor unfinished deliveries. Raises Problem `tenant_in_use`."""
    if not await manager.ledger.remove_tenant(tenant):
        raise _missing()
    await manager.changed()


async def must_exist(manager: Manager, tenant: str) -> None:
    """Raises Problem `unknown_tenant` for a tenant that a body names."""
    if await manager.ledger.tenant(tenant) is None:
        raise Problem(
            "unknown_tenant",
            "there is no tenant with this id",
            field="tenant",
            hint="POST /v1/tenants makes one",
        )


def _there(found: Tenant | None, tenant: str) -> Tenant:
    if found is None:
        raise _missing()
    return found


def _missing() -> Problem:
    return Problem("not_found", "there is no tenant with this id", status=404)
