"""Event types: a catalogue of names, each with a description, perhaps schemas of its data, and perhaps a policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from surehook.core import limits, schema_versions, subscription
from surehook.core.errors import Problem
from surehook.core.model import EventType
from surehook.core.policy import parse_policy
from surehook.core.profiles import PROFILES
from surehook.core.schema import Schema
from surehook.delivery import header_conflicts
from surehook.delivery.chores import Chores
from surehook.delivery.managing import Manager
from surehook.delivery.retry_end import begin_ending_retries


async def create(
    manager: Manager,
    *,
    name: str,
    description: str | None,
    schema: Schema | None,
    schema_version: str,
    policy: bytes | None,
    schemas: Mapping[str, Schema] | None = None,
) -> EventType:
    """Register an event type. `policy` is JSON. Raises Problem for the field that cannot be."""
    subscription.check_event_type(name, field="name")
    _bring(manager, schema, schemas)
    if policy is not None:
        parse_policy(policy, PROFILES)
        await header_conflicts.check_event_type(manager, name, policy)
    made = EventType(
        name=name,
        description=description,
        schema=None if schema is None else schema.source,
        schema_version=schema_version,
        policy=policy,
        created_at=manager.clock.now(),
        schemas=None if schemas is None else schema_versions.packed(schemas),
    )
    schema_versions.check(made)
    await _check_room(manager, made)
    await manager.ledger.add_event_type(made)
    await manager.changed()
    return made


async def find(manager: Manager, name: str) -> EventType:
    return _there(await manager.ledger.event_type(name))


async def change(manager: Manager, chores: Chores, name: str, changes: Mapping[str, Any]) -> EventType:
    """Set the given fields: `description`, `schema` (a Schema), `schema_version`, `schemas` (by version), `policy` (JSON)."""
    if not changes:
        return await find(manager, name)
    _bring(manager, changes.get("schema"), changes.get("schemas"))
    stored = _stored(changes)
    if not stored.keys().isdisjoint(("schema", "schema_version", "schemas")):
        made = structs.replace(await find(manager, name), **stored)
        schema_versions.check(made)
        await _check_room(manager, made)
    if changes.get("policy") is not None:
        parse_policy(changes["policy"], PROFILES)
        await header_conflicts.check_event_type(manager, name, changes["policy"])
    changed = _there(await manager.ledger.change_event_type(name, stored))
    await manager.changed()
    if "policy" in changes:
        begin_ending_retries(manager, chores, event_type=name)
    return changed


async def _check_room(manager: Manager, made: EventType) -> None:
    """Raise Problem `too_many_schemas` where the installation's schemas would be longer than their bound: every process keeps all
    of them read. Calls at the same time are not told apart."""
    size = _schema_bytes(made)
    if not size:
        return
    await manager.current()
    others = sum(_schema_bytes(each) for name, each in manager.directory.types.items() if name != made.name)
    before = manager.directory.types.get(made.name)
    if others + size > limits.SCHEMAS_BYTES and (before is None or size > _schema_bytes(before)):
        raise Problem(
            "too_many_schemas",
            f"the schemas of all event types together have at most {limits.SCHEMAS_BYTES >> 20} MiB",
            field="schema",
            hint="shorten them, or set schemas that are not needed any more to null",
            status=409,
        )


def _schema_bytes(event_type: EventType) -> int:
    return len(event_type.schema or b"") + len(event_type.schemas or b"")


def _bring(manager: Manager, schema: Schema | None, schemas: Mapping[str, Schema] | None) -> None:
    """Let memory have the schemas that it will read of in the ledger: compiling them once more would cost as much again."""
    for one in (schema, *(schemas or {}).values()):
        if one is not None:
            manager.directory.compiled[one.source] = one


def _stored(changes: Mapping[str, Any]) -> dict[str, object]:
    """As the ledger has them: of a schema its bytes."""
    stored = dict(changes)
    if stored.get("schema") is not None:
        stored["schema"] = stored["schema"].source
    if stored.get("schemas") is not None:
        stored["schemas"] = schema_versions.packed(stored["schemas"])
    return stored


def _there(found: EventType | None) -> EventType:
    if found is None:
        raise Problem("not_found", "there is no event type with this name", status=404)
    return found
