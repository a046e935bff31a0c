"""Worlds in which time stands still for an inbox while several waits of one document end.

What was in time for one of them may have come too late for another, and be in the hands of whoever ended. Drawn apart, in worlds
that give numbers up: there the order in which time passes and events are handled is the difference.
"""

from __future__ import annotations

import random

from msgspec import structs

from lab.sim.inbox.plan import Given, Plan
from lab.sim.inbox.store import Faults
from lab.sim.inbox.stories import AGREED
from lab.sim.orders import Blow

SHARE = 0.5
SPARED = ("tempers", "echoes", "versions")
WAIT_S, LEASE_MS = 2.0, 3_000
LONGEST_S = 3 * WAIT_S  # of such a story
DOCUMENT = "doc_99"


def stand_still(chance: random.Random, plan: Plan, storm_s: float) -> bool:
    """Add a document with one of two stories to the plan, in half of the worlds that give numbers up; whether it has one. Nothing
    else strikes their processes: what comes in time is a matter of instants."""
    if plan.exact or not plan.order.skips or chance.random() >= SHARE:
        return False
    plan.faults = tuple(one for one in plan.faults if one in SPARED)
    plan.blows, plan.database = [], Faults()
    plan.offsets_ms = [0] * plan.processes
    plan.order = structs.replace(plan.order, wait_s=WAIT_S, count=64)
    plan.stories[DOCUMENT] = AGREED
    begin = chance.uniform(0.1, storm_s - LONGEST_S - 0.5)
    draw = _let_go_together if chance.random() < 0.5 else _two_are_over
    instants = draw(chance, plan, begin)
    plan.given += [
        Given(at, f"{DOCUMENT}/{number}", line.type, DOCUMENT, number + 1, line, "1")
        for number, (at, line) in enumerate(zip(instants, AGREED, strict=True))
    ]
    plan.given.sort(key=lambda one: (one.at, one.key))
    plan.blows.sort(key=lambda blow: blow.at)
    return True


def _let_go_together(chance: random.Random, plan: Plan, begin: float) -> list[float]:
    """All wait for the first; as they are let go, their process stands still for longer than each waits for those before it."""
    plan.rules = structs.replace(plan.rules, batch=1, lease_ms=300)
    plan.processes, plan.offsets_ms = 1, [0]
    plan.blows.append(Blow(begin + WAIT_S * 0.9, "halt", call="answer wake", seconds=1.5 * WAIT_S))
    return [begin + LONGEST_S, *(begin + chance.random() * 0.3 for _ in AGREED[1:])]


def _two_are_over(chance: random.Random, plan: Plan, begin: float) -> list[float]:
    """A process ends with the last before the wait for the first is over, so that time stands still for a lease. Until then the
    wait for the third is over as well: the fourth came in time for that one, and a process ended with it."""
    plan.rules = structs.replace(plan.rules, lease_ms=LEASE_MS)
    plan.processes, plan.offsets_ms, plan.tempers = 3, [0, 0, 0], {}  # what fails would hold time up
    ends = begin + WAIT_S * 0.8
    in_time = begin + WAIT_S * chance.uniform(1.1, 1.25)
    plan.blows += [Blow(at - 0.05, "death", call="call hold") for at in (ends, in_time)]
    late = begin + LONGEST_S
    return [late, begin, late, in_time, begin + WAIT_S * 0.3, late, ends]
