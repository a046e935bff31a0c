"""A ledger as seen from a simulated process: far away, sometimes failing, and gone when the process is.

Stands in front of any ledger. What a call does it does whole, in the world's own time, whether its caller
still lives or not, as a database server would: a process that dies waiting may or may not have been heard.
Which faults it shows (`Storage`) is drawn by the world:

    late         an answer takes its time
    slow         calls of some names wait long for their turn
    stands       commits stand still for seconds, and with them whatever commits (a disk, a standby that is away)
    unavailable  nothing was changed, LedgerUnavailable (or LedgerFull)
    unknown      CommitUnknown, after the commit or instead of it (accept, record, and what leases rows)
    dies before  the process is killed with the call on its way, which never arrives
    dies after   the process is killed after the commit and never learns of it

The calls of a dead process never return and change nothing: `finally` blocks that CPython runs while it
throws a coroutine away find a ledger that does not answer.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from msgspec import Struct, field

from lab.sim.book import Book
from lab.sim.loop import Process, SimLoop
from lab.sim.trace import Trace
from lab.sim.transactions import Transactions
from lab.sim.verdicts import Verdicts
from surehook.core.errors import (
    CommitUnknown,
    LedgerError,
    LedgerFull,
    LedgerUnavailable,
    SurehookError,
)
from surehook.core.model import FIRST, BreakerRow
from surehook.ports.reading import Room

HOT = frozenset({"accept", "claim", "claim_others", "claim_ids", "unpark", "park", "release", "record"})
WRITING = HOT | {
    "beat",
    "evict",
    "free",
    "end",
    "end_endpoint",
    "mark_overdue",
    "resend",
    "advance_replay",
    "due_now",
}
# A claim reads before it commits (`marked`), a beat does not wait for the disk.
COMMITS = WRITING - {"claim", "beat"}
LATE_WORD_S = 5.0  # until what was written of a breaker before comes once more, at most
BACKLOG_S = 1.5  # after a standstill, until the last of those who waited is through
READING = frozenset(
    {"version", "configuration", "breakers", "next_due", "parked_groups", "held", "held_count", "time"}
)
MAY_BE_UNKNOWN = frozenset({"accept", "record", "claim", "claim_others", "claim_ids", "unpark"})


class Storage(Struct):
    """The faults of the storage, as shares of the calls they may strike, and its pace in seconds."""

    late_s: tuple[float, float] = (0.0, 0.002)
    stall_share: float = 0.0
    stall_s: float = 1.0
    slow: tuple[str, ...] = ()
    slow_s: float = 3.0  # at most, on the way there and on the way back
    stands_until: float = 0.0  # commits are through at this instant of the loop at the earliest
    claim_stands_until: float = 0.0  # the next claim of first attempts is the first call to wait until then
    unavailable_share: float = 0.0
    reads_away_share: float = 0.0  # of calls that change nothing
    unknown_share: float = 0.0
    transactions: Transactions = field(default_factory=Transactions)
    dies_before: dict[str, int] = {}  # call name → how many more of them go through first
    dies_after: dict[str, int] = {}

    def mend(self) -> None:
        """From now on it is well."""
        self.late_s, self.stall_share = (0.0, 0.001), 0.0
        self.slow, self.stands_until, self.claim_stands_until = (), 0.0, 0.0
        self.unavailable_share = self.unknown_share = self.reads_away_share = 0.0
        self.dies_before.clear()
        self.dies_after.clear()

    async def commit(self, loop: SimLoop) -> None:
        """Wait until a commit that begins now is through."""
        await asyncio.sleep(max(0.0, self.stands_until - loop.time()))


class SimLedger:
    """Implements the ledger, registry and reading ports for one process, by passing every call on to `inner`."""

    def __init__(
        self,
        inner: Any,
        *,
        process: Process,
        loop: SimLoop,
        chance: random.Random,
        storage: Storage,
        book: Book,
        trace: Trace,
        verdicts: Verdicts,
        kill: Callable[[str], None],
        leaving: Callable[[], bool] = lambda: False,
        homes: dict[bytes, Process] | None = None,
        honest: bool = False,
        wrote: Callable[[str, Any], None] = lambda process, batch: None,
        trying: Callable[[str, Any], AbstractContextManager[None]] = lambda process, batch: nullcontext(),
        late: random.Random | None = None,
    ) -> None:
        """`leaving` says whether the process was told to stop. `honest`: this storage answers every call, so nothing may
        be forgotten, and who stops in order leaves nothing behind. `homes`: where each node lives. `wrote` is told of
        batches that were accepted; `trying` stands around those that are to be, and around reading the configuration.
        `late`: words of breakers come once more."""
        self.storage = storage
        self.identities: list[bytes] = []  # every node id this process has entered under
        self.inner = inner
        self._process = process
        self._loop = loop
        self._chance = chance
        self._book = book
        self._trace = trace
        self._verdicts = verdicts
        self._kill = kill
        self._leaving = leaving
        self._honest = honest
        self._homes = {} if homes is None else homes
        self._wrote = wrote
        self._trying = trying
        self._late = late

    def room(self) -> Room | None:
        return self.inner.room()  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self.inner, name)
        if not asyncio.iscoroutinefunction(method):
            raise AttributeError(f"the ledger port has no {name}")

        async def call(*args: Any, **named: Any) -> Any:
            return await self._pass(name, method, args, named)

        self.__dict__[name] = call  # found there from now on
        return call

    async def _pass(self, name: str, method: Callable[..., Awaitable[Any]], args: Any, named: Any) -> Any:
        if not self._process.alive:
            await self._loop.create_future()  # never
        if name == "rotate_secret":
            self._book.rotates(args[0].endpoint, args[0].material)
        if name not in ("accept", "changes", "configuration"):
            return await self._go(name, method, args, named)
        with self._trying(self._process.name, args[0] if name == "accept" else ()):
            return await self._go(name, method, args, named)

    async def _go(self, name: str, method: Callable[..., Awaitable[Any]], args: Any, named: Any) -> Any:
        await self._wait(name)
        closes = any(breaker.state == "closed" for breaker in named.get("breakers", ()))
        await self._may_die(self.storage.dies_before, "before", name, "closing" if closes else "")
        unknown = self._refuse(name)
        # The world carries it out; the caller may die meanwhile.
        task = self._loop.spawn(None, self._outcome(name, method, args, named))
        task.add_done_callback(_heard)
        result, refusal = await asyncio.shield(task)
        if refusal is not None:
            await self._wait(name)  # a refusal is told as late as an answer
            raise refusal
        await self._may_die(self.storage.dies_after, "after", name)
        await self._wait(name)
        if unknown:
            self._trace.note("fault", f"{self._process.name} unknown after {name}")
            raise CommitUnknown(f"simulated: the answer to {name} was lost")
        return result

    async def _may_die(self, plan: dict[str, int], when: str, *names: str) -> None:
        struck = [self._strikes(plan, name) for name in names]
        if any(struck):
            self._kill(f"{when} {names[0]}")
            await self._loop.create_future()

    async def _wait(self, name: str) -> None:
        low, high = self.storage.late_s
        delay = low + (high - low) * self._chance.random()
        if self._chance.random() < self.storage.stall_share:
            self._trace.fired("stall")
            delay += self.storage.stall_s * self._chance.random()
        if name in self.storage.slow:
            delay += self.storage.slow_s * self._chance.random()
        await asyncio.sleep(delay)

    def _strikes(self, plan: dict[str, int], name: str) -> bool:
        """True where the process dies at this call: `plan[name]` calls go through before."""
        left = plan.get(name)
        if left is None:
            return False
        plan[name] = left - 1
        if left > 0:
            return False
        del plan[name]
        return True

    def _refuse(self, name: str) -> bool:
        """Raise if the call fails with nothing changed; True if it will succeed and its answer be lost."""
        if name in WRITING and self._chance.random() < self.storage.unavailable_share:
            self._trace.note("fault", f"{self._process.name} unavailable {name}")
            kind = LedgerFull if self._chance.random() < 0.2 else LedgerUnavailable
            raise kind(f"simulated: no answer to {name}")
        # No draw where there is none: other worlds stay what they are.
        away_share = self.storage.reads_away_share
        if away_share and name in READING and self._chance.random() < away_share:
            self._trace.note("fault", f"{self._process.name} unavailable {name}")
            raise LedgerUnavailable(f"simulated: no answer to {name}")
        if name in MAY_BE_UNKNOWN and self._chance.random() < self.storage.unknown_share:
            if self._chance.random() < 0.5:
                self._trace.note("fault", f"{self._process.name} unknown instead of {name}")
                raise CommitUnknown(f"simulated: {name} was lost")
            return True
        return False

    async def _outcome(
        self, name: str, method: Callable[..., Awaitable[Any]], args: Any, named: Any
    ) -> tuple[Any, SurehookError | None]:
        """A refusal is a value: whoever asked may be gone, and then nobody would take it out of the task."""
        try:
            return await self._carry_out(name, method, args, named), None
        except SurehookError as refusal:
            return None, refusal

    async def _carry_out(
        self, name: str, method: Callable[..., Awaitable[Any]], args: Any, named: Any
    ) -> Any:
        if name == "claim" and args[0] == FIRST and self.storage.claim_stands_until:
            self.storage.stands_until, self.storage.claim_stands_until = self.storage.claim_stands_until, 0.0
        with self.storage.transactions.begin() if name in COMMITS else nullcontext():
            if name in COMMITS and self.storage.stands_until > self._loop.time():
                await self.storage.commit(self._loop)
                await asyncio.sleep(BACKLOG_S * self._chance.random())
            try:
                result = await method(*args, **named)
            except Exception as error:
                self._trace.note("ledger", f"{self._process.name} {name} raises {type(error).__name__}")
                raise
        if name == "end_endpoint" and result:
            await self._find_ended(args[0], named["reason"])
        if name == "advance_replay":
            await self._find_made(result, args[0], args[3])
            return result
        watch = getattr(self, f"_saw_{name}", None)
        if watch is not None:
            watch(result, *args, **named)
        elif name in WRITING and name != "beat":
            self._trace.note("ledger", f"{self._process.name} {name}")
        return result

    async def _find_ended(self, endpoint: bytes, reason: str) -> None:
        """`end_endpoint` only counts: look which rows are gone."""
        for row in [row for row in self._book.rows.values() if row.endpoint == endpoint and row.end is None]:
            if row.holder is None and await self.inner.open_delivery(row.id) is None:
                self._book.ended_idle([row.id], "cancelled", reason)

    # -- what the world writes into its own book, in the step of the commit -------------------------------

    def _saw_enter(self, result: None, node: Any, *, now: int) -> None:
        self._trace.note("ledger", f"{self._process.name} enter {node.id.hex()}")
        self.identities.append(node.id)
        self._book.entered(node.id)
        self._homes[node.id] = self._process

    def _saw_evict(self, eviction: Any, nodes: Any, *, now: int, judged: Any = None) -> None:
        freed = eviction.freed
        self._trace.note("ledger", f"{self._process.name} evict {len(eviction.nodes)} frees {freed}")
        self._book.did_evict(eviction.nodes, freed, now)
        if freed and self._honest and self._leaving() and set(nodes) <= set(self.identities):
            self._book.find(f"{self._process.name} stopped in order and left {freed} deliveries behind")
        for node in set(eviction.nodes).difference(judged or (), self.identities):
            if node in self._homes and self._homes[node].alive:
                self._book.find(
                    f"{self._process.name} evicted {self._homes[node].name}, which lives, unjudged"
                )
        if set(eviction.nodes) & set(self.identities) and not self._leaving():
            self._book.find(f"{self._process.name} evicted itself, and nobody had judged it dead")

    def _saw_accept(self, receipt: Any, batch: Any, *, node: bytes, **rest: Any) -> None:
        rows = sum(len(incoming.deliveries) for incoming in batch)
        self._trace.note(
            "ledger", f"{self._process.name} accept {len(batch)} events {rows} rows {receipt.stale}"
        )
        self._book.accepted(batch, node, receipt)
        self._wrote(self._process.name, batch)

    def _saw_claim(self, taken: Any, lane: int, *, node: bytes, due_by: int, **rest: Any) -> None:
        if taken:
            self._trace.note("ledger", f"{self._process.name} claim {lane} {_named(taken)}")
        self._book.claimed(taken, node, due_by=due_by)

    def _saw_claim_others(self, taken: Any, lane: int, *, node: bytes, due_by: int, **rest: Any) -> None:
        self._saw_claim(taken, lane, node=node, due_by=due_by)

    def _saw_claim_ids(self, taken: Any, ids: Any, *, node: bytes, now: int, **rest: Any) -> None:
        left = f" left {len(taken.rest)}" if taken.rest else ""
        self._trace.note("ledger", f"{self._process.name} claim_ids {_named(taken.rows)}{left}")
        self._book.claimed(taken.rows, node, due_by=now)

    def _saw_unpark(self, taken: Any, endpoint: bytes, reasons: Any, *, node: bytes, **rest: Any) -> None:
        if taken:
            self._trace.note("ledger", f"{self._process.name} unpark {','.join(reasons)} {_named(taken)}")
        self._book.claimed(taken, node, due_by=None, unpark=True)

    def _saw_park(self, result: None, deliveries: Any, reason: str, *, node: bytes, now: int) -> None:
        self._trace.note("ledger", f"{self._process.name} park {reason} {_named(deliveries)}")
        self._book.parked(deliveries, reason, node)

    def _saw_release(self, result: None, deliveries: Any, *, node: bytes, now: int) -> None:
        self._trace.note("ledger", f"{self._process.name} release {_named(deliveries)}")
        self._book.released(deliveries, node)

    def _saw_record(self, outcome: Any, settled: Any, *, node: bytes, breakers: Any, **rest: Any) -> None:
        self._verdicts.recorded(breakers, outcome.changes)
        ends = " ".join(
            f"{result.delivery.id.hex()[-6:]}/{result.delivery.attempt}:{result.end or result.parked or 'again'}"
            for result in settled
        )
        opened = " ".join(f"{breaker.state}:{breaker.key}" for breaker in breakers)
        self._trace.note("ledger", f"{self._process.name} record {ends} lost {len(outcome.lost)} {opened}")
        before = [] if self._late is None else self._book.overtaken(breakers)
        self._book.recorded(settled, node, outcome, breakers)
        if before:
            self._loop.create_task(self._come_late(before, node, rest["now"]))

    async def _come_late(self, breakers: Sequence[BreakerRow], node: bytes, now: int) -> None:
        """Say once more what was said of breakers before, behind what was decided since: a node that was cut off has kept
        it, or a statement that was given up reaches the server after all."""
        assert self._late is not None
        await asyncio.sleep(LATE_WORD_S * self._late.random())
        try:
            outcome = await self.inner.record(
                [], node=node, health=[], breakers=breakers, notices=[], now=now
            )
        except LedgerError:
            return  # its node was evicted
        self._trace.note("late-word", f"{self._process.name} {len(breakers)} breakers")
        self._book.recorded([], node, outcome, breakers)
        places = [(row.tenant, row.key) for row in breakers]
        self._saw_breakers(await self.inner.breakers(places), places)

    def _saw_breakers(self, rows: Sequence[BreakerRow], asked: Any = ()) -> None:
        self._book.breakers_read(rows, asked)

    def _saw_free(self, result: None, ids: Any, *, node: bytes, now: int) -> None:
        self._trace.note("ledger", f"{self._process.name} free {len(ids)}")
        if self._honest and not self._leaving():
            self._book.find(f"{self._process.name} forgot {len(ids)} deliveries that it holds")
        self._book.freed(ids, node, now)

    def _saw_end(self, ended: Any, deliveries: Any, *, state: str, reason: str | None, **rest: Any) -> None:
        self._trace.note("ledger", f"{self._process.name} end {state} {len(ended)}")
        self._book.ended_idle(ended, state, reason)

    def _saw_resend(
        self, made: Any, originals: Any, replacements: Any, *, now: int, once: bool = False
    ) -> None:
        self._trace.note("ledger", f"{self._process.name} resend {len(made)}")
        wanted = set(made)
        for replacement in replacements:
            if replacement.replay_of in wanted:
                self._book.add(replacement, None)

    def _saw_add_replay(self, result: None, job: Any) -> None:
        self._trace.note("ledger", f"{self._process.name} add_replay")
        self._book.jobs[job.id] = job

    async def _find_made(self, moved: Any, before: Any, replacements: Any) -> None:
        """`advance_replay` only counts: look which rows are there."""
        if moved is None:
            self._trace.note("ledger", f"{self._process.name} advance_replay too late")
            return
        made = [one for one in replacements if await self.inner.open_delivery(one.id) is not None]
        self._trace.note("ledger", f"{self._process.name} advance_replay {len(made)} {moved.state}")
        self._book.advanced(before, moved, made)

    def _saw_due_now(self, done: bool, delivery: bytes, *, now: int) -> None:
        if done:
            self._book.due_now(delivery, now)


def _heard(task: asyncio.Task[Any]) -> None:
    """A refusal that comes when its caller has died is nobody's to hear."""
    if not task.cancelled():
        task.exception()


def _named(deliveries: Any) -> str:
    return " ".join(f"{delivery.id.hex()[-6:]}/{delivery.attempt}" for delivery in deliveries)
