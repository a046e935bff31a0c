"""Configuration values to columns and back; the order of fields is the order of columns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import Any

from msgspec import json

from surehook.core.model import Endpoint, EventType, Secret, Tenant
from surehook.ledgers import custom
from surehook.ledgers.common.statements import Row

# Many endpoints have equal texts and lists: each becomes one value in memory.
_patterns = lru_cache(maxsize=4_096)(json.Decoder(tuple[str, ...]).decode)
_headers = json.Decoder(dict[str, str]).decode
_NO_HEADERS: dict[str, str] = {}
_AS_JSON = ("event_types", "headers")


def tenant(row: Row) -> Tenant:
    id, name, strict, created_at = row
    return Tenant(id, name, strict != 0, created_at)


def event_type(row: Row) -> EventType:
    return EventType(*row)


def endpoint(row: Row) -> Endpoint:
    id, tenant, url, event_types, policy, status, reason, failure_count, order, headers, *rest = row
    description, created_at, updated_at, method, authentication, tls, receipts = rest
    return Endpoint(
        id,
        intern(tenant),
        url,
        _patterns(event_types),
        policy,
        intern(status),  # type: ignore[arg-type]  # texts of closed lists
        reason,
        failure_count,
        intern(order),
        _NO_HEADERS if headers == "{}" else _headers(headers),
        description,
        created_at,
        updated_at,
        intern(method),  # type: ignore[arg-type]
        custom.authentication(authentication),
        custom.tls(tls),
        custom.receipts(receipts),
    )


def secret(row: Row) -> Secret:
    return Secret(*row)


def columns(fields: Mapping[str, object]) -> dict[str, object]:
    """Return field values as their columns store them."""
    return {name: _column(name, value) for name, value in fields.items()}


def _column(name: str, value: Any) -> object:
    if name in _AS_JSON:
        return json.encode(value).decode()
    return custom.kept(value) if name in custom.COLUMNS else value
