"""What the hot path keeps in memory: differences, and pages of everything. Hand-written: every start needs it at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from surehook.core.model import Configuration, Endpoint, EventType, Secret, Tenant
from surehook.ledgers import changes as notes
from surehook.ledgers.common import differences, values
from surehook.ledgers.sqlite.session import Session
from surehook.ledgers.sqlite.statements import batch, query
from surehook.ports.registry import ApiKey, Changes, ConfigurationPage

T = TypeVar("T")


def version(session: Session) -> int:
    number: int = session.value(query("version"))
    return number


def changes(session: Session, since: int, *, limit: int) -> Changes | None:
    newer = session.rows(query("changes"), (since, limit + 1))
    difference = differences.read(newer, since=since, limit=limit)
    if difference is None:
        return None
    noted, endpoints, secrets = difference
    rows = Configuration(
        tenants=_named(session, "tenants", noted.tenants, values.tenant),
        endpoints=endpoints,
        event_types=_named(session, "event_types", noted.event_types, values.event_type),
        secrets=secrets,
    )
    return notes.found(noted, rows)


def page(session: Session, after: bytes | None, *, limit: int) -> ConfigurationPage:
    kind, last = notes.place(after)
    with session.snapshot():
        if kind == notes.ENDPOINT:
            found = session.rows(query("endpoints_after"), (last, limit))
            endpoints = tuple(values.endpoint(row) for row in found)
            ids = [one.id for one in endpoints]
            secrets = _named(session, "secrets", ids, values.secret)
            rows = Configuration(endpoints=endpoints, secrets=secrets)
            return ConfigurationPage(rows, notes.next_place(kind, ids, limit))
        if kind == notes.TENANT:
            found = session.rows(query("tenants_after"), (last.decode(), limit))
            rows = Configuration(tenants=tuple(values.tenant(row) for row in found))
        else:
            found = session.rows(query("event_types_after"), (last.decode(), limit))
            rows = Configuration(event_types=tuple(values.event_type(row) for row in found))
    return ConfigurationPage(rows, notes.next_place(kind, [row[0].encode() for row in found], limit))


def secrets(session: Session, endpoint: bytes) -> Sequence[Secret]:
    return _named(session, "secrets", [endpoint], values.secret)


def tenant(session: Session, tenant: str) -> Tenant | None:
    found = _named(session, "tenants", [tenant], values.tenant)
    return found[0] if found else None


def event_type(session: Session, name: str) -> EventType | None:
    found = _named(session, "event_types", [name], values.event_type)
    return found[0] if found else None


def endpoint(session: Session, endpoint: bytes) -> Endpoint | None:
    found = _named(session, "endpoints", [endpoint], values.endpoint)
    return found[0] if found else None


def keys(session: Session) -> list[ApiKey]:
    return [ApiKey(*row) for row in session.rows(query("keys"))]


def _named(
    session: Session, name: str, keys: Sequence[Any], made: Callable[[tuple[Any, ...]], T]
) -> tuple[T, ...]:
    """Rows by their keys."""
    return tuple(made(row) for piece in batch(name).pieces(list(keys)) for row in session.rows(*piece))
