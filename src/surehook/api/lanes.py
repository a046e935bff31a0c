"""/v1/lanes: the state of sending at this moment."""

from __future__ import annotations

from surehook.api import show
from surehook.api.operations import ApiAnswer, ApiRequest, Operation
from surehook.core.answers import LaneOut
from surehook.core.model import LANES


async def list_lanes(asked: ApiRequest) -> ApiAnswer:
    engine = asked.services.engine
    now = engine.clock.now()
    counts = await engine.lane_counts()
    flying = engine.in_flight()
    lanes = [
        show.lane(name, slots, flying[name], count, now=now)
        for name, slots, count in zip(LANES, engine.lanes(), counts, strict=True)
    ]
    return asked.rows(lanes, None)


OPERATIONS = (
    Operation(
        method="GET", path="/v1/lanes", name="list_lanes", handle=list_lanes,
        about="The two lanes: every unfinished delivery is counted once, as held, ready, scheduled or parked.",
        answers={200: LaneOut}, is_list=True, is_kept=True,
    ),
)  # fmt: skip
