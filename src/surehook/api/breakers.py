"""/v1/breakers: URLs that are left alone, and the two things a person may do about it."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated

from msgspec import Meta, Struct

from surehook.api import show
from surehook.api.operations import ApiAnswer, ApiRequest, Operation
from surehook.api.services import ManagementEngine
from surehook.core import limits, url
from surehook.core.answers import BreakerOut, HeldOut
from surehook.core.instants import render
from surehook.delivery import breaker_board
from surehook.delivery.managing import BreakerView


class BreakerPlace(Struct, forbid_unknown_fields=True):
    """Which breaker: those of different tenants know nothing of one another."""

    tenant: Annotated[
        str, Meta(min_length=1, max_length=limits.TENANT_CHARS, description="Whose endpoints it is for.")
    ]
    url: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=url.CHARS_MAX,
            description="The URL of an endpoint; its query does not matter.",
        ),
    ]


async def list_breakers(asked: ApiRequest) -> ApiAnswer:
    """Newest opening first. They live in memory, so a page is cut from what is there now."""
    engine = asked.services.engine
    placed = sorted(
        ((_place(view), view) for view in engine.breakers()), key=lambda pair: pair[0], reverse=True
    )
    placed = [pair for pair in placed if asked.after is None or pair[0] < asked.after]
    page = placed[: asked.limit]
    following = page[-1][0] if len(placed) > len(page) else None
    parked = await engine.parked_counts() if page else {}
    return asked.rows([_shown(view, parked) for _, view in page], following)


async def probe(asked: ApiRequest) -> ApiAnswer:
    return await _by_hand(asked, breaker_board.probe)


async def close(asked: ApiRequest) -> ApiAnswer:
    return await _by_hand(asked, breaker_board.close)


async def _by_hand(
    asked: ApiRequest, act: Callable[[ManagementEngine, str, str], Awaitable[BreakerView]]
) -> ApiAnswer:
    engine = asked.services.engine
    view = await act(engine, asked.body.tenant, asked.body.url)
    return ApiAnswer(_shown(view, await engine.parked_counts()))


def held(engine: ManagementEngine, endpoint: bytes) -> HeldOut | None:
    """The open breaker that holds the endpoint's deliveries back, or None."""
    route = engine.directory.routes.get(endpoint)
    if route is None or route.breaker.is_closed:
        return None
    breaker = route.breaker
    if breaker.reason != "key" and route.breaker_policy is None:
        return None  # it holds back other endpoints with this URL, not this one
    return HeldOut(breaker.state, breaker.reason or "failures", render(breaker.probe_at))


def _shown(view: BreakerView, parked: Mapping[tuple[bytes, str], int]) -> BreakerOut:
    reasons = ("breaker", "key")
    waiting = sum(parked.get((endpoint, reason), 0) for endpoint in view.endpoints for reason in reasons)
    return show.breaker(view, parked=waiting)


def _place(view: BreakerView) -> bytes:
    """Position of a breaker in the list: by its opening, then by its name."""
    named = hashlib.sha256(f"{view.tenant}\0{view.url}".encode()).digest()
    return (view.opened_at or 0).to_bytes(8, "big") + named[:8]


OPERATIONS = (
    Operation(
        method="GET", path="/v1/breakers", name="list_breakers", handle=list_breakers,
        about="Breakers of this server, the latest opened first.", answers={200: BreakerOut}, is_list=True, is_kept=True,
    ),
    Operation(
        method="POST", path="/v1/breakers/probe", name="probe_breaker", handle=probe, body=BreakerPlace,
        about="Make the next probe of an open breaker due now. A breaker that is closed stays as it is.",
        detail="One delivery that is due goes out, by a process that delivers retries, within a second or two. If it "
        "is delivered the breaker closes and what was parked follows; if it fails, the next probe is `probe_after` away.",
        answers={200: BreakerOut}, problems=("not_found",),
    ),
    Operation(
        method="POST", path="/v1/breakers/close", name="close_breaker", handle=close, body=BreakerPlace,
        about="Close a breaker at once, whatever it opened for. A breaker that is closed stays as it is.",
        detail="What was parked for it goes out, slowly at first. Failures from now on are counted anew, and may open it.",
        answers={200: BreakerOut}, problems=("not_found",),
    ),
)  # fmt: skip
