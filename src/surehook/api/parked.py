"""When what is parked is looked at next: the time a delivery was due when it was parked says nothing any more."""

from __future__ import annotations

from msgspec.structs import replace

from surehook.api import show
from surehook.api.services import Engine
from surehook.api.shapes import DeliveryShape
from surehook.ports.reading import DeliveryView


def delivery(engine: Engine, seen: DeliveryView) -> DeliveryShape:
    """A delivery; where it is parked behind a breaker its `due_at` is that of the next probe, else null."""
    return show.delivery(seen if seen.state != "parked" else replace(seen, due_at=_probe_at(engine, seen)))


def _probe_at(engine: Engine, seen: DeliveryView) -> int | None:
    route = engine.directory.routes.get(seen.endpoint)
    if route is None or seen.reason not in ("breaker", "key") or route.breaker.is_closed:
        return None
    return route.breaker.probe_at
