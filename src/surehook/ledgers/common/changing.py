"""Changes of the configuration, as generators of statements (`statements.py`) for every SQL ledger.

The ledger begins the transaction, makes sure that no other change runs beside it, and raises the version at each note. If
the database refuses the data of a statement, the ledger throws `DataRefused` into the work.

Statements are plain text. Composing them with SQLAlchemy was a good part of the cost of a change, and each statement is a
round trip (docs/design.md, "Configuration follows by differences").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TypeVar

from msgspec import Struct, structs

from surehook.core.errors import Problem
from surehook.core.model import Endpoint, EventType, Secret, Tenant
from surehook.ledgers import changes as notes
from surehook.ledgers.common import values
from surehook.ledgers.common.statements import Changing, DataRefused, Note, Noted, Row, Statement
from surehook.ports.registry import FOR_PEOPLE, ApiKey

T = TypeVar("T")


# -- tenants ------------------------------------------------------------------------------------------


def add_tenant(tenant: Tenant) -> Changing[None]:
    if (yield Statement("select 1 from tenant where id = ?", (tenant.id,))):
        raise Problem("tenant_exists", f"there is a tenant {tenant.id!r} already", field="id", status=409)
    yield from _insert("tenant", tenant)
    yield Note(notes.TENANT, tenant.id.encode())


def change_tenant(tenant: str, changes: Mapping[str, object]) -> Changing[Tenant | None]:
    return _change("tenant", Tenant, tenant, tenant.encode(), changes, values.tenant)


def remove_tenant(tenant: str) -> Changing[bool]:
    if not (yield Statement("select 1 from tenant where id = ?", (tenant,))):
        return False
    users = yield Statement(
        "select exists (select 1 from endpoint where tenant = ?) or exists (select 1 from delivery where tenant = ?)",
        (tenant, tenant),
    )
    if users[0][0]:
        raise Problem("tenant_in_use", "it still has endpoints or unfinished deliveries", status=409)
    yield Statement("delete from tenant where id = ?", (tenant,))
    yield Note(notes.TENANT, tenant.encode())
    return True


# -- event types --------------------------------------------------------------------------------------


def add_event_type(event_type: EventType) -> Changing[None]:
    if (yield Statement("select 1 from event_type where name = ?", (event_type.name,))):
        detail = f"there is an event type {event_type.name!r} already"
        raise Problem("event_type_exists", detail, field="name", status=409)
    yield from _insert("event_type", event_type)
    yield Note(notes.EVENT_TYPE, event_type.name.encode())


def change_event_type(name: str, changes: Mapping[str, object]) -> Changing[EventType | None]:
    return _change("event_type", EventType, name, name.encode(), changes, values.event_type)


# -- endpoints and their secrets ----------------------------------------------------------------------


def add_endpoint(endpoint: Endpoint, secret: Secret) -> Changing[None]:
    if not (yield Statement("select 1 from tenant where id = ?", (endpoint.tenant,))):
        raise Problem("unknown_tenant", f"there is no tenant {endpoint.tenant!r}", field="tenant")
    yield from _insert("endpoint", endpoint)
    yield from _insert("secret", secret)
    yield Note(notes.ENDPOINT, endpoint.id)


def change_endpoint(endpoint: bytes, changes: Mapping[str, object], *, now: int) -> Changing[Endpoint | None]:
    with_time = {**changes, "updated_at": now}
    return _change("endpoint", Endpoint, endpoint, endpoint, with_time, values.endpoint)


def remove_endpoint(endpoint: bytes) -> Changing[Endpoint | None]:
    sql = f"delete from endpoint where id = ? returning {_columns(Endpoint)}"
    removed = yield Statement(sql, (endpoint,))
    if not removed:
        return None
    yield Statement("delete from secret where endpoint = ?", (endpoint,))
    yield Note(notes.ENDPOINT, endpoint)
    return values.endpoint(removed[0])


def rotate_secret(secret: Secret, *, old_expires_at: int) -> Changing[None]:
    if not (yield Statement("select 1 from endpoint where id = ?", (secret.endpoint,))):
        return
    ends, parameters = "expires_at is null", [old_expires_at, secret.endpoint]
    if old_expires_at <= secret.created_at:
        # Ending at once also ends the secrets whose overlap is still running.
        ends = "(expires_at is null or expires_at > ?)"
        parameters.append(old_expires_at)
    yield Statement(f"update secret set expires_at = ? where endpoint = ? and {ends}", parameters)
    yield from _insert("secret", secret)
    yield Note(notes.ENDPOINT, secret.endpoint)


# -- keys ---------------------------------------------------------------------------------------------


def add_key(key: ApiKey) -> Changing[None]:
    yield from _insert("api_key", key)
    yield Note(notes.API_KEY, key.id)


# -- shared -------------------------------------------------------------------------------------------


def _insert(table: str, value: Struct) -> Changing[None]:
    fields = values.columns(structs.asdict(value))
    places = ", ".join("?" * len(fields))
    sql = f"insert into {table} ({_columns(type(value))}) values ({places})"
    yield from _written(table, Statement(sql, tuple(fields.values())))


def _change(
    table: str,
    kind: type[Struct],
    key: str | bytes,
    noted: bytes,
    changes: Mapping[str, object],
    made: Callable[[Row], T],
) -> Changing[T | None]:
    """Set fields of one row, found by its first column, and return the row as it is now."""
    fields = values.columns(changes)
    columns, first = _columns(kind), kind.__struct_fields__[0]
    if fields:
        setting = ", ".join([f'"{name}" = ?' for name in fields])
        sql, parameters = f"update {table} set {setting} where {first} = ?", (*fields.values(), key)
        step: Statement | Noted = Statement(f"{sql} returning {columns}", parameters)
        if not changes.keys() <= FOR_PEOPLE[table]:
            step = Noted(sql, columns, parameters, Note(table, noted))
        found = yield from _written(table, step)
    else:
        found = yield Statement(f"select {columns} from {table} where {first} = ?", (key,))
    return made(found[0]) if found else None


def _written(table: str, statement: Statement | Noted) -> Changing[Sequence[Row]]:
    try:
        return (yield statement)
    except DataRefused as error:
        raise Problem("unstorable", f"the database refuses this {table}: {error}") from error


@cache
def _columns(kind: type[Struct]) -> str:
    """List the columns of a kind's table: the order of fields is the order of columns."""
    return ", ".join([f'"{name}"' for name in kind.__struct_fields__])
