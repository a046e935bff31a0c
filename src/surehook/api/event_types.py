"""/v1/event-types"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from surehook.api import show
from surehook.api.bodies import given, stored
from surehook.api.endpoints import Description, PolicyReference
from surehook.api.operations import ApiAnswer, ApiRequest, Operation
from surehook.core import limits, subscription
from surehook.core.answers import EventTypeOut
from surehook.core.errors import Problem
from surehook.core.json_value import JsonObject
from surehook.core.schema import Schema as Compiled
from surehook.core.schema import compile_in_steps
from surehook.delivery import event_types

Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.EVENT_TYPE_CHARS,
        description="Letters, digits, _ and -, in segments joined by full stops.",
    ),
]
Schema = Annotated[
    JsonObject,
    Meta(
        description="JSON Schema of `data`: an event that is not as it says is refused. It stands alone: references "
        "lead to places within it. Draft 2020-12, unless `$schema` names another."
    ),
]
Version = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.VERSION_CHARS,
        description="Sent with events of this type that do not say their own.",
    ),
]
Schemas = Annotated[
    dict[Annotated[str, Meta(min_length=1, max_length=limits.VERSION_CHARS)], Schema],
    Meta(
        max_length=limits.SCHEMA_VERSIONS,
        description="JSON Schemas of other versions, by version: the `schema_version` of an event chooses, and one that is "
        "neither named here nor the type's own is refused. Null: `schema` judges every event.",
    ),
]


class NewEventType(Struct, forbid_unknown_fields=True):
    name: Name
    description: Description | None = None
    schema: Schema | None = None
    schema_version: Version = "1"
    schemas: Schemas | None = None
    policy: PolicyReference = None


class EventTypeChange(Struct, forbid_unknown_fields=True):
    description: Description | UnsetType | None = UNSET
    schema: Schema | UnsetType | None = UNSET
    schema_version: Version | UnsetType = UNSET
    schemas: Schemas | UnsetType | None = UNSET
    policy: PolicyReference | UnsetType = UNSET


async def create(asked: ApiRequest) -> ApiAnswer:
    new: NewEventType = asked.body
    made = await event_types.create(
        asked.services.engine,
        name=new.name,
        description=new.description,
        schema=await _compiled(asked, new.schema),
        schema_version=new.schema_version,
        policy=stored(new.policy),
        schemas=await _all_compiled(asked, new.schemas),
    )
    return ApiAnswer(show.event_type(made), 201, {"location": f"/v1/event-types/{made.name}"})


async def list_all(asked: ApiRequest) -> ApiAnswer:
    page = await asked.services.engine.ledger.event_types(limit=asked.limit, after=asked.after)
    return asked.page(page, show.event_type)


async def get(asked: ApiRequest) -> ApiAnswer:
    return ApiAnswer(show.event_type(await event_types.find(asked.services.engine, _name(asked))))


async def change(asked: ApiRequest) -> ApiAnswer:
    changes = given(asked.body)
    if "schema" in changes:
        changes["schema"] = await _compiled(asked, changes["schema"])
    if "schemas" in changes:
        changes["schemas"] = await _all_compiled(asked, changes["schemas"])
    if "policy" in changes:
        changes["policy"] = stored(changes["policy"])
    services = asked.services
    changed = await event_types.change(services.engine, services.chores, _name(asked), changes)
    return ApiAnswer(show.event_type(changed))


async def _compiled(asked: ApiRequest, written: JsonObject | None) -> Compiled | None:
    return None if written is None else await _in_turns(asked, written)


async def _all_compiled(
    asked: ApiRequest, written: dict[str, JsonObject] | None
) -> dict[str, Compiled] | None:
    if written is None:
        return None
    found = {}
    for version, schema in written.items():
        try:
            found[version] = await _in_turns(asked, schema)
        except Problem as problem:
            field = f"schemas.{version}"
            raise Problem(problem.code, problem.detail, field=field, hint=problem.hint) from None
    return found


async def _in_turns(asked: ApiRequest, written: JsonObject) -> Compiled:
    """Compile a schema in turns: the largest takes a quarter of a second."""
    return await asked.services.turns.run(asked.caller, compile_in_steps(msgspec.json.encode(written)))


def _name(asked: ApiRequest) -> str:
    written = asked.path["name"]
    if not subscription.is_event_type(written):
        raise Problem("not_found", "there is no event type with this name", status=404)
    return written


OPERATIONS = (
    Operation(
        method="POST", path="/v1/event-types", name="create_event_type", handle=create, body=NewEventType,
        body_limit=limits.SCHEMA_BODY_BYTES, about="Register an event type.", answers={201: EventTypeOut},
        problems=(
            "event_type_exists", "invalid_event_type", "invalid_policy", "unknown_policy", "invalid_schema",
            "too_many_schemas", "authentication_conflict",
        ),
    ),
    Operation(
        method="GET", path="/v1/event-types", name="list_event_types", handle=list_all,
        about="Registered event types, newest first.", answers={200: EventTypeOut}, is_list=True,
    ),
    Operation(
        method="GET", path="/v1/event-types/{name}", name="get_event_type", handle=get, about="One event type.",
        answers={200: EventTypeOut}, problems=("not_found",),
    ),
    Operation(
        method="PATCH", path="/v1/event-types/{name}", name="change_event_type", handle=change,
        body=EventTypeChange, body_limit=limits.SCHEMA_BODY_BYTES, about="Change an event type.",
        answers={200: EventTypeOut}, problems=(
            "not_found", "invalid_policy", "unknown_policy", "invalid_schema", "too_many_schemas", "authentication_conflict",
        ),
    ),
)  # fmt: skip
