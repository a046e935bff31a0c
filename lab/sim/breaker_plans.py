"""Worlds about whom a breaker holds and what it counts: a policy that loses its breaker while that is open, a clock
that jumps ahead and back while calls go on, and nodes that decide and die before they have written it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lab.sim import crowd
from lab.sim.entropy import Seed
from lab.sim.orders import Blow, Order
from lab.sim.receivers import Mood

if TYPE_CHECKING:
    from lab.sim.swarm import Options

STEADY = "steady"  # the tenant of whose calls no more than a few lie in any window
WINDOW_S = 5.0
EVERY_S = 0.5  # between two of its publishes
ENOUGH = 6  # failures to open a breaker of three calls
_TIMEOUTS = {"first": 1, "retry": 4, "connect": 2}
# What fails once is asked again after the storm, so that every call is one publish. Ten lie in a window.
COUNTED: dict[str, Any] = {
    "profile": "standard", "timeouts": _TIMEOUTS, "schedule": {"fixed": [300]}, "jitter": None,
    "breaker": {"window": WINDOW_S, "failure_ratio": 0.4, "calls": 20, "probe_after": 5},
}  # fmt: skip
HELD: dict[str, Any] = {
    "profile": "standard", "timeouts": _TIMEOUTS, "schedule": {"fixed": [2, 4, 8, 16, 32, 64]}, "jitter": None,
    "breaker": {"window": 60, "failure_ratio": 0.4, "calls": 3, "probe_after": 30},
}  # fmt: skip
HEALED = "healed"  # the tenant whose breaker closes within the storm
HEALS: dict[str, Any] = {**HELD, "breaker": {**HELD["breaker"], "probe_after": 2}}
RELEASED: dict[str, Any] = {**HELD, "breaker": None}
WINDOWS = {STEADY: WINDOW_S}  # of the breakers that are watched, by tenant


def jump(options: Options, *, join: Callable[..., None]) -> None:
    """Let the clock of a drawn world jump ahead and back beside a steady tenant that joins, and let nothing else set it: so
    what lies in a window by the clock lay in it in truth. Half of the worlds with such clocks, if they have no crowd: in
    the others they are set at will."""
    chance = Seed(options.seed).stream("jump")
    tenants = {customer.tenant for customer in options.customers}
    if options.nodes > 1 or not options.has("steps") or crowd.BUSY in tenants or chance.random() < 0.5:
        return
    # Its retries come after the storm even then; and a process that stood still for as long (one minute, two) would have what
    # it counted before in its window again.
    far = chance.choice((90.0, 150.0))
    ahead = chance.uniform(1.0, options.storm_s * 0.2)
    back = ahead + chance.uniform(1.5, 4.0)
    options.blows = [blow for blow in options.blows if blow.what != "step"]
    options.blows += [Blow(ahead, "step", seconds=far), Blow(back, "step", seconds=-far)]
    options.blows.sort(key=lambda blow: blow.at)
    count = int(options.storm_s / EVERY_S)
    steady = [(number * EVERY_S, STEADY, "document.signed", 1) for number in range(count)]
    options.publishes = sorted(options.publishes + steady)
    join(options, STEADY, 1, Mood("errors"), policy=COUNTED)


def release(options: Options) -> None:
    """Half of the worlds in which people switch have a receiver that answers nothing but errors, and somebody who takes its
    breaker away while that is open."""
    chance = Seed(options.seed).stream("release")
    if not options.has("switches") or options.probe_freezes or chance.random() < 0.5:
        return
    first = options.customers[0]
    first.policy, first.event_types, first.moods = HELD, ("*",), [(0.0, Mood("errors"))]
    options.publishes = sorted([*options.publishes, (1.0, first.tenant, "document.signed", ENOUGH)])
    at = chance.uniform(3.0, options.storm_s * 0.5)
    options.orders = sorted([*options.orders, Order(at, "release", 0)], key=lambda order: order.at)


def die(options: Options, *, join: Callable[..., None]) -> None:
    """Give half of the worlds that share health a receiver that heals within the storm, and let the node that has found so
    die as it is about to write it, and the others know."""
    chance = Seed(options.seed).stream("dies with a breaker")
    if options.health is None or options.probe_freezes or chance.random() < 0.5:
        return
    heals = options.storm_s * chance.uniform(0.1, 0.4)
    join(options, HEALED, 1, Mood("errors"), policy=HEALS)
    options.customers[-1].moods.append((heals, Mood()))
    options.publishes = sorted([*options.publishes, (1.0, HEALED, "document.signed", ENOUGH)])
    death = Blow(0.0, "ledger_death", seconds=1.0, call="before closing")
    options.blows = sorted([*options.blows, death], key=lambda blow: blow.at)
