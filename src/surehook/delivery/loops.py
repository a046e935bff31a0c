"""Background work that cannot die unseen.

Every loop of an engine, and every piece of work that nobody waits for, runs here and has one of four ends:

    it returns               it was told to stop, or is done
    the ledger is away       `outage` hears of it; it begins again after a pause that doubles up to `AGAIN_MOST_S`
    this node was evicted     the node is told, and begins again under a new id; so does the work
    anything else            a defect, or a ledger that cannot be trusted: said, and the engine fails

A process that ends is started anew by its supervisor. One that went on without one of its parts would hold leases,
look healthy and deliver nothing.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from surehook.core.errors import CommitUnknown, LedgerBroken, LedgerUnavailable, NodeEvicted
from surehook.delivery.node import Node
from surehook.delivery.outage import Outage
from surehook.ports.clock import Clock
from surehook.ports.telemetry import Telemetry

# Pauses after trouble: what is ready is to be claimed within two seconds of the ledger's return.
AGAIN_FIRST_S, AGAIN_MOST_S = 0.05, 0.5
WRITE_FIRST_S, WRITE_MOST_S = 0.05, 2.0  # between tries of a write that memory holds deliveries for
AWAY_S = 1.0  # between tries of one step of a walk
WELL_S = 10.0  # without trouble for so long: pauses begin anew
TRACE_CHARS = 4_000  # of a defect's traceback, its end

Run = Callable[[], Awaitable[None]]
T = TypeVar("T")


class RetryPause:
    """Pauses that double from `first_s` up to `most_s`."""

    __slots__ = ("_clock", "_first_s", "_most_s", "_next_s")

    def __init__(self, clock: Clock, first_s: float, most_s: float) -> None:
        self._clock = clock
        self._first_s = self._next_s = first_s
        self._most_s = most_s

    @property
    def is_fresh(self) -> bool:
        """Tell whether there was no pause since it was made or reset."""
        return self._next_s == self._first_s

    def reset(self) -> None:
        self._next_s = self._first_s

    async def rest(self) -> None:
        """Pause, and for longer the next time."""
        pause_s, self._next_s = self._next_s, min(self._next_s * 2, self._most_s)
        await self._clock.sleep(pause_s)


async def through_outages(clock: Clock, step: Callable[[], Awaitable[T]]) -> T:
    """Do one step of a walk that somebody began and nobody waits for: again and again while the ledger is away."""
    backoff = RetryPause(clock, AWAY_S, AWAY_S)
    while True:
        try:
            return await step()
        except LedgerUnavailable:
            await backoff.rest()


class Loops:
    """The loops and errands of one engine. The node fails by what this cannot mend."""

    def __init__(self, *, clock: Clock, telemetry: Telemetry, outage: Outage, node: Node) -> None:
        self._clock = clock
        self.outage = outage
        self._telemetry = telemetry
        self._node = node
        self.tasks: dict[asyncio.Task[None], None] = {}  # an ordered set

    def keep(self, name: str, run: Run) -> asyncio.Task[None]:
        """Run it until it returns."""
        return self._begin(name, self._keep(name, run))

    def every(self, name: str, seconds: float, work: Run, *, at_once: bool = False) -> asyncio.Task[None]:
        """Do it for ever, with so many seconds between; `at_once`: without a rest before the first time. Ledger trouble is met
        again by the next turn."""
        rested = at_once

        async def turns() -> None:
            nonlocal rested
            while True:
                if not rested:
                    await self._clock.sleep(seconds)
                rested = False
                await work()

        return self.keep(name, turns)

    def do(self, name: str, work: Run) -> None:
        """Do it once. Where the ledger is away somebody else comes back to it (a look, the next beat)."""
        self._begin(name, self._once(name, work))

    async def persist(self, name: str, write: Callable[[], Awaitable[T]]) -> T:
        """Do a write that memory holds deliveries for until the ledger has answered it. Its outcome may be unknown: then it is
        done again at once, as what is written already is written once. Raises NodeEvicted and LedgerBroken, which the node
        has been told of."""
        backoff = RetryPause(self._clock, WRITE_FIRST_S, WRITE_MOST_S)
        while True:
            try:
                return await write()
            except (NodeEvicted, LedgerBroken) as error:
                self._node.fail(error)
                raise
            except CommitUnknown:
                continue
            except LedgerUnavailable as error:
                self.outage.met(name, error)
                await backoff.rest()

    async def stop(self) -> None:
        """Cancel everything and wait for its end."""
        while self.tasks:
            tasks = list(self.tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def defect(self, name: str, error: BaseException) -> None:
        """Something met an error that it has no answer to: say so, with the place, and fail."""
        trace = "".join(traceback.format_exception(error))[-TRACE_CHARS:]
        self._telemetry.fact("loop.failed", loop=name, error=repr(error), trace=trace)
        self._node.fail(error)

    async def _keep(self, name: str, run: Run) -> None:
        backoff, began = RetryPause(self._clock, AGAIN_FIRST_S, AGAIN_MOST_S), self._clock.boot()
        while True:
            try:
                await run()
                return
            except (NodeEvicted, LedgerUnavailable) as error:
                if self._clock.boot() - began >= WELL_S:
                    backoff.reset()
                if not self._goes_on(name, error):
                    return
            except Exception as error:
                self.defect(name, error)
                return
            await backoff.rest()
            began = self._clock.boot()

    async def _once(self, name: str, work: Run) -> None:
        try:
            await work()
        except (NodeEvicted, LedgerUnavailable) as error:
            self._goes_on(name, error)
        except Exception as error:
            self.defect(name, error)

    def _goes_on(self, name: str, error: NodeEvicted | LedgerUnavailable) -> bool:
        """Tell whether the work may begin again after this trouble."""
        if isinstance(error, NodeEvicted | LedgerBroken):
            self._node.fail(error)
        else:
            self.outage.met(name, error)
        return not isinstance(error, LedgerBroken)

    def _begin(self, name: str, work: Coroutine[object, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self.tasks[task] = None
        task.add_done_callback(lambda done: self.tasks.pop(done, None))
        return task
