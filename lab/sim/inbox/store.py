"""The store of an inbox as one simulated process has it: the real transactions, in a database that has its moods.

A transaction happens whole, in one instant, some time after it was asked for and some time before its caller hears of it. The
faults (`Faults`) are shares drawn for each, and one list of deaths. A death strikes at a *moment*, and what had not been
committed is rolled back by the real store, as the database does when a connection breaks:

    call NAME      the process is about to call NAME on its open transaction (names of `ports.inbox.Transaction`)
    handler        a handler has written its effect, and has not returned
    commit KIND    all is written and nothing committed; KIND is persist, claim, process, release, or the first call's name
    answer KIND    it is committed, and the process does not learn of it
    answer wake    the same, of a transaction in which a document woke

Processes that stand still do so at these moments, too.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from lab.sim.loop import Process, SimLoop
from lab.sim.trace import Trace
from surehook.inbox.sql.stores import SqlStore
from surehook.ports.inbox import Contended, StoreUnavailable, Transaction

T = TypeVar("T")

# By the first call of a transaction; others are called as that.
KINDS = {"hold": "process", "documents": "process", "call_back": "claim"}
MOMENTS = (
    "call persist", "commit persist", "answer persist", "call claim", "commit claim", "answer claim", "call hold",
    "call documents", "call settle", "call keep_documents", "call journal", "handler", "commit process", "answer process",
    "call release", "answer release", "commit replay", "answer replay",
)  # fmt: skip
STALL_S = 3.0  # a stall takes up to this long: longer than the shortest leases


class Faults(Struct):
    """Behaviour of the database towards transactions: delays in seconds, shares, and at which moments processes die, or stand
    still for so many seconds."""

    late_s: float = 0.001
    stall_share: float = 0.0
    away_share: float = 0.0
    contended_share: float = 0.0
    unknown_share: float = 0.0
    dies: dict[str, int] = {}  # moment → how many more of its kind go by first
    halts: dict[str, float] = {}


class Died(BaseException):
    """The process is gone in the middle of a transaction. No code of the inbox may catch it for good."""


class SimStore:
    """`ports.inbox.AsyncStore` for one process."""

    def __init__(
        self,
        inner: SqlStore,
        *,
        process: Process,
        loop: SimLoop,
        chance: random.Random,
        faults: Faults,
        trace: Trace,
        kill: Callable[[str], None],
        halt: Callable[[float], None],
    ) -> None:
        self._inner = inner
        self._process = process
        self._loop = loop
        self._chance = chance
        self._faults = faults
        self._trace = trace
        self._kill = kill
        self._halt = halt

    async def run(self, work: Callable[[Transaction], T]) -> T:
        await self._wait()
        self._refuse()
        watched = _Watched(self.moment)
        try:
            result = self._inner.run(lambda transaction: self._inside(watched, transaction, work))
            self._tell(watched)
            self.moment(f"answer {watched.kind}")
            if watched.wakes:
                self.moment("answer wake")
        except Died:
            result = await self._loop.create_future()
        unknown = watched.kind != "claim" or watched.found
        unknown = unknown and self._chance.random() < self._faults.unknown_share
        await self._wait()
        if unknown:
            self._trace.note("inbox-unknown", f"{self._process.name} {watched.kind}")
            raise StoreUnavailable("simulated: the answer to a commit was lost")
        return result

    def _inside(self, watched: _Watched, transaction: Transaction, work: Callable[[Transaction], T]) -> T:
        watched.transaction = transaction
        result = work(watched)
        self.moment(f"commit {watched.kind}")
        return result

    def moment(self, name: str) -> None:
        """Raises Died if this is the one."""
        if (seconds := self._faults.halts.pop(name, None)) is not None:
            self._halt(seconds)
        plan = self._faults.dies
        left = plan.get(name)
        if left is None:
            return
        plan[name] = left - 1
        if left == 0:
            del plan[name]
            self._trace.fired(f"inbox-death {name}".replace(" ", "-"))
            self._kill(f"at {name}")
            raise Died

    async def _wait(self) -> None:
        delay = self._faults.late_s * self._chance.random()
        if self._chance.random() < self._faults.stall_share:
            self._trace.fired("inbox-stall")
            delay += STALL_S * self._chance.random()
        await asyncio.sleep(delay)

    def _refuse(self) -> None:
        if self._chance.random() < self._faults.away_share:
            self._trace.fired("inbox-away")
            raise StoreUnavailable("simulated: the database is away")
        if self._chance.random() < self._faults.contended_share:
            self._trace.fired("inbox-contended")
            raise Contended("simulated: others wanted the same rows")

    def _tell(self, watched: _Watched) -> None:
        if watched.kind != "claim" or watched.found:
            self._trace.note("inbox", f"{self._process.name} {watched.kind} {watched.calls}")

    async def create(self) -> None:
        """The tables are there."""

    async def close(self) -> None:
        """The database outlives its processes."""


class _Watched:
    """A transaction whose calls are moments at which the process can die."""

    def __init__(self, moment: Callable[[str], None]) -> None:
        self._moment = moment
        self.transaction: Any = None
        self.kind = "nothing"
        self.calls = 0
        self.found = False  # a claim found something
        self.wakes = False

    @property
    def has_changed_session(self) -> bool:
        """As the transaction says: asking is no moment, since nothing is said to the database."""
        return bool(self.transaction.has_changed_session)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.transaction, name)

        def call(*args: Any, **named: Any) -> Any:
            if self.kind == "nothing" and name != "only_reads":
                self.kind = KINDS.get(name, name)
                self.wakes = name == "documents"
            self.calls += 1
            self._moment(f"call {name}")
            result = method(*args, **named)
            self.found = self.found or (
                (name == "claim" and bool(result)) or (name == "lease_documents" and bool(args[0]))
            )
            return result

        return call
