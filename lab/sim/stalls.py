"""Commits that take seconds: a disk that stands still, a standby that is away, or one node that is far from its ledger.

Nothing else goes wrong in such a world, and its receivers answer at once. One node accepts, another sends, so that what
is ready lies in the ledger until it is claimed, and some of it becomes visible seconds after the instant it is due for. All
the same it is claimed within `CLAIMED_S` of its commit, times not counted in which commits stand still. In some of them a
worker freezes and is evicted: what it held is claimed as soon after that.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lab.sim import owed
from lab.sim.entropy import Seed
from lab.sim.orders import Blow
from lab.sim.receivers import Mood

if TYPE_CHECKING:
    from lab.sim.world import World

TENANT = "stalled"
CLAIMED_S = 2.0
REST_S = 1.2  # without a publish before each of them: longer than from one look back to the next
APART_S = (4.0, 9.0)  # from the end of one to the next
FAR = 1_000_000  # entries that are gone: looks back are fifteen seconds apart
MOST_SPANS = 5
FROZEN_S = 30.0  # a worker with rows in hand: they are freed by whoever sees first that its lease is over
BURST = 30  # publishes in the seconds before
BURST_S = 4.0
SLOW = Mood(answer_s=(0.8, 1.4))  # of receivers beside such a worker, so that it has rows in hand


class Stalls(Struct, frozen=True):
    """Times at which commits stand still, as (instant, seconds), and how much a look back over everything walks over."""

    spans: tuple[tuple[float, float], ...]
    publishes: tuple[tuple[float, str, str, int], ...]
    slow: tuple[str, ...]  # calls that are late by themselves
    gone: int
    frozen: tuple[float, ...]  # when a worker stands still
    tells: bool  # nodes tell of what they make ready late; those of a version before do not

    def well_s(self, begin: float, end: float) -> float:
        """Part of this time in which commits went through."""
        stood = (min(end, at + long) - max(begin, at) for at, long in self.spans)
        return end - begin - sum(max(0.0, part) for part in stood)


def draw(chance: random.Random) -> Stalls | None:
    """One of four worlds of several machines is one."""
    if chance.random() >= 1 / 4:
        return None
    at, spans = chance.uniform(2.0, 6.0), []
    for _ in range(chance.choice((0, 1, 3, MOST_SPANS, MOST_SPANS))):
        spans.append((at, 6.0))
        at += 6.0 + chance.uniform(*APART_S)
    over = at + 5.0
    instants = [at for at in (chance.uniform(1.0, over) for _ in range(60)) if not _is_just_before(at, spans)]
    # A claim that looks back over everything is what one standstill must catch: after a rest, a publish calls for one. In
    # the next one claims begin by themselves, after publishes whose commits they do not see.
    instants += [begin - chance.uniform(0.004, 0.016) for begin, _ in spans[::2]]
    # Where commits stand still most often, nobody tells, as of a dead writer: what is late is found by who saw its commit under
    # way, and where accepts are late before they begin, by looks back alone.
    tells = len(spans) < MOST_SPANS
    often = chance.choice((0, 2, 3)) if tells else 0
    frozen = tuple(over + 3.0 + number * (FROZEN_S + 15.0) for number in range(often))
    bursts = [at - chance.uniform(0.0, BURST_S) for at in frozen for _ in range(BURST)]
    publishes = sorted((instant, TENANT, "document.signed", 1) for instant in [*instants, *bursts])
    slow = ("accept",) if not spans or chance.random() < 0.6 else ()
    gone = chance.choice((0, 10_000)) if slow and not tells else FAR
    return Stalls(tuple(spans), tuple(publishes), slow, gone, frozen, tells)


def _is_just_before(at: float, spans: list[tuple[float, float]]) -> bool:
    return any(begin - REST_S < at < begin for begin, _ in spans)


def add(options: Any, join: Any) -> None:
    """Make a world of several machines one of these, if its seed says so. In some others a node that begins again hears
    late what the ledger's clock shows."""
    if options.nodes == 1:
        return
    if "storage_late" in options.faults and Seed(options.seed).stream("late time").random() < 0.3:
        options.slow += ("time", "enter")
    stalls = draw(Seed(options.seed).stream("stalls"))
    if stalls is None:
        return
    owed.be_calm(options)
    join(options, TENANT, 2, SLOW if stalls.frozen else None)
    options.roles = ("api", "worker", "worker", "api")[: options.nodes]
    options.publishes = list(stalls.publishes)
    options.slow = stalls.slow
    options.storm_s = stalls.publishes[-1][0] + 10.0
    if options.nodes > 2:  # one is left that sends
        options.blows = [Blow(at, "freeze", 1, seconds=FROZEN_S) for at in stalls.frozen]
        options.storm_s = max([options.storm_s, *(at + FROZEN_S + 1.0 for at in stalls.frozen)])
    options.engine.update(
        slots_first=64, endpoint_slots=32, memory_deliveries=5_000, endpoint_share=1_000, claim_rows=100,
        waiting_events=1_000,
    )  # fmt: skip
    options.health, options.stalls = None, stalls


async def befall(world: World) -> None:
    """Let commits stand still as the plan says. Every other time a claim is the first to wait, which is rare by chance: one is
    under way for some milliseconds of a second."""
    stalls = world.options.stalls
    for number, (at, long) in enumerate(() if stalls is None else stalls.spans):
        await asyncio.sleep(max(0.0, world.began + at - world.loop.time()))
        world.trace.note("commits-stand", f"{long:.0f} s")
        if number % 2:
            world.storage.claim_stands_until, world.storage.stands_until = 0.0, world.began + at + long
        else:
            world.storage.claim_stands_until = world.began + at + long
