"""/v1/lanes and /v1/breakers: how the sending stands at this moment."""

from __future__ import annotations

import hashlib

from surehook.api import show
from surehook.api.calls import Answer, Asked, Call
from surehook.api.shapes import BreakerShape, LaneShape
from surehook.core.model import LANES
from surehook.delivery.managing import BreakerView


async def list_lanes(asked: Asked) -> Answer:
    engine = asked.services.engine
    now = engine.clock.now()
    counts = await engine.lane_counts()
    flying = engine.in_flight()
    lanes = [
        show.lane(name, slots, flying[name], count, now=now)
        for name, slots, count in zip(LANES, engine.lanes(), counts, strict=True)
    ]
    return asked.rows(lanes, None)


async def list_breakers(asked: Asked) -> Answer:
    """Newest opening first. They live in memory, so a page is cut from what is there now."""
    engine = asked.services.engine
    placed = sorted(
        ((_place(view), view) for view in engine.breakers()), key=lambda pair: pair[0], reverse=True
    )
    placed = [pair for pair in placed if asked.after is None or pair[0] < asked.after]
    page = placed[: asked.limit]
    following = page[-1][0] if len(placed) > len(page) else None
    parked = await engine.parked_counts() if page else {}
    rows = [
        show.breaker(
            view,
            parked=sum(
                parked.get((endpoint, reason), 0)
                for endpoint in view.endpoints
                for reason in ("breaker", "key")
            ),
        )
        for _, view in page
    ]
    return asked.rows(rows, following)


def _place(view: BreakerView) -> bytes:
    """Where a breaker stands in the list: by its opening, and by its name where that is equal."""
    named = hashlib.sha256(f"{view.tenant}\0{view.url}".encode()).digest()
    return (view.opened_at or 0).to_bytes(8, "big") + named[:8]


CALLS = (
    Call(
        method="GET", path="/v1/lanes", name="list_lanes", handle=list_lanes,
        about="The two lanes: every unfinished delivery is counted once, as held, ready, scheduled or parked.",
        answers={200: LaneShape}, is_list=True,
    ),
    Call(
        method="GET", path="/v1/breakers", name="list_breakers", handle=list_breakers,
        about="Breakers of this server, the latest opened first.", answers={200: BreakerShape}, is_list=True,
    ),
)  # fmt: skip
