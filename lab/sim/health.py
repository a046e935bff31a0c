"""Shared health in the simulated world: the local store behind a line that takes time, breaks and forgets.

It watches its own promise: while it answers a node, and knows a breaker as open, that node sends one request
through it, and only after it was given the right to be the probe. A node that was not answered decides alone
and is not watched until the next answer; neither is one that has not yet heard of the opening.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

from lab.health import LocalHealth
from lab.sim.loop import Process, SimLoop
from lab.sim.receivers import Seen
from lab.sim.trace import Trace
from surehook.core.limits import PROBE_S
from surehook.ports.health import HealthAway, HealthReply, View

TRAVEL_S = (0.0005, 0.004)  # one way
CLOCKS_MS = 1_500  # what nodes take for the ledger's time may differ by so much from it, and stamps are cut to seconds

Place = tuple[str, str]
Opening = tuple[str, int]  # who opened it, and when: its generation may be raised


class Right(Struct):
    """To be the probe of one opening, and the requests that went through by it. None: of the next that the store hears of, as
    whoever asks may know it from the ledger, before anybody has told the store. `doubtful` ones may be of before the opening, or
    the probe itself: the answer to one closes the breaker in its node all the same."""

    process: str
    opening: Opening | None
    requests: list[Seen] = field(default_factory=list)
    doubtful: list[Seen] = field(default_factory=list)

    def is_of(self, process: str, opening: Opening) -> bool:
        return self.process == process and self.opening == opening

    def shows_life(self, by: float) -> bool:
        """True where the receiver had answered one of them by loop time `by`."""
        return any(one.shows_life(by) for one in (*self.requests, *self.doubtful))


class SimHealth:
    """The store. `at(process)` is the port as one process sees it; `now` is the time that nodes share."""

    def __init__(
        self,
        loop: SimLoop,
        chance: random.Random,
        *,
        now: Callable[[], int],
        find: Callable[[str], None],
        trace: Trace,
    ) -> None:
        self.loop = loop
        self.chance = chance
        self.now = now
        self.away = False
        self.inner = LocalHealth()
        self._find = find
        self._trace = trace
        self._open: dict[Place, tuple[Opening, float]] = {}  # and since when (loop time)
        self._heard: dict[tuple[str, Place], tuple[Opening, int]] = {}  # by process, and at which wall time
        self._rights: dict[Place, Right] = {}
        self._alone: dict[str, float] = {}  # by process: when it was last not answered (loop time)

    def at(self, process: Process) -> HealthPort:
        return HealthPort(self, process.name)

    def flush(self) -> None:
        """Forget everything, as a store does that was flushed or failed over."""
        self.inner.flush()
        self._open.clear()
        self._heard.clear()
        self._rights.clear()

    async def travel(self, process: str) -> None:
        low, high = TRAVEL_S
        await asyncio.sleep(low + (high - low) * self.chance.random())
        if self.away:
            self._alone[process] = self.loop.time()
            for known in [known for known in self._heard if known[0] == process]:
                del self._heard[known]
            raise HealthAway("nobody listens")

    # -- the watch ---------------------------------------------------------------------------------------

    def changed(self, views: list[View]) -> None:
        """Take in what the store says in the step of an exchange."""
        for view in views:
            place = (view.tenant, view.key)
            if view.state == "closed":
                self._open.pop(place, None)
            elif self._open.get(place, (None,))[0] != _opening(view):
                self._open[place] = (_opening(view), self.loop.time())
                right = self._rights.get(place)
                if right is not None and right.opening is None:
                    right.opening = _opening(view)

    def heard(self, process: str, views: list[View]) -> None:
        """The answer has reached the process."""
        for view in views:
            known = (process, (view.tenant, view.key))
            if view.state == "closed":
                self._heard.pop(known, None)
            elif self._heard.get(known, (None,))[0] != _opening(view):
                self._heard[known] = (_opening(view), self.now())

    def granted(self, process: str, place: Place) -> None:
        self._rights[place] = Right(process, self._open[place][0] if place in self._open else None)

    def arrived(self, seen: Seen, place: Place, name: str) -> None:
        """A request of the delivery `name` has reached the receiver behind a breaker."""
        opening = self._open.get(place)
        heard = self._heard.get((seen.sender, place))
        if opening is None or heard is None or heard[0] != opening[0] or seen.wrote_at < opening[1]:
            return
        right = self._rights.get(place)
        if seen.stamp * 1000 <= heard[1] + CLOCKS_MS:
            if right is not None and right.is_of(seen.sender, opening[0]):
                right.doubtful.append(seen)
            return  # begun before its node knew, on a connection that took its time
        if seen.wrote_at < self._alone.get(seen.sender, -PROBE_S) + PROBE_S:
            return  # it may have taken the right by itself while it was alone, and come to use it only now
        if right is None or not right.is_of(seen.sender, opening[0]):
            self._find(f"{name} went through an open breaker by {seen.sender}, which is not the probe")
            return
        self._trace.fired("probe-watched")
        # A probe that was answered closes the breaker in its node; the store hears of it a moment later.
        if right.requests and not right.shows_life(seen.wrote_at):
            self._find(f"{name} is a second probe of all nodes through one open breaker")
        right.requests.append(seen)


def _opening(view: View) -> Opening:
    return (view.author, view.opened_at)


class HealthPort:
    """`ports.health.Health` as seen from one process."""

    def __init__(self, store: SimHealth, process: str) -> None:
        self._store = store
        self._process = process

    async def open(self) -> None:
        await self._store.travel(self._process)

    async def exchange(self, **asked: Any) -> HealthReply:
        store = self._store
        await store.travel(self._process)
        word = await store.inner.exchange(**asked)
        store.changed(word.views)
        await store.travel(self._process)
        store.heard(self._process, word.views)
        return word

    async def take_probe(self, tenant: str, key: str, **asked: Any) -> bool:
        store = self._store
        await store.travel(self._process)
        is_probe = await store.inner.take_probe(tenant, key, **asked)
        if is_probe:
            store.granted(self._process, (tenant, key))
        await store.travel(self._process)
        return is_probe

    async def close(self) -> None:
        """Nothing to close: others may go on."""
