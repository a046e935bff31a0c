"""The configuration that a node keeps in memory, read as differences and as pages of everything.

In plain text, without SQLAlchemy: every start needs it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from surehook.core.model import Configuration, Endpoint, EventType, Secret, Tenant
from surehook.ledgers import changes as notes
from surehook.ledgers.common import differences, values
from surehook.ledgers.common.statements import ByKeys, Query, Reading, Row, Statement, shared
from surehook.ports.registry import ApiKey, Changes, ConfigurationPage

T = TypeVar("T")


def version() -> Reading[int]:
    ((number,),) = yield Statement(shared("version"))
    return int(number)


def changes(since: int, *, limit: int) -> Reading[Changes | None]:
    newer = yield Query("changes", (since, limit + 1))
    difference = differences.read(newer, since=since, limit=limit)
    if difference is None:
        return None
    noted, endpoints, secrets = difference
    rows = Configuration(
        tenants=(yield from _by_keys("tenants", noted.tenants, values.tenant)),
        endpoints=endpoints,
        event_types=(yield from _by_keys("event_types", noted.event_types, values.event_type)),
        secrets=secrets,
    )
    return notes.found(noted, rows)


def page(after: bytes | None, *, limit: int) -> Reading[ConfigurationPage]:
    """Read a page of everything, in a snapshot that the caller has begun."""
    kind, last = notes.place(after)
    if kind == notes.ENDPOINT:
        found = yield Statement(shared("endpoints_after"), (last, limit))
        endpoints = tuple(values.endpoint(row) for row in found)
        ids = [one.id for one in endpoints]
        secrets = yield from _by_keys("secrets", ids, values.secret)
        rows = Configuration(endpoints=endpoints, secrets=secrets)
        return ConfigurationPage(rows, notes.next_place(kind, ids, limit))
    if kind == notes.TENANT:
        found = yield Statement(shared("tenants_after"), (last.decode(), limit))
        rows = Configuration(tenants=tuple(values.tenant(row) for row in found))
    else:
        found = yield Statement(shared("event_types_after"), (last.decode(), limit))
        rows = Configuration(event_types=tuple(values.event_type(row) for row in found))
    return ConfigurationPage(rows, notes.next_place(kind, [row[0].encode() for row in found], limit))


def secrets(endpoint: bytes) -> Reading[Sequence[Secret]]:
    return _by_keys("secrets", [endpoint], values.secret)


def tenant(tenant: str) -> Reading[Tenant | None]:
    return _by_key("tenants", tenant, values.tenant)


def event_type(name: str) -> Reading[EventType | None]:
    return _by_key("event_types", name, values.event_type)


def endpoint(endpoint: bytes) -> Reading[Endpoint | None]:
    return _by_key("endpoints", endpoint, values.endpoint)


def keys() -> Reading[Sequence[ApiKey]]:
    return [ApiKey(*row) for row in (yield Statement(shared("keys")))]


def _by_key(name: str, key: str | bytes, made: Callable[[Row], T]) -> Reading[T | None]:
    found = yield from _by_keys(name, [key], made)
    return found[0] if found else None


def _by_keys(name: str, keys: Sequence[str | bytes], made: Callable[[Row], T]) -> Reading[tuple[T, ...]]:
    if not keys:
        return ()
    return tuple([made(row) for row in (yield ByKeys(name, keys))])
