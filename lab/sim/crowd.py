"""Many tenants at one door: one that publishes far more than the others, to many endpoints, under small bounds.

The door lets tenants take turns. So whoever waits meets few transactions of others until their own tenant has its turn,
however much of the busy tenant waits. That is counted here, in transactions, since time says nothing in a world whose
storage is late; and only where nothing else is being written: of several writers, one may be late alone.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import Any

from msgspec import Struct

from surehook.core.envelope import EventIn, digest_of

# Transactions of others between two turns of a tenant: two turns (some eight rows, in transactions of one or two events) of
# each of three others, and those that were run again.
PASSED_MOST = 60
FORGOTTEN_S = 20.0  # no process leaves a tenant that has something in its line without a turn for so long
ONE_LINE = 256  # a large cost that no event of these worlds reaches
BUSY = "busy"
QUIET = "quiet"


class Crowd(Struct, frozen=True):
    """Additions of a crowded world to the others."""

    endpoints: int  # of the busy tenant
    publishes: list[tuple[float, str, str, int]]
    engine: dict[str, Any]


def draw(chance: random.Random, storm_s: float) -> Crowd | None:
    """A third of the worlds are crowded."""
    if chance.random() < 0.67:
        return None
    publishes: list[tuple[float, str, str, int]] = []
    for _ in range(chance.randint(1, 2)):
        begin = chance.uniform(0, storm_s * 0.8)
        publishes += [(begin + chance.random() * 0.02, BUSY, "document.signed", 20) for _ in range(15)]
        publishes += [
            (begin + 0.02 + chance.random() * 0.2, QUIET, "document.signed", 1)
            for _ in range(chance.randint(1, 6))
        ]
    return Crowd(
        endpoints=chance.choice((1, 2, 6)),
        publishes=sorted(publishes),
        engine={
            "waiting_events": 1_000,
            "waiting_deliveries": chance.choice((50, 100_000)),
            "accept_rows": chance.choice((1, 2)),
            "accept_cost": chance.choice((4, 12, 2_000)),
            "large_cost": chance.choice((3, ONE_LINE)),
            "turn_cost": 8,
            "large_part": 100,  # rests that are long enough to meet something
            "slice_rows": chance.choice((1, 3, 1_100)),
        },
    )


class Waits(Struct):
    """An event that waits, and how many transactions of others went by since its tenant's last turn."""

    tenant: str
    came_at: float
    passed: int = 0


class Passing:
    """Watches how many transactions pass by those who wait, in a crowded world without large events."""

    def __init__(self, find: Any, engine: dict[str, Any], at_once: Mapping[str, float]) -> None:
        """`at_once`: by tenant, the seconds within which a publish begins to be written."""
        self._find = find
        self._at_once = at_once
        self._is_on = engine.get("large_cost") == ONE_LINE
        self._waiting: dict[str, dict[bytes, Waits]] = {}  # by process and digest
        self._turns: dict[tuple[str, str], float] = {}  # when a process last gave a tenant its turn
        self._under_way: Counter[str] = Counter()  # by process, batches that it is to write
        # By process and tenant, such that have something of the tenant.
        self._own: Counter[tuple[str, str]] = Counter()
        # What was asked before: again, it may come when nobody rushes any more.
        self._known: set[bytes] = set()

    def came(self, process: str, event: EventIn) -> bytes:
        digest = digest_of(event)
        came_at = inf if digest in self._known else asyncio.get_running_loop().time()
        self._known.add(digest)
        self._waiting.setdefault(process, {})[digest] = Waits(event.tenant, came_at)
        return digest

    def went(self, process: str, digest: bytes) -> None:
        self._waiting.get(process, {}).pop(digest, None)

    def forgotten(self, process: str, tenant: str, *, runs_since: float) -> bool:
        """True where a process has given a tenant no turn for a long time, all of which it ran."""
        last = max(self._turns.get((process, tenant), -inf), runs_since)
        return asyncio.get_running_loop().time() - last > FORGOTTEN_S

    @contextmanager
    def trying(self, process: str, batch: Any) -> Iterator[None]:
        """A process is to write a batch: those in it have their turn, and storage that is away is not their line's doing."""
        now = asyncio.get_running_loop().time()
        self._turns.update({(process, incoming.event.tenant): now for incoming in batch})
        self._begun(process, batch, now)
        owners = [(process, tenant) for tenant in {incoming.event.tenant for incoming in batch}]
        self._under_way[process] += 1
        self._own.update(owners)
        try:
            yield
        finally:
            self._under_way[process] -= 1
            self._own.subtract(owners)
        self._ended(process, batch)

    def _ended(self, process: str, batch: Any) -> None:
        """Until now the tenants of this batch have waited for what was their own."""
        now, served = asyncio.get_running_loop().time(), {incoming.event.tenant for incoming in batch}
        for waits in self._waiting.get(process, {}).values():
            if waits.tenant in served and waits.came_at < now:
                waits.came_at = now

    def _begun(self, process: str, batch: Any, now: float) -> None:
        """A calm tenant does not wait until what somebody else brought is written."""
        waiting = self._waiting.get(process, {})
        for incoming in batch:
            waits = waiting.get(incoming.event.digest)
            if self._own[process, incoming.event.tenant]:
                continue  # it waits for what is its own
            if waits is not None and now - waits.came_at > self._at_once.get(waits.tenant, inf):
                waited_s = now - waits.came_at
                self._find(f"a publish of a calm tenant waited {waited_s:.2f} s for the writing of others")

    def wrote(self, process: str, batch: Any) -> None:
        """A process has written a batch."""
        waiting = self._waiting.get(process)
        if not waiting or not self._is_on:
            return
        for incoming in batch:
            waiting.pop(incoming.event.digest, None)
        if self._under_way[process] > 1:
            return
        served = {incoming.event.tenant for incoming in batch}
        for waits in waiting.values():
            waits.passed = 0 if waits.tenant in served else waits.passed + 1
            if waits.passed == PASSED_MOST:
                self._find(
                    f"{PASSED_MOST} transactions of {process} passed by a tenant that waited for its turn"
                )
