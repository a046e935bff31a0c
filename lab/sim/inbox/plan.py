"""The receiver's half of a world: what is there, and what befalls it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from lab.sim.inbox.store import MOMENTS, Faults
from lab.sim.inbox.stories import ALL, ONE_WAY, Line, Story, numbers
from lab.sim.orders import Blow
from surehook.core.workflow.decide import Order
from surehook.inbox.backoff import Backoff
from surehook.inbox.rules import Rules

FAULTS = (
    "kills", "power", "deaths", "stops", "freezes", "steps", "late", "away", "contended", "unknown", "skew", "tempers", "echoes",
    "rotations", "versions", "acts",
)  # fmt: skip
SHARE = 0.35  # of worlds that have each fault
DAY_S = 86_400.0  # longer than any world: a buffer that waits so long gives nothing up

INVOICES = ("invoice.paid", "invoice.due")  # followed by no workflow; the second waits for a person's word

Temper = Literal["fails", "later", "refuses", "breaks", "ignores", "half", "relapses"]
# fails    so many times, before or after it wrote
# later    asks so many times for later
# refuses  for good, until it is mended
# breaks   always, until it is mended
# ignores  for good
# half     so many times: the first of two handlers is done, and the second fails
# relapses not at first, but as it is called again, since what it had let go on has failed


class Given(Struct, frozen=True):
    """One event to be published. `key` names it for life; `line` is None for what no workflow follows."""

    at: float
    key: str
    type: str
    document: str | None
    sequence: int | None
    line: Line | None
    schema: str


class Rotation(Struct, frozen=True):
    """The sender's secret is rotated, the old one signs on for `overlap_s`, the receiver learns the new one after `adopt_s`."""

    at: float
    overlap_s: int
    adopt_s: float


class Echo(Struct, frozen=True):
    """A middlebox says a request again: the one at `which` of those it has seen, so many at once, with other bytes or not."""

    at: float
    which: float
    times: int
    tampered: bool


class Act(Struct, frozen=True):
    """Acts of people at the inbox: `decide` on what waits for that, replay what fits, or `release` a document."""

    at: float
    what: str
    wanted: dict[str, str] = {}


class Plan(Struct):
    """The receiver's half of a world. Instants are seconds from its beginning."""

    faults: tuple[str, ...]
    processes: int
    workers: int
    rules: Rules
    backoff: Backoff
    order: Order
    stories: dict[str, Story]
    given: list[Given]
    tempers: dict[str, tuple[Temper, int]]
    database: Faults
    offsets_ms: list[int]
    blows: list[Blow]
    rotations: list[Rotation]
    echoes: list[Echo]
    acts: list[Act]
    # `follow` names the events that move alone; information with a number counts nevertheless.
    narrow: bool = False
    undo: bool = False  # moves wait for a person's word, and some are rejected and undone
    rejected: dict[str, dict[str, str]] = {}  # where documents go then, as their table says

    @property
    def exact(self) -> bool:
        """True where a document's journal has to be its story: no number is ever given up."""
        return self.order.then != "skip" or self.patient

    @property
    def patient(self) -> bool:
        """True where no wait ends within the life of the world."""
        return (self.order.wait_s or 0) > DAY_S / 2


def draw_plan(chance: random.Random, storm_s: float) -> Plan:
    quiet = chance.random() < 0.1
    faults = () if quiet else tuple(fault for fault in FAULTS if chance.random() < SHARE)
    order = _order(chance)
    stories = {
        f"doc_{number}": chance.choice(ONE_WAY if order.then == "skip" else ALL)
        for number in range(chance.randint(1, 3))
    }
    given = _given(chance, faults, stories, storm_s)
    processes = chance.choice((1, 1, 2, 3))
    busy = [one.at for one in given]
    return Plan(
        faults=faults,
        processes=processes,
        workers=chance.choice((1, 2, 3)) if processes < 3 else chance.choice((1, 2)),
        rules=Rules(
            batch=chance.choice((1, 2, 5, 64)),
            lease_ms=chance.choice((300, 1_000, 5_000)),
            idle_s=chance.choice((5.0, 10.0, 30.0)),
        ),
        backoff=Backoff(first_s=1.0, factor=2.0, max_s=10.0, attempts=chance.choice((3, 5, 10))),
        order=order,
        stories=stories,
        given=given,
        tempers=_tempers(chance, given) if "tempers" in faults else {},
        database=Faults(
            late_s=chance.choice((0.02, 0.5)) if "late" in faults else 0.001,
            stall_share=0.05 if "late" in faults else 0.0,
            away_share=chance.choice((0.05, 0.3)) if "away" in faults else 0.0,
            contended_share=0.1 if "contended" in faults else 0.0,
            unknown_share=chance.choice((0.05, 0.3)) if "unknown" in faults else 0.0,
            dies={},
        ),
        offsets_ms=[chance.randint(-100_000, 100_000) if "skew" in faults else 0 for _ in range(processes)],
        blows=_blows(chance, faults, storm_s, busy),
        rotations=[
            Rotation(chance.uniform(0, storm_s), chance.choice((3, 10, 86_400)), chance.choice((0.5, 5.0, 40.0)))
            for _ in range(chance.randint(1, 2) if "rotations" in faults else 0)
        ],
        echoes=[
            Echo(chance.choice(busy) + chance.expovariate(0.5), chance.random(), chance.randint(1, 3), chance.random() < 0.2)
            for _ in range(chance.randint(4, 15) if "echoes" in faults else 0)
        ],
        acts=_acts(chance, storm_s) if "acts" in faults else [],
    )  # fmt: skip


def _order(chance: random.Random) -> Order:
    kind = chance.choice(("strict", "strict", "patient", "skip", "refuse"))
    count = chance.choice((2, 3, *(64,) * 4))
    if kind == "strict":
        return Order(mode="strict", count=count)
    if kind == "patient":
        return Order(mode="buffer", wait_s=DAY_S, then="skip")
    return Order(
        mode="buffer",
        wait_s=chance.choice((2.0, 8.0, 25.0)),
        then="skip" if kind == "skip" else "refuse",
        count=count,
    )


def _given(
    chance: random.Random, faults: tuple[str, ...], stories: dict[str, Story], storm_s: float
) -> list[Given]:
    """Events in order or shuffled, in a burst or over the storm."""
    given = []

    def schema() -> str:
        return "2" if "versions" in faults and chance.random() < 0.3 else "1"

    for document, story in stories.items():
        begin = chance.uniform(0, storm_s * 0.5)
        spread = chance.choice((0.0, 0.3, storm_s * 0.5))
        instants = [begin + chance.random() * spread for _ in story]
        if chance.random() < 0.5:
            instants.sort()
        for number, (at, line, sequence) in enumerate(zip(instants, story, numbers(story), strict=True)):
            key = f"{document}/{number}"
            given.append(Given(at, key, line.type, document, sequence, line, schema()))
    for number in range(chance.randint(0, 5)):
        at = chance.uniform(0, storm_s)
        given.append(Given(at, f"invoice/{number}", chance.choice(INVOICES), None, None, None, schema()))
    return sorted(given, key=lambda one: (one.at, one.key))


def _tempers(chance: random.Random, given: list[Given]) -> dict[str, tuple[Temper, int]]:
    found: dict[str, tuple[Temper, int]] = {}
    for one in given:
        kinds: list[Temper] = ["fails", "fails", "later", "refuses", "breaks"]
        if one.line is None:
            kinds += ["ignores", "half", "half"]
        if chance.random() < 0.35:
            found[one.key] = (chance.choice(kinds), chance.randint(1, 3))
    return found


def _blows(chance: random.Random, faults: tuple[str, ...], storm_s: float, busy: list[float]) -> list[Blow]:
    """Two thirds of them strike soon after something was published."""
    blows: list[Blow] = []

    def at() -> float:
        near = chance.choice(busy) + chance.uniform(0, 1.5)
        return min(near if chance.random() < 0.66 else storm_s * chance.random(), storm_s - 0.1)

    def strike(fault: str, what: str, least: int, most: int, **details: Callable[[], Any]) -> None:
        for _ in range(chance.randint(least, most) if fault in faults else 0):
            made = {key: value() for key, value in details.items()}
            blows.append(Blow(at(), what, chance.randrange(3), **made))

    strike("kills", "kill", 1, 5, steps=lambda: chance.randrange(120))
    strike("power", "power", 1, 2, steps=lambda: chance.randrange(120))
    strike(
        "deaths", "death", 2, 8,
        call=lambda: chance.choice(MOMENTS), steps=lambda: chance.choice((0, 0, 0, 1, 4)),
    )  # fmt: skip
    strike("stops", "stop", 1, 3, seconds=lambda: chance.choice((0.1, 1.0, 10.0)))
    strike("freezes", "freeze", 1, 3, seconds=lambda: chance.choice((0.5, 2.0, 8.0)))
    strike(
        "steps", "step", 1, 2,
        seconds=lambda: chance.choice((-1, 1)) * chance.choice((1.0, 10.0, 120.0, 400.0)),
    )  # fmt: skip
    return sorted(blows, key=lambda blow: blow.at)


def _acts(chance: random.Random, storm_s: float) -> list[Act]:
    wanted = (
        {"state": "dead"}, {"state": "rejected"}, {"state": "finalized"}, {"state": "ignored"}, {"type": "document.*"},
        {"type": "invoice.*"},
    )  # fmt: skip
    acts = [
        Act(chance.uniform(1, storm_s), "replay", chance.choice(wanted)) for _ in range(chance.randint(1, 4))
    ]
    acts += [Act(chance.uniform(1, storm_s), "decide") for _ in range(chance.randint(0, 2))]
    return sorted(acts, key=lambda act: act.at)
