"""Configuration and its management. `_raise` is the one place the version goes up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec import structs
from sqlalchemy import Select, Table, exists, insert, select, tuple_, update
from sqlalchemy import delete as delete_from

from surehook.core.errors import Problem
from surehook.core.model import Endpoint, EventType, Secret, Tenant
from surehook.ledgers import schema
from surehook.ledgers.sqlite import values
from surehook.ledgers.sqlite.core_sql import rows, run
from surehook.ledgers.sqlite.session import Session, Unstorable
from surehook.ledgers.sqlite.statements import query
from surehook.ports.registry import ApiKey, Page

T = TypeVar("T")

_tenant, _type, _endpoint, _secret = schema.tenant, schema.event_type, schema.endpoint, schema.secret


# -- tenants ------------------------------------------------------------------------------------------


def add_tenant(session: Session, tenant: Tenant) -> None:
    with session.writing():
        if rows(session, select(_tenant.c.id).where(_tenant.c.id == tenant.id)):
            raise Problem("tenant_exists", f"there is a tenant {tenant.id!r} already", field="id", status=409)
        _insert(session, _tenant, structs.asdict(tenant))
        _raise(session)


def change_tenant(session: Session, tenant: str, changes: Mapping[str, Any]) -> Tenant | None:
    return _change(session, _tenant, _tenant.c.id == tenant, changes, values.tenant)


def remove_tenant(session: Session, tenant: str) -> bool:
    with session.writing():
        if not rows(session, select(_tenant.c.id).where(_tenant.c.id == tenant)):
            return False
        users = select(
            exists().where(_endpoint.c.tenant == tenant) | exists().where(schema.delivery.c.tenant == tenant)
        )
        if rows(session, users)[0][0]:
            raise Problem("tenant_in_use", "it still has endpoints or unfinished deliveries", status=409)
        run(session, delete_from(_tenant).where(_tenant.c.id == tenant))
        _raise(session)
    return True


def tenant(session: Session, tenant: str) -> Tenant | None:
    return _one(session, select(_tenant).where(_tenant.c.id == tenant), values.tenant)


def tenants(session: Session, *, limit: int, after: bytes | None) -> Page:
    return _named(session, _tenant, "id", values.tenant, limit=limit, after=after)


# -- event types --------------------------------------------------------------------------------------


def add_event_type(session: Session, event_type: EventType) -> None:
    with session.writing():
        if rows(session, select(_type.c.name).where(_type.c.name == event_type.name)):
            detail = f"there is an event type {event_type.name!r} already"
            raise Problem("event_type_exists", detail, field="name", status=409)
        _insert(session, _type, structs.asdict(event_type))
        _raise(session)


def change_event_type(session: Session, name: str, changes: Mapping[str, Any]) -> EventType | None:
    return _change(session, _type, _type.c.name == name, changes, values.event_type)


def event_type(session: Session, name: str) -> EventType | None:
    return _one(session, select(_type).where(_type.c.name == name), values.event_type)


def event_types(session: Session, *, limit: int, after: bytes | None) -> Page:
    return _named(session, _type, "name", values.event_type, limit=limit, after=after)


# -- endpoints and their secrets ----------------------------------------------------------------------


def add_endpoint(session: Session, endpoint: Endpoint, secret: Secret) -> None:
    with session.writing():
        if not rows(session, select(_tenant.c.id).where(_tenant.c.id == endpoint.tenant)):
            raise Problem("unknown_tenant", f"there is no tenant {endpoint.tenant!r}", field="tenant")
        _insert(session, _endpoint, structs.asdict(endpoint))
        _insert(session, _secret, structs.asdict(secret))
        _raise(session)


def change_endpoint(
    session: Session, endpoint: bytes, changes: Mapping[str, Any], *, now: int
) -> Endpoint | None:
    return _change(
        session, _endpoint, _endpoint.c.id == endpoint, {**changes, "updated_at": now}, values.endpoint
    )


def remove_endpoint(session: Session, endpoint: bytes) -> Endpoint | None:
    with session.writing():
        removed = _one(session, select(_endpoint).where(_endpoint.c.id == endpoint), values.endpoint)
        if removed is not None:
            run(session, delete_from(_endpoint).where(_endpoint.c.id == endpoint))
            run(session, delete_from(_secret).where(_secret.c.endpoint == endpoint))
            _raise(session)
    return removed


def endpoint(session: Session, endpoint: bytes) -> Endpoint | None:
    return _one(session, select(_endpoint).where(_endpoint.c.id == endpoint), values.endpoint)


def endpoints(
    session: Session, *, tenant: str | None, status: str | None, limit: int, after: bytes | None
) -> Page:
    listing = select(_endpoint).order_by(_endpoint.c.id.desc()).limit(limit + 1)
    if tenant is not None:
        listing = listing.where(_endpoint.c.tenant == tenant)
    if status is not None:
        listing = listing.where(_endpoint.c.status == status)
    if after is not None:
        listing = listing.where(_endpoint.c.id < after)
    found = [values.endpoint(row) for row in rows(session, listing)]
    return Page(found[:limit], found[limit - 1].id if len(found) > limit else None)


def rotate_secret(session: Session, secret: Secret, *, old_expires_at: int) -> None:
    with session.writing():
        if not rows(session, select(_endpoint.c.id).where(_endpoint.c.id == secret.endpoint)):
            return
        unexpiring = (_secret.c.endpoint == secret.endpoint) & _secret.c.expires_at.is_(None)
        run(session, update(_secret).where(unexpiring).values(expires_at=old_expires_at))
        _insert(session, _secret, structs.asdict(secret))
        _raise(session)


# -- keys ---------------------------------------------------------------------------------------------


def add_key(session: Session, key: ApiKey) -> None:
    with session.writing():
        _insert(session, schema.api_key, structs.asdict(key))
        _raise(session)


# -- shared -------------------------------------------------------------------------------------------


def _raise(session: Session) -> None:
    session.run(query("raise_version"))


def _insert(session: Session, table: Table, fields: Mapping[str, Any]) -> None:
    try:
        run(session, insert(table).values(values.columns(fields)))
    except Unstorable as error:
        raise Problem("unstorable", f"the database refuses this {table.name}: {error}") from error


def _change(
    session: Session,
    table: Table,
    which: Any,
    changes: Mapping[str, Any],
    made: Callable[[tuple[Any, ...]], T],
) -> T | None:
    with session.writing():
        if changes:
            try:
                run(session, update(table).where(which).values(values.columns(changes)))
            except Unstorable as error:
                raise Problem("unstorable", f"the database refuses this {table.name}: {error}") from error
        changed = _one(session, select(table).where(which), made)
        if changed is not None:
            _raise(session)
    return changed


def _one(session: Session, statement: Select[Any], made: Callable[[tuple[Any, ...]], T]) -> T | None:
    found = rows(session, statement)
    return made(found[0]) if found else None


def _named(
    session: Session,
    table: Table,
    name: str,
    made: Callable[[tuple[Any, ...]], Any],
    *,
    limit: int,
    after: bytes | None,
) -> Page:
    """A page of values that people named: by `created_at`, and by name where that is equal."""
    place = tuple_(table.c.created_at, table.c[name])
    order = (table.c.created_at.desc(), table.c[name].desc())
    listing = select(table).order_by(*order).limit(limit + 1)
    if after is not None:
        listing = listing.where(place < (int.from_bytes(after[:8], "big"), after[8:].decode()))
    found = [made(row) for row in rows(session, listing)]
    if len(found) <= limit:
        return Page(found, None)
    last = found[limit - 1]
    return Page(found[:limit], last.created_at.to_bytes(8, "big") + getattr(last, name).encode())
