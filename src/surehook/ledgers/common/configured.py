"""Lists of the configuration, newest first. Its changes are in `changing.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Table, select, tuple_

from surehook.ledgers import schema
from surehook.ledgers.common import values
from surehook.ledgers.common.steps import Row, Steps
from surehook.ports.registry import Page

_endpoint = schema.endpoint


def tenants(*, limit: int, after: bytes | None) -> Steps[Page]:
    return _named(schema.tenant, "id", values.tenant, limit=limit, after=after)


def event_types(*, limit: int, after: bytes | None) -> Steps[Page]:
    return _named(schema.event_type, "name", values.event_type, limit=limit, after=after)


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


def _named(
    table: Table, name: str, made: Callable[[Row], Any], *, limit: int, after: bytes | None
) -> Steps[Page]:
    """Read a page of values that people named, ordered by `created_at` and then by name."""
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
