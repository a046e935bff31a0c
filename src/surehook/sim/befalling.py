"""What befalls the broker of a world, at the instants that its plan names."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from surehook.sim.broker import Trouble

if TYPE_CHECKING:
    from surehook.sim.world import World


async def befall(world: World) -> None:
    """Do the plan's acts at their instants, for as long as the storm lasts."""
    plan, broker = world.options.broker, world.broker
    if plan is None or broker is None:
        return
    for at, what, lane in plan.acts:
        await asyncio.sleep(max(0.0, world.began + at - world.loop.time()))
        world.trace.note("broker", f"{what} {lane}")
        match what:
            case "cut":
                broker.cut()
            case "purge":
                broker.purge(lane)
            case "delete":
                broker.delete(lane)
            case "away":
                broker.go_away(lane)
            case _:
                broker.come_back()


def mend(world: World) -> None:
    """The storm is over: the broker is there and keeps what it is given."""
    if world.broker is not None:
        world.broker.trouble = Trouble()
        world.broker.come_back()
