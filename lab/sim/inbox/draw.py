"""A world of both halves from one seed: the sender's options, and what is and befalls at the receiver's.

What was added later is drawn apart, so that older seeds tell their stories on.
"""

from __future__ import annotations

import random
from typing import Any

from msgspec import structs

from lab.sim import orders, swarm
from lab.sim.entropy import Seed
from lab.sim.inbox.plan import SHARE, Act, Given, Plan, Temper, draw_plan
from lab.sim.inbox.standstills import stand_still
from lab.sim.inbox.stories import ONE_WAY, numbers
from lab.sim.orders import Blow
from lab.sim.policies import SHORT
from lab.sim.swarm import Customer, Options
from surehook.core.workflow.decide import Order

UNDO_SHARE = 0.3
CROWD_SHARE = 0.25
LAST_MOMENT_SHARE = 0.3
DECLARED = {
    "document.viewed": {"viewed": "sent"},
    "document.signed": {"signed": "sent"},
    "document.completed": {"completed": "voided"},
}
# Schedules that end within a world's life, and breakers that are soon asked again.
SOON = {"window": 60, "failure_ratio": 0.4, "calls": 8, "probe_after": 20}
POLICIES: tuple[Any, ...] = (
    {"profile": "standard", **SHORT, "schedule": {"fixed": [1, 3, 9, 20, 40]}, "breaker": SOON},
    {"profile": "standard", **SHORT, "schedule": {"fixed": [2, 4]}, "jitter": None, "breaker": None},
    {
        "profile": "standard", **SHORT, "schedule": {"fixed": [1, 5, 10, 20]},
        "breaker": {"window": 30, "failure_ratio": 0.4, "calls": 4, "probe_after": 10},
    },
    {"profile": "yousign", "schedule": {"fixed": [2, 6, 30]}, "breaker": SOON},
    {
        "profile": "insigner", "schedule": {"fixed": [1, 2, 5, 10]},
        "timeouts": {"first": 3, "retry": 3, "connect": 3}, "auto_disable": {"consecutive_failures": 6},
    },
    {"profile": "webhooks_uno", "schedule": {"wait_factor": {"factor": 50, "retries": 1}}, "jitter": None},
    {
        "profile": "standard", **SHORT, "schedule": {"fixed": [1]}, "on_exhausted": "drop", "jitter": None, "breaker": SOON,
    },
)  # fmt: skip


def draw(seed: int | str) -> tuple[Options, Plan]:
    """The world of a seed."""
    chance = Seed(seed).stream("inbox swarm")
    storm_s = chance.choice((8.0, 12.0, 20.0, 45.0))
    plan = draw_plan(chance, storm_s)
    _crowd(Seed(seed).stream("crowd"), plan)
    _ways_out(Seed(seed).stream("ways out"), plan, storm_s)
    _rejections(Seed(seed).stream("rejections"), plan, storm_s)
    _relapses(Seed(seed).stream("relapses"), plan)
    _at_the_last_moment(Seed(seed).stream("last moment"), plan, storm_s)
    is_quiet = stand_still(Seed(seed).stream("standstills"), plan, storm_s)
    return _options(seed, chance, plan, storm_s, is_quiet=is_quiet), plan


def _crowd(chance: random.Random, plan: Plan) -> None:
    """In a quarter of the worlds, many documents at once for workers whose batches are short: events of a document are in the
    batches of several, which put them off or carry them over. Drawn apart as well."""
    if chance.random() >= CROWD_SHARE:
        return
    stories = {f"doc_{number}": chance.choice(ONE_WAY) for number in range(3, 3 + chance.randint(3, 8))}
    begin = chance.choice(plan.given).at
    more = [
        Given(begin + chance.random() * 0.5, f"{document}/{number}", line.type, document, sequence, line, "1")
        for document, story in stories.items()
        for number, (line, sequence) in enumerate(zip(story, numbers(story), strict=True))
    ]
    plan.stories |= stories
    plan.given = sorted([*plan.given, *more], key=lambda one: (one.at, one.key))
    plan.workers, plan.rules = 3, structs.replace(plan.rules, batch_s=0.02, batch=chance.choice((5, 20, 64)))
    # A document is busy until the answer to the commit is there.
    plan.database.late_s = max(plan.database.late_s, chance.choice((0.02, 0.2)))


def _ways_out(chance: random.Random, plan: Plan, storm_s: float) -> None:
    """Means that keep documents from being stuck; drawn apart, so that older seeds tell their stories on."""
    plan.narrow = chance.random() < 0.5
    if plan.order.mode == "strict" and chance.random() < 0.3:
        plan.order = Order(wait_s=chance.choice((2.0, 8.0, 25.0)), count=plan.order.count)
    if "acts" in plan.faults and not plan.exact:
        plan.acts += [
            Act(chance.uniform(0, storm_s), "release", {"document": chance.choice(list(plan.stories))})
            for _ in range(chance.randint(1, 5))
        ]
        plan.acts.sort(key=lambda act: act.at)


def _rejections(chance: random.Random, plan: Plan, storm_s: float) -> None:
    """Moves that people reject, and that are undone then; drawn apart as well."""
    if not plan.faults or chance.random() >= UNDO_SHARE:
        return
    plan.undo = True
    plan.rejected = DECLARED if chance.random() < 0.5 else {}
    for one in plan.given:
        for wait_s in (chance.uniform(0.1, 2.0), chance.uniform(2.0, 15.0)):
            if one.line is not None:
                plan.acts.append(Act(min(one.at + wait_s, storm_s), "decide"))
    plan.acts += [
        Act(chance.uniform(0, storm_s), "replay", {"state": "rejected"}) for _ in range(chance.randint(0, 2))
    ]
    plan.acts.sort(key=lambda act: act.at)


def _relapses(chance: random.Random, plan: Plan) -> None:
    """In a third of the worlds, events of documents fail once, and those that let them go on then fail as they are called
    again."""
    if chance.random() < 0.66:
        return
    kinds: tuple[tuple[Temper, int], ...] = (("fails", 1), ("relapses", 2))
    for one in plan.given:
        if one.line is not None:
            plan.tempers.setdefault(one.key, chance.choice(kinds))


def _at_the_last_moment(chance: random.Random, plan: Plan, storm_s: float) -> None:
    """In a third of the worlds whose waits end, the first event of a document comes just before those that wait for it have
    waited enough, and a process that may have claimed it ends or stands still."""
    if plan.order.wait_s is None or plan.patient or chance.random() >= LAST_MOMENT_SHARE:
        return
    document = chance.choice(list(plan.stories))
    first, *others = sorted(
        (one for one in plan.given if one.document == document and one.sequence),
        key=lambda one: one.sequence or 0,
    )
    at = min(one.at for one in others) + plan.order.wait_s - chance.uniform(0.05, 0.5)
    if at > storm_s - 0.5:
        return
    plan.given = sorted(
        [*(one for one in plan.given if one is not first), structs.replace(first, at=at)],
        key=lambda one: (one.at, one.key),
    )
    which = chance.randrange(plan.processes)
    ends, stands = (
        Blow(at, "death", which, call="call hold"),
        Blow(at + chance.uniform(0, 0.1), "freeze", which, seconds=8.0),
    )
    plan.blows.append(ends if chance.random() < 0.5 else stands)
    plan.blows.sort(key=lambda blow: blow.at)


def _options(
    seed: int | str, chance: random.Random, plan: Plan, storm_s: float, *, is_quiet: bool
) -> Options:
    quiet = chance.random() < 0.2 or is_quiet
    faults = () if quiet else tuple(fault for fault in swarm.FAULTS if chance.random() < SHARE)
    moods = [(0.0, swarm.mood(chance, faults))]
    while "moods" in faults and chance.random() < 0.5:
        moods.append((chance.uniform(0, storm_s), swarm.mood(chance, faults)))
    dns = chance.uniform(0, storm_s)
    customer = Customer(
        tenant="t1",
        host="inbox.example",
        address="198.51.100.1",
        port=443 if chance.random() < 0.7 else 80,
        policy=chance.choice(POLICIES),
        event_types=("*",),
        moods=sorted(moods, key=lambda entry: entry[0]),
        dns_trouble=[(dns, dns + chance.uniform(1, 30))] if "dns" in faults else [],
    )
    switches = ("pause", "pause", "activate", "activate") if "switches" in faults else ()
    requests = ("resend", "resend", "cancel", "replay") if "requests" in faults else ()
    befalling = [
        orders.Order(chance.uniform(0, storm_s), what, 0 if what in switches or what == "replay" else at)
        for at, what in enumerate(chance.sample([*switches, *requests], chance.randint(0, 4)))
    ] if switches and requests else []  # fmt: skip
    blows = swarm.blows(chance, faults, storm_s, [one.at for one in plan.given])
    return Options(
        seed=seed,
        faults=faults,
        nodes=1 if chance.random() < 0.7 else 2,
        customers=[customer],
        publishes=[(one.at, "t1", one.type, 1) for one in plan.given],
        orders=sorted(befalling, key=lambda order: order.at),
        blows=sorted([_near(blow, storm_s) for blow in blows], key=lambda blow: blow.at),
        storm_s=storm_s,
        calm_s=700.0,
        engine=swarm.engine(chance),
        late_s=(0.0, chance.choice((0.0, 0.05, 0.4)) if "storage_late" in faults else 0.001),
        stall_share=0.01 if "storage_late" in faults else 0.0,
        slow=swarm.slow(Seed(seed).stream("slow calls")) if "storage_late" in faults else (),
        unavailable_share=chance.choice((0.02, 0.1, 0.3)) if "storage_away" in faults else 0.0,
        unknown_share=chance.choice((0.05, 0.2)) if "storage_unknown" in faults else 0.0,
        dns_fail_share=0.05 if "dns" in faults else 0.0,
        clock_offset_ms=chance.randint(-100_000, 100_000) if "skew" in faults else 0,
        clock_drift_ppm=chance.uniform(-300, 300) if "skew" in faults else 0.0,
    )


def _near(blow: Blow, storm_s: float) -> Blow:
    """Nothing strikes in the moment in which all is mended. The sender's clock is set by ten minutes at most, which a retry that
    is held in memory then waits longer."""
    at = min(blow.at, storm_s - 0.1)
    if blow.what != "step":
        return structs.replace(blow, at=at)
    return Blow(at, "step", blow.which, seconds=max(-600.0, min(600.0, blow.seconds)))
