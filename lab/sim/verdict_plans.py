"""Worlds in which answers come too late to judge: URLs that are changed under calls, probes in flight at an eviction."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lab.sim import dial_plans
from lab.sim.entropy import Seed
from lab.sim.orders import Order
from lab.sim.receivers import Mood

if TYPE_CHECKING:
    from lab.sim.swarm import Options

ENOUGH = 6  # failures to open its breaker
MOVE_WITHIN_S = 6.0  # of a publish: its calls are under way, or their retries
# A probe that hangs for longer than a lease lasts.
PROBED = {
    "profile": "standard", "timeouts": {"first": 1, "retry": 45, "connect": 2}, "schedule": {"fixed": [1] * 20},
    "breaker": {"window": 60, "failure_ratio": 0.4, "calls": 3, "probe_after": 5},
}  # fmt: skip
# What fails is asked again after the storm, so that nothing but the calls under way could open the new URL's breaker.
MOVING = "moving"
MOVED = {
    "profile": "standard", "timeouts": {"first": 10, "retry": 10, "connect": 2}, "schedule": {"fixed": [300]}, "jitter": None,
    "breaker": {"window": 60, "failure_ratio": 0.4, "calls": 3, "probe_after": 5},
}  # fmt: skip
ANSWER_S = (2.0, 3.0)


def add(options: Options, join: Callable[..., None]) -> None:
    """Add one or the other to a drawn world, each of a stream of its own: a new URL has a breaker of its own. A machine that
    freezes while it dials has no probe to freeze with."""
    dial_plans.add(options, join)
    if options.faults and options.nodes > 1 and options.dial_freeze_s is None:
        _freeze_probes(options)
    if options.has("switches", "moods") and not options.probe_freezes:
        _move(options)
    if options.nodes == 1:
        _move_under_calls(options, join)


def _move_under_calls(options: Options, join: Callable[..., None]) -> None:
    """One world of four has a receiver that fails slowly, and is moved while it is called."""
    chance = Seed(options.seed).stream("moves under calls")
    if chance.random() >= 1 / 4:
        return
    at = chance.uniform(1.0, options.storm_s * 0.5)
    join(options, MOVING, 1, Mood("errors", answer_s=ANSWER_S), policy=MOVED)
    options.publishes = sorted([*options.publishes, (at, MOVING, "document.signed", ENOUGH)])
    moved = Order(at + chance.uniform(0.5, ANSWER_S[0]), "move", len(options.customers) - 1)
    options.orders = sorted([*options.orders, moved], key=lambda order: order.at)


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
