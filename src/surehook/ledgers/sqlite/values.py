"""Configuration values to columns and back; the order of fields is the order of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import json

from surehook.core.model import Endpoint, EventType, Secret, Tenant

_patterns = json.Decoder(tuple[str, ...]).decode
_headers = json.Decoder(dict[str, str]).decode
_AS_JSON = ("event_types", "headers")


def tenant(row: tuple[Any, ...]) -> Tenant:
    id, name, strict, created_at = row
    return Tenant(id, name, strict != 0, created_at)


def event_type(row: tuple[Any, ...]) -> EventType:
    return EventType(*row)


def endpoint(row: tuple[Any, ...]) -> Endpoint:
    id, tenant, url, event_types, policy, status, reason, failure_count, order, headers, *rest = row
    return Endpoint(
        id,
        tenant,
        url,
        _patterns(event_types),
        policy,
        status,
        reason,
        failure_count,
        order,
        _headers(headers),
        *rest,
    )


def secret(row: tuple[Any, ...]) -> Secret:
    return Secret(*row)


def columns(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Field values as columns keep them."""
    return {
        name: json.encode(value).decode() if name in _AS_JSON else value for name, value in fields.items()
    }
