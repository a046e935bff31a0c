"""/v1/replays"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from surehook.api import show, tenants
from surehook.api.deliveries import ERRORS
from surehook.api.operations import ApiAnswer, ApiRequest, Operation
from surehook.core import ids, limits, subscription
from surehook.core.answers import ReplayOut
from surehook.core.errors import Problem
from surehook.core.model import OutcomeName
from surehook.core.receipt import CODE_CHARS, Stage
from surehook.delivery.replay import filter_of

Instant = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


class ReplayFilter(Struct, forbid_unknown_fields=True):
    """Which finished deliveries. At least one field is given; all given ones must fit."""

    tenant: Annotated[str, Meta(min_length=1, max_length=limits.TENANT_CHARS)] | None = None
    endpoint: str | None = None
    type: str | None = None
    subject: Annotated[str, Meta(min_length=1, max_length=limits.TEXT_CHARS)] | None = None
    state: Literal["delivered", "dead", "dropped", "cancelled"] | None = None
    outcome: OutcomeName | None = None
    status: Annotated[int, Meta(ge=100, le=599)] | None = None
    error: Literal[ERRORS] | None = None  # type: ignore[valid-type]  # the closed set, which is a table elsewhere
    receipt: Stage | None = None
    code: Annotated[str, Meta(min_length=1, max_length=CODE_CHARS)] | None = None
    correlation_id: Annotated[str, Meta(min_length=1, max_length=limits.TEXT_CHARS)] | None = None
    since: Instant | None = None
    until: Instant | None = None


class NewReplay(Struct, forbid_unknown_fields=True):
    filter: ReplayFilter
    dry_run: Annotated[bool, Meta(description="Count only.")] = False
    rate: Annotated[Any, Meta(description="Not available in this version.")] = None


async def create(asked: ApiRequest) -> ApiAnswer:
    new: NewReplay = asked.body
    if new.rate is not None:
        raise Problem(
            "not_available", "replays have no rate in this version", field="rate", hint="leave it out"
        )
    given = {name: value for name, value in msgspec.structs.asdict(new.filter).items() if value is not None}
    if not given:
        raise Problem(
            "empty_filter",
            "an empty filter would replay everything",
            field="filter",
            hint="such as a tenant and a state",
        )
    if new.filter.type is not None:
        subscription.check_event_type(new.filter.type, field="filter.type")
    filter_of(given)
    if new.filter.tenant is not None:
        await tenants.check_known(asked.services.engine, new.filter.tenant, field="filter.tenant")
    job = show.replay(await asked.services.replays.begin(given, dry_run=new.dry_run))
    return ApiAnswer(job, 202, {"location": f"/v1/replays/{job.id}"})


async def get(asked: ApiRequest) -> ApiAnswer:
    return ApiAnswer(show.replay(await asked.services.replays.find(asked.id(ids.REPLAY, "replay"))))


OPERATIONS = (
    Operation(
        method="POST", path="/v1/replays", name="create_replay", handle=create, body=NewReplay,
        about="Deliver again every finished delivery that a filter matches, as a job.",
        detail="Matched is what had finished when the job was made, was not replayed before nor dismissed, and whose "
        "endpoint exists. "
        "The job goes on after a restart of the server. A `dry_run` that takes longer than a tenth of a second "
        "is answered while it counts on.",
        answers={202: ReplayOut},
        problems=("empty_filter", "not_available", "bad_id", "bad_time", "invalid_event_type", "unknown_tenant",
            "too_many_replays"),
    ),
    Operation(
        method="GET", path="/v1/replays/{id}", name="get_replay", handle=get, about="A replay and how far it is.",
        answers={200: ReplayOut}, problems=("not_found",),
    ),
)  # fmt: skip
