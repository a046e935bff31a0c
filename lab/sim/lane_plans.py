"""Worlds in which lanes are apart and both have parked work: what one node takes back is the other's to send."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.sim.entropy import Seed
from lab.sim.orders import Order

if TYPE_CHECKING:
    from lab.sim.swarm import Options

EVENTS = 20
ROLES = {2: ("all", "retry"), 3: ("api", "first", "retry")}


def add(options: Options) -> None:
    """A third of the worlds of several machines are such. A burst meets endpoints that are paused, which are activated soon
    after: first attempts are parked, and whoever is first takes them back."""
    chance = Seed(options.seed).stream("lanes apart")
    taken = options.probe_freezes or options.dial_freeze_s is not None
    if options.nodes not in ROLES or taken or chance.random() >= 1 / 3:
        return
    options.roles = tuple(chance.sample(ROLES[options.nodes], options.nodes))
    number = chance.randrange(len(options.customers))
    customer = options.customers[number]
    customer.event_types = ("*",)
    at = chance.uniform(1.0, options.storm_s * 0.5)
    options.publishes = sorted([*options.publishes, (at, customer.tenant, "document.signed", EVENTS)])
    orders = [Order(at - 0.5, "pause", number), Order(at + chance.uniform(2.0, 5.0), "activate", number)]
    options.orders = sorted([*options.orders, *orders], key=lambda order: order.at)
