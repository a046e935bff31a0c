"""Worlds in which a machine freezes while it dials, for longer than its lease: what it was about to send is another's by then,
and its permit to send was given to a life that is over.

In a world that has run for a while connections are there already. So a tenant joins whose receiver nobody has called yet, with
a burst that makes whoever sends it dial, and slowly, so that the freeze finds dials under way. A handshake goes on after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lab.sim import crowd
from lab.sim.entropy import Seed
from lab.sim.orders import Blow
from lab.sim.receivers import Mood

if TYPE_CHECKING:
    from lab.sim.loop import Process
    from lab.sim.swarm import Options
    from lab.sim.world import World

TENANT = "dialled"
SHARE = 2 / 3  # of the worlds of several machines
EVENTS = 8
# A connection comes up within that, drawn for each, and in two parts: the second goes on after the freeze.
SLOW = Mood(connect_s=1.3, secure_s=0.5)
WITHIN_S = (0.02, 0.3)  # of the first dial: most of the burst is still dialling
FREEZE_S = 25.0  # a lease ends within 15 s, and others look every second
# So patient that a dial which the freeze struck goes on after it.
PATIENT: dict[str, Any] = {
    "profile": "standard", "timeouts": {"first": 40, "retry": 40, "connect": 40}, "schedule": {"fixed": [2, 4, 8, 16, 32]},
}  # fmt: skip


def add(options: Options, join: Callable[..., None]) -> None:
    """Make a world of several machines one of these, if its seed says so: everybody sends there, so that others have sent
    what the frozen one holds."""
    chance = Seed(options.seed).stream("dial freezes")
    tenants = {customer.tenant for customer in options.customers}
    if options.nodes == 1 or crowd.BUSY in tenants or chance.random() >= SHARE:
        return
    join(options, TENANT, 1, SLOW, policy=PATIENT)
    options.customers[-1].port = 443
    at = chance.uniform(0.5, 2.5)
    options.publishes = sorted([*options.publishes, (at, TENANT, "document.signed", EVENTS)])
    options.roles = ("all",) * options.nodes
    options.dial_freeze_s = chance.uniform(*WITHIN_S)
    options.storm_s = max(options.storm_s, at + FREEZE_S + 1.0)  # the end of the storm thaws everybody


async def befall(world: World) -> None:
    """The first machine that dials the tenant's receiver freezes until it is evicted."""
    options = world.options
    if options.dial_freeze_s is None:
        return
    address = next(each.address for each in options.customers if each.tenant == TENANT)
    struck = False

    def dialled(process: Process | None, to: str) -> None:
        nonlocal struck
        for machine in world.machines:
            if to == address and not struck and machine.process is process:
                struck = True
                world.begin(_freeze(world, machine))

    world.network.dialled = dialled


async def _freeze(world: World, machine: Any) -> None:
    await asyncio.sleep(world.options.dial_freeze_s or 0.0)
    world.trace.note("blow-dial-freeze", f"machine {machine.slot}")
    await world.strike(machine, Blow(0.0, "freeze", seconds=FREEZE_S))
