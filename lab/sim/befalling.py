"""Faults of names, of the broker, of shared health and of probes, at the instants that a world's plan names."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING

from lab.sim import dial_plans, stalls
from lab.sim.broker import Trouble
from lab.sim.configuring import befall_configuration
from lab.sim.orders import Blow
from lab.sim.receivers import Seen

if TYPE_CHECKING:
    from lab.sim.swarm import Customer
    from lab.sim.world import World


FREEZE_S = 25.0  # a lease ends within 15 s, and the look that evicts comes within 10
FORBIDDEN = "10.0.0.1"  # what DNS answers while a customer's name has been turned


def befall(world: World) -> list[Coroutine[object, None, None]]:
    """Coroutines of everything that befalls a world during the storm."""
    return [
        befall_storage(world), befall_names(world), befall_broker(world), befall_health(world),
        befall_configuration(world), stalls.befall(world), dial_plans.befall(world),
    ]  # fmt: skip


async def befall_storage(world: World) -> None:
    """The ledger is as late, as silent and as seldom there as the plan says, until the storm is over."""
    options, storage = world.options, world.storage
    storage.late_s, storage.stall_share, storage.slow = options.late_s, options.stall_share, options.slow
    storage.unavailable_share, storage.unknown_share = options.unavailable_share, options.unknown_share
    storage.reads_away_share = options.reads_away_share


async def befall_names(world: World) -> None:
    """A name stops resolving for a while, or is turned to an address nobody may be sent to."""
    world.names.fail_share = world.options.dns_fail_share
    for customer in world.options.customers:
        for begin, end in customer.dns_trouble:
            world.begin(_name_trouble(world, customer, begin, end))


async def _name_trouble(world: World, customer: Customer, begin: float, end: float) -> None:
    turned = world.chance.random() < 0.5
    await world.until(world.began + begin)
    if turned:
        world.names.addresses[customer.host] = (FORBIDDEN,)
    else:
        world.names.failing[customer.host] = world.chance.choice(("dns_nxdomain", "dns_timeout"))
    world.trace.note("dns", f"{customer.host} {'turned' if turned else 'fails'}")
    await world.until(min(world.began + end, world.began + world.options.storm_s))
    _mend_name(world, customer)


def _mend_name(world: World, customer: Customer) -> None:
    world.names.failing.pop(customer.host, None)
    world.names.addresses[customer.host] = (customer.address,)


async def befall_broker(world: World) -> None:
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
            case "freeze" | "alarm":
                broker.stand_still(lane, alarm=what == "alarm")
            case _:
                broker.come_back()


async def befall_health(world: World) -> None:
    """The store of shared health is away for a while, or forgets everything."""
    if world.options.health is None or world.health is None:
        return
    for at, what in world.options.health:
        await world.until(world.began + at)
        world.trace.note("health", what)
        if what == "flush":
            world.health.flush()
        else:
            world.health.away = what == "away"


def freeze_probes(world: World) -> None:
    """Freeze a machine, until it is evicted, while its probe is under way: as often as the plan says."""
    left = world.options.probe_freezes

    def probed(seen: Seen) -> None:
        nonlocal left
        for machine in world.machines:
            if left and machine.process is not None and machine.process.name == seen.sender:
                left -= 1
                # Probes come in the calm too, and each such blow may put the next one off: by the breaker's whole wait, or until
                # what the dead node was given ends. So what must come to rest has its time from the last blow's end.
                world.calm_from = world.loop.time() + FREEZE_S
                world.trace.note("blow-probe-freeze", seen.sender)
                world.begin(world.strike(machine, Blow(0.0, "freeze", seconds=FREEZE_S)))

    world.checkers.probed = probed


def mend(world: World) -> None:
    """The storm is over: names are right, health answers, and the broker is there and keeps what it is given."""
    world.calm_from = max(world.calm_from, world.loop.time())
    world.names.fail_share = 0.0
    for customer in world.options.customers:
        _mend_name(world, customer)
    if world.health is not None:
        world.health.away = False
    if world.broker is not None:
        world.broker.trouble = Trouble()
        world.broker.come_back()
