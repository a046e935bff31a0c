"""Worlds in which answers come too late to judge: URLs that are changed under calls, probes in flight at an eviction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surehook.sim.entropy import Seed
from surehook.sim.orders import Order
from surehook.sim.receivers import Mood

if TYPE_CHECKING:
    from surehook.sim.swarm import Options

ENOUGH = 6  # failures to open its breaker
MOVE_WITHIN_S = 6.0  # of a publish: its calls are under way, or their retries
# A probe that hangs for longer than a lease lasts.
PROBED = {
    "profile": "standard", "timeouts": {"first": 1, "retry": 45, "connect": 2}, "schedule": {"fixed": [1] * 20},
    "breaker": {"window": 60, "failure_ratio": 0.4, "calls": 3, "probe_after": 5},
}  # fmt: skip


def add(options: Options) -> None:
    """Add one or the other to a drawn world, each of a stream of its own: a new URL has a breaker of its own."""
    if options.faults and options.nodes > 1:
        _freeze_probes(options)
    if options.has("switches", "moods") and not options.probe_freezes:
        _move(options)


def _move(options: Options) -> None:
    chance = Seed(options.seed).stream("moves")
    for _ in range(chance.choice((0, 1, 2, 5))):
        at = chance.choice(options.publishes)[0] + chance.uniform(0, MOVE_WITHIN_S)
        options.orders.append(Order(at, "move", chance.randrange(len(options.customers))))
    options.orders.sort(key=lambda order: order.at)


def _freeze_probes(options: Options) -> None:
    """Whoever freezes with the probe is the only one who could send another."""
    options.probe_freezes = Seed(options.seed).stream("probe freezes").choice((0, 1, 3, 3))
    if options.probe_freezes:
        options.roles = ("worker", *("api",) * (options.nodes - 1))
        first = options.customers[0]
        first.policy = PROBED
        first.moods = [(0.0, Mood("errors")), (options.storm_s / 3, Mood("hanging"))]
        first.event_types = ("*",)
        options.publishes = sorted([*options.publishes, (1.0, first.tenant, "document.signed", ENOUGH)])
