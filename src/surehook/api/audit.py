"""One log line for each change of the configuration: the call, the fields, the key and the address.

Only names of fields, never their values, among which are secrets and anything that customers put into headers.
"""

from __future__ import annotations

from functools import cache

from msgspec import Struct
from msgspec.structs import fields
from starlette.requests import Request

from surehook.api.auth import authorization_of
from surehook.api.bodies import given
from surehook.api.operations import ApiAnswer, ApiRequest, Operation
from surehook.core.json_value import JsonObject

KINDS = {"endpoints": "endpoint", "tenants": "tenant", "event-types": "event_type", "breakers": "breaker"}
NO_CHANGES = frozenset({"test_endpoint", "probe_breaker"})


def tell(operation: Operation, asked: ApiRequest, answer: ApiAnswer, request: Request) -> None:
    """Log a call that has changed the configuration; others pass."""
    kind = KINDS.get(operation.path.split("/")[2]) if operation.path.startswith("/v1/") else None
    if kind is None or operation.method == "GET" or operation.name in NO_CHANGES:
        return
    named = (getattr(answer.value, name, None) for name in ("id", "name", "url"))
    made = next((name for name in named if name is not None), None)
    asked.services.engine.telemetry.fact(
        "config.changed",
        call=operation.name,
        **{kind: next(iter(asked.path.values()), made)},
        tenant_of=getattr(answer.value, "tenant", None),
        fields=_written(asked.body),
        by=asked.services.keys.name(authorization_of(request.scope)),
        address=request.client.host if request.client else None,
    )


def _written(body: object) -> list[str] | None:
    """Names of the fields that were given. A field that was not is UNSET in a change, and has its default elsewhere."""
    if not isinstance(body, Struct):
        return None
    defaults = _defaults(type(body))
    return [name for name, value in given(body).items() if value != defaults.get(name)]


@cache
def _defaults(kind: type[Struct]) -> JsonObject:
    """Defaults by field, cached: resolving the annotations of a type cost as much as the rest of a call."""
    return {field.encode_name: field.default for field in fields(kind)}
