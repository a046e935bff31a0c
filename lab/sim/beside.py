"""A tenant that rushes beside one that is calm, and nothing else goes wrong: whatever the calm one waits for is the other's
doing.

At the door commits take long, and the one that rushes always has one under way. A calm tenant has a writer of its own then, so
what it publishes begins to be written at once. In the lane a tenant's many slow endpoints are called at one instant, those of
several tenants are called one after another, or thirty tenants have a receiver each that never answers; a calm one finds a slot
all the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lab.sim import crowd, owed
from lab.sim.entropy import Seed
from lab.sim.receivers import Mood

if TYPE_CHECKING:
    from lab.sim.swarm import Options

RUSH, CALM = "rush", "calm"
SHARE = 1 / 8  # of the worlds of one machine in which nobody else presses
HANGING_SHARE = 1 / 12  # … and of the others
HANGING = 30  # tenants
# From a calm publish until it begins to be written; a commit here takes more than twice as long.
BEGUN_S = 0.05
SLOT_S = 1.0  # from a calm tenant's commit to its arrival; the slow ones here take 1.7
AT_ONCE = {CALM: BEGUN_S}
BURST_S = 0.8  # between two bursts: a tenant that rushes is known as one for a second
BURSTS = 6

_Publishes = list[tuple[float, str, str, int]]
# Slow, and not told apart for it: all of them stay in the first lane.
PATIENT: dict[str, Any] = {
    "profile": "standard", "timeouts": {"first": 2, "retry": 20, "connect": 2}, "adaptive": False,
}  # fmt: skip

# Found to hang by their first calls, and then tried in the patient lane.
RETRIED_SOON: dict[str, Any] = {
    "profile": "standard", "timeouts": {"first": 1, "retry": 8, "connect": 2}, "schedule": {"fixed": [1] * 6}, "jitter": None,
    "breaker": None,
}  # fmt: skip
FIRST_PATIENT: dict[str, Any] = {"profile": "standard", "timeouts": {"first": 5, "retry": 8, "connect": 2}}


def add(options: Options, join: Callable[..., None]) -> None:
    """Make a world one of these, if its seed says so."""
    chance = Seed(options.seed).stream("beside")
    pressed = {crowd.BUSY, owed.OWED} & {customer.tenant for customer in options.customers}
    if options.nodes > 1 or options.broker is not None or pressed:
        return
    hanging = Seed(options.seed).stream("beside hanging")
    is_beside = chance.random() < SHARE
    # Worlds in which nothing goes wrong as it is stay so.
    if not is_beside and (not options.faults or hanging.random() >= HANGING_SHARE):
        return
    owed.be_calm(options)
    options.backlog = None
    options.engine.update(memory_deliveries=5_000, memory_bytes=4 << 20, waiting_events=5_000)
    begin = chance.uniform(8.0, 12.0)  # everything has started
    if not is_beside:
        options.publishes = _hanging(options, join, begin, hanging)
    elif chance.random() < 0.5:
        options.publishes = _door(options, join, begin, chance)
    else:
        options.publishes = _lane(options, join, begin, chance)


def _door(options: Options, join: Callable[..., None], begin: float, chance: random.Random) -> _Publishes:
    join(options, RUSH, 2)
    join(options, CALM, 1)
    options.late_s = (0.06, 0.14)  # to the ledger, and as long back
    options.engine.update(accept_rows=64, turn_cost=8, large_cost=crowd.ONE_LINE, waiting_deliveries=100_000)
    bursts = [begin + number * BURST_S for number in range(BURSTS)]
    publishes = [
        (at + chance.random() * 0.02, RUSH, "document.signed", 20) for at in bursts for _ in range(12)
    ]
    # So far apart that none waits for the one before.
    publishes += [(at + chance.uniform(0.2, 0.5), CALM, "document.signed", 1) for at in bursts]
    return sorted(publishes)


def _lane(options: Options, join: Callable[..., None], begin: float, chance: random.Random) -> _Publishes:
    """One tenant rushes, or five do, each once those before have taken what they may."""
    rushing = tuple(f"{RUSH}{number}" for number in range(5)) if chance.random() < 0.75 else (RUSH,)
    for tenant in rushing:
        join(options, tenant, 40 // len(rushing), Mood(answer_s=(1.7, 1.75)), policy=PATIENT)
    join(options, CALM, 1)
    options.engine.update(slots_first=16, slots_retry=4, endpoint_slots=4)
    publishes = [
        (begin + 0.1 * place + chance.random() * 0.05, tenant, "document.signed", 1)
        for place, tenant in enumerate(rushing)
        for _ in range(4)
    ]
    over = begin + 0.1 * len(rushing) + 0.1
    # While the first of them are under way, and later.
    publishes += [(over + chance.random() * 0.4, CALM, "document.signed", 1) for _ in range(4)]
    publishes += [(over + chance.random() * 8, CALM, "document.signed", 1) for _ in range(8)]
    return sorted(publishes)


def _hanging(options: Options, join: Callable[..., None], begin: float, chance: random.Random) -> _Publishes:
    """Each of many tenants is owed little, and never answered. The calm one's calls are patient: they have their lane."""
    hanging = [f"{RUSH}{number}" for number in range(HANGING)]
    for tenant in hanging:
        join(options, tenant, 1, Mood("hanging"), policy=RETRIED_SOON)
    join(options, CALM, 1, policy=FIRST_PATIENT)
    options.engine.update(slots_first=64, slots_retry=8, endpoint_slots=4)
    publishes = [(begin + chance.random(), tenant, "document.signed", 1) for tenant in hanging]
    publishes += [(begin + chance.uniform(4.5, 20.0), CALM, "document.signed", 1) for _ in range(12)]
    return sorted(publishes)
