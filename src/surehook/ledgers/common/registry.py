"""Configuration and its management. `_note` is the one place the version goes up (but for `record`).

Whoever follows a change sees to it that no other runs beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec import structs
from sqlalchemy import ColumnElement, Select, Table, exists, insert, literal, select, tuple_, update
from sqlalchemy import delete as delete_from

from surehook.core.errors import Problem
from surehook.core.model import Endpoint, EventType, Secret, Tenant
from surehook.ledgers import changes as notes
from surehook.ledgers import schema
from surehook.ledgers.common import values
from surehook.ledgers.common.steps import Refused, Row, Steps
from surehook.ports.registry import FOR_PEOPLE, NOTES_KEPT, ApiKey, Page

T = TypeVar("T")

_tenant, _type, _endpoint, _secret = schema.tenant, schema.event_type, schema.endpoint, schema.secret


# -- tenants ------------------------------------------------------------------------------------------


def add_tenant(tenant: Tenant) -> Steps[None]:
    if (yield select(_tenant.c.id).where(_tenant.c.id == tenant.id)):
        raise Problem("tenant_exists", f"there is a tenant {tenant.id!r} already", field="id", status=409)
    yield from _insert(_tenant, structs.asdict(tenant))
    yield from _note(notes.TENANT, tenant.id.encode())


def change_tenant(tenant: str, changes: Mapping[str, Any]) -> Steps[Tenant | None]:
    return _change(_tenant, _tenant.c.id == tenant, tenant.encode(), changes, values.tenant)


def remove_tenant(tenant: str) -> Steps[bool]:
    if not (yield select(_tenant.c.id).where(_tenant.c.id == tenant)):
        return False
    users = yield select(
        exists().where(_endpoint.c.tenant == tenant) | exists().where(schema.delivery.c.tenant == tenant)
    )
    if users[0][0]:
        raise Problem("tenant_in_use", "it still has endpoints or unfinished deliveries", status=409)
    yield delete_from(_tenant).where(_tenant.c.id == tenant)
    yield from _note(notes.TENANT, tenant.encode())
    return True


def tenant(tenant: str) -> Steps[Tenant | None]:
    return _one(select(_tenant).where(_tenant.c.id == tenant), values.tenant)


def tenants(*, limit: int, after: bytes | None) -> Steps[Page]:
    return _named(_tenant, "id", values.tenant, limit=limit, after=after)


# -- event types --------------------------------------------------------------------------------------


def add_event_type(event_type: EventType) -> Steps[None]:
    if (yield select(_type.c.name).where(_type.c.name == event_type.name)):
        detail = f"there is an event type {event_type.name!r} already"
        raise Problem("event_type_exists", detail, field="name", status=409)
    yield from _insert(_type, structs.asdict(event_type))
    yield from _note(notes.EVENT_TYPE, event_type.name.encode())


def change_event_type(name: str, changes: Mapping[str, Any]) -> Steps[EventType | None]:
    return _change(_type, _type.c.name == name, name.encode(), changes, values.event_type)


def event_type(name: str) -> Steps[EventType | None]:
    return _one(select(_type).where(_type.c.name == name), values.event_type)


def event_types(*, limit: int, after: bytes | None) -> Steps[Page]:
    return _named(_type, "name", values.event_type, limit=limit, after=after)


# -- endpoints and their secrets ----------------------------------------------------------------------


def add_endpoint(endpoint: Endpoint, secret: Secret) -> Steps[None]:
    if not (yield select(_tenant.c.id).where(_tenant.c.id == endpoint.tenant)):
        raise Problem("unknown_tenant", f"there is no tenant {endpoint.tenant!r}", field="tenant")
    yield from _insert(_endpoint, structs.asdict(endpoint))
    yield from _insert(_secret, structs.asdict(secret))
    yield from _note(notes.ENDPOINT, endpoint.id)


def change_endpoint(endpoint: bytes, changes: Mapping[str, Any], *, now: int) -> Steps[Endpoint | None]:
    with_time = {**changes, "updated_at": now}
    return _change(_endpoint, _endpoint.c.id == endpoint, endpoint, with_time, values.endpoint)


def remove_endpoint(endpoint: bytes) -> Steps[Endpoint | None]:
    removed = yield from _one(select(_endpoint).where(_endpoint.c.id == endpoint), values.endpoint)
    if removed is not None:
        yield delete_from(_endpoint).where(_endpoint.c.id == endpoint)
        yield delete_from(_secret).where(_secret.c.endpoint == endpoint)
        yield from _note(notes.ENDPOINT, endpoint)
    return removed


def endpoint(endpoint: bytes) -> Steps[Endpoint | None]:
    return _one(select(_endpoint).where(_endpoint.c.id == endpoint), values.endpoint)


def endpoints(*, tenant: str | None, status: str | None, limit: int, after: bytes | None) -> Steps[Page]:
    listing = select(_endpoint).order_by(_endpoint.c.id.desc()).limit(limit + 1)
    if tenant is not None:
        listing = listing.where(_endpoint.c.tenant == tenant)
    if status is not None:
        listing = listing.where(_endpoint.c.status == status)
    if after is not None:
        listing = listing.where(_endpoint.c.id < after)
    found = [values.endpoint(row) for row in (yield listing)]
    return Page(found[:limit], found[limit - 1].id if len(found) > limit else None)


def rotate_secret(secret: Secret, *, old_expires_at: int) -> Steps[None]:
    if not (yield select(_endpoint.c.id).where(_endpoint.c.id == secret.endpoint)):
        return
    ends: ColumnElement[bool] = _secret.c.expires_at.is_(None)
    if old_expires_at <= secret.created_at:  # at once: so do those whose overlap has not ended
        ends |= _secret.c.expires_at > old_expires_at
    others = (_secret.c.endpoint == secret.endpoint) & ends
    yield update(_secret).where(others).values(expires_at=old_expires_at)
    yield from _insert(_secret, structs.asdict(secret))
    yield from _note(notes.ENDPOINT, secret.endpoint)


# -- keys ---------------------------------------------------------------------------------------------


def add_key(key: ApiKey) -> Steps[None]:
    yield from _insert(schema.api_key, structs.asdict(key))
    yield from _note(notes.API_KEY, key.id)


# -- shared -------------------------------------------------------------------------------------------


_version, _change_note = schema.configuration.c.version, schema.configuration_change
_raise_version = update(schema.configuration).values(version=_version + 1)
_drop_old = delete_from(_change_note).where(
    _change_note.c.version <= select(_version - NOTES_KEPT).scalar_subquery()
)


def _note(kind: str, key: bytes) -> Steps[None]:
    """Raise the version, note what for, and drop the note that is too old."""
    yield _raise_version
    row = select(_version, literal(kind, _change_note.c.kind.type), literal(key, _change_note.c.key.type))
    yield insert(_change_note).from_select(["version", "kind", "key"], row)
    yield _drop_old


def _insert(table: Table, fields: Mapping[str, Any]) -> Steps[None]:
    try:
        yield insert(table).values(values.columns(fields))
    except Refused as error:
        raise Problem("unstorable", f"the database refuses this {table.name}: {error}") from error


def _change(
    table: Table, which: ColumnElement[bool], key: bytes, changes: Mapping[str, Any], made: Callable[[Row], T]
) -> Steps[T | None]:
    if changes:
        try:
            yield update(table).where(which).values(values.columns(changes))
        except Refused as error:
            raise Problem("unstorable", f"the database refuses this {table.name}: {error}") from error
    changed = yield from _one(select(table).where(which), made)
    if changed is not None and not changes.keys() <= FOR_PEOPLE[table.name]:
        yield from _note(table.name, key)
    return changed


def _one(statement: Select[Any], made: Callable[[Row], T]) -> Steps[T | None]:
    found = yield statement
    return made(found[0]) if found else None


def _named(
    table: Table, name: str, made: Callable[[Row], Any], *, limit: int, after: bytes | None
) -> Steps[Page]:
    """A page of values that people named: by `created_at`, and by name where that is equal."""
    place = tuple_(table.c.created_at, table.c[name])
    order = (table.c.created_at.desc(), table.c[name].desc())
    listing = select(table).order_by(*order).limit(limit + 1)
    if after is not None:
        listing = listing.where(place < (int.from_bytes(after[:8], "big"), after[8:].decode()))
    found = [made(row) for row in (yield listing)]
    if len(found) <= limit:
        return Page(found, None)
    last = found[limit - 1]
    return Page(found[:limit], last.created_at.to_bytes(8, "big") + getattr(last, name).encode())
