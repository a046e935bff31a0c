"""The way in: idempotency → making (ids, fan-out, the exact body) → group commit → hand over.

Events waiting at this moment share one transaction, and tenants take turns in filling it. 202 goes out after the
commit, and the flusher (not the request, whose client may be gone) gives the deliveries that were born leased to
dispatch through memory: the healthy path never claims and never polls.

Each event is written whole, with all its deliveries, in one transaction. A request is not: its events are written
as their turns come, and it is answered when the last one has its answer. Whatever is done row by row pauses after
`slice_rows`, and the event loop goes on. Events that cost more than `large_cost` (their fan-out is large) have a writer of
their own: those behind them need not wait until hundreds of rows are made, in pauses of a busy loop. While others
publish, a tenant's large events rest between two of them, so that all of them together have a share of the time. A third
writer is for calm tenants while somebody rushes (`tenant_activity.py`): their few events need not wait until a whole flush of
somebody else's is made and committed, and then for the next one, which they would share.

Events are judged and fan out from memory, and the transaction checks that nothing has changed since which concerns their
tenants or types. Where it has, nothing is written, what changed is taken over, and events whose tenant or type changed
are judged and fan out anew. The next try is not checked again: memory is now newer than every request of the batch, and
a change beside a call may come before it or after it. So whatever was answered 201 anywhere holds for the next call,
and no number of changes holds a batch up for longer than one reading. A refusal on memory's word is checked against the
ledger's version first (`current`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice

from surehook.core import instants
from surehook.core.envelope import EventIn
from surehook.core.errors import (
    CommitUnknown,
    LedgerBroken,
    LedgerError,
    LedgerUnavailable,
    NodeEvicted,
    Overloaded,
    Problem,
)
from surehook.core.model import Delivery, Lane
from surehook.core.schema_cost import LIGHT
from surehook.delivery.admission import Admission
from surehook.delivery.directory import Directory
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.fair_batches import FairBatches
from surehook.delivery.handoff.send import Send
from surehook.delivery.holdings import Holdings
from surehook.delivery.loading import Loader
from surehook.delivery.loops import Loops
from surehook.delivery.making import Kind, Making
from surehook.delivery.node import Node
from surehook.delivery.peers import Peers
from surehook.delivery.pump import Pump
from surehook.delivery.refill import Refill
from surehook.delivery.settings import EngineSettings
from surehook.delivery.staleness import Staleness
from surehook.delivery.tenant_activity import TenantActivity, pause
from surehook.delivery.waiting import PublishRequest, WaitingEvents, as_problem, line_up
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.ledger import NEWER_THAN_CALLS, Incoming, Ledger, Taken

DRAIN_S = 2.0  # at a shutdown: what the whole line takes at full speed, and a fifth of the grace time
UNKNOWN_TRIES = 5  # commits in a row with an unknown outcome before the caller is told 503


class Accept:
    """Takes events in."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        entropy: Entropy,
        settings: EngineSettings,
        node: Node,
        loops: Loops,
        directory: Directory,
        loader: Loader,
        staleness: Staleness,
        dispatch: Dispatch,
        pump: Pump,
        holdings: Holdings,
        refill: Refill,
        peers: Peers,
        activity: TenantActivity,
        send: Send | None,
    ) -> None:
        """`send`: to workers elsewhere, where there is a broker."""
        self._ledger = ledger
        self._clock = clock
        self._settings = settings
        self._node = node
        self._loops = loops
        self._directory = directory
        self._loader = loader
        self._staleness = staleness
        self._dispatch = dispatch
        self._pump = pump
        self._holdings = holdings
        self._refill = refill
        self._peers = peers
        self._send = send
        self.closed = False
        self._ended = False  # nothing more is written
        self._making = Making(
            entropy=entropy, settings=settings, directory=directory, dispatch=dispatch, send=send
        )
        self.accepted = 0  # events taken since the start, repeats not counted
        self._admission = Admission(settings)
        self._activity = activity
        self._batches: FairBatches[WaitingEvents] = self._line()
        self._beside: FairBatches[WaitingEvents] = self._line(is_quick=True)
        self._large: FairBatches[WaitingEvents] = self._line(self._activity.rest)

    def _line(
        self, rest: Callable[[int], float] = lambda cost: 0.0, *, is_quick: bool = False
    ) -> FairBatches[WaitingEvents]:
        settings = self._settings
        return FairBatches(
            partial(self._flush, is_quick=is_quick),
            items=settings.accept_rows, cost=settings.accept_cost, turn=settings.turn_cost,
            others=lambda: len(self._directory.tenants) > 1, wanted=lambda waiting: waiting.request.goes_on,
            cut=WaitingEvents.cut, rest=rest,
        )  # fmt: skip

    async def take(self, events: Sequence[EventIn], keys: Sequence[str | None]) -> list[Taken | Problem]:
        """Answer for each event once all of them are on disk (or refused).

        The caller has judged the events by memory as it is now; they are judged anew where memory turns out to be old.
        Raises TenantOverloaded where the tenant has its share of the line waiting, Overloaded where the line is full
        or the server is stopping, LedgerUnavailable where the ledger cannot be written: in all cases nothing of this
        request is on disk, or a repeat will find it. What strikes only some of the events is their answer.
        """
        if self.closed:
            raise Overloaded("the server is stopping")
        loop = asyncio.get_running_loop()
        request = PublishRequest([None] * len(events), len(events), loop.create_future())
        directory = self._directory
        line = line_up(request, events, keys, version=directory.version, fan_out=directory.fan_out)
        is_calm = self._seen(line, loop.time())
        most, is_small = self._settings.large_cost, is_calm
        for waiting in self._admit(line):
            cost = waiting.cost
            if cost > most:
                batches, is_small = self._large, False
            else:
                batches = self._beside if is_calm and self._goes_beside(waiting) else self._batches
            batches.put(waiting.tenant, waiting, cost, len(waiting.events))
        if not is_small:
            return await request.done
        self._dispatch.publish_waits(gives_way=self._activity.is_rushed(loop.time()))
        try:
            return await request.done
        finally:
            self._dispatch.publish_answered()

    def _seen(self, line: list[WaitingEvents], now: float) -> bool:
        """Tell who publishes what; whether all of them are calm."""
        if len(self._directory.tenants) < 2:
            return True
        seen = [self._activity.seen(each.tenant, each.cost * len(each.events), now) for each in line]
        return all(seen)

    def _goes_beside(self, waiting: WaitingEvents) -> bool:
        """Tell whether events of a calm tenant need not stand in line with those who rush: all that it has waiting is a turn."""
        if not self._activity.is_rushed(asyncio.get_running_loop().time()):
            return False
        return self._admission.cost(waiting.tenant) <= self._settings.turn_cost

    def _admit(self, line: list[WaitingEvents]) -> list[WaitingEvents]:
        """Those events of a request that are let in, all or none of a tenant's; the others have their answer. Raises what
        the first of them is refused for where all are."""
        if len(line) == 1:
            (waiting,) = line
            refusal = self._admission.admit(
                waiting.tenant, len(waiting.events), waiting.deliveries, waiting.size
            )
            if refusal is not None:
                raise refusal
            return line
        by_tenant: dict[str, list[WaitingEvents]] = {}
        for waiting in line:
            by_tenant.setdefault(waiting.tenant, []).append(waiting)
        admitted: list[WaitingEvents] = []
        refused: list[tuple[WaitingEvents, Overloaded]] = []
        for tenant, group in by_tenant.items():
            events = sum([len(each.events) for each in group])
            deliveries, size = sum([each.deliveries for each in group]), sum([each.size for each in group])
            refusal = self._admission.admit(tenant, events, deliveries, size)
            if refusal is None:
                admitted += group
            else:
                refused += [(each, refusal) for each in group]
        if not admitted:
            raise refused[0][1]
        for each, refusal in refused:
            each.answer([as_problem(refusal)] * len(each.events))
        return admitted

    @property
    def waiting(self) -> int:
        """Events that have no answer yet."""
        return self._admission.events

    async def drained(self) -> None:
        """Write what waits, for `DRAIN_S` at most: a large request may be a minute's work. What is left is refused."""
        end = asyncio.get_running_loop().call_later(DRAIN_S, self._end)
        await self._batches.drained()
        await self._beside.drained()
        await self._large.drained()
        end.cancel()

    def close(self) -> None:
        """Take nothing new; what waits for its commit still gets its answer."""
        self.closed = True

    def _end(self) -> None:
        self._ended = True

    # -- the flusher ------------------------------------------------------------------------------------

    async def _flush(self, line: list[WaitingEvents], *, is_quick: bool) -> None:
        """Write what was taken out of the line, but for what nobody waits for any more."""
        batch = [] if self._ended else [each for each in line if each.request.goes_on]
        try:
            if batch:
                with self._holdings.leasing():  # what is born leased
                    await self._commit(batch, is_quick=is_quick)
        except Exception as error:
            self._give_up(batch, error)
        for waiting in line:
            self._admission.leave(waiting.tenant, len(waiting.events), waiting.deliveries, waiting.size)
            if waiting.request.left and not waiting.is_answered:
                waiting.refuse(waiting.request.error or Overloaded("the server is stopping"))

    def _give_up(self, batch: list[WaitingEvents], error: Exception) -> None:
        """Nothing of a batch was written, or nobody knows. Whatever it was, everybody who waits is told."""
        told = error if isinstance(error, LedgerUnavailable) else LedgerUnavailable(str(error))
        if not isinstance(error, LedgerError):
            told = CommitUnknown("accepting failed: nobody knows whether the events were taken")
            self._loops.defect("accept", error)
        for waiting in batch:
            self._give_back(waiting)
            if not waiting.is_answered:
                waiting.refuse(told)
        if isinstance(error, LedgerBroken | NodeEvicted):
            self._node.fail(error)

    async def _commit(self, batch: list[WaitingEvents], *, is_quick: bool) -> None:
        node, now, version = self._node.id, self._clock.now(), self._directory.version
        await self._prepare(batch, now)
        unknown = 0
        while True:
            rows = [made for waiting in batch for made in waiting.made if isinstance(made, Incoming)]
            try:
                result = await self._ledger.accept(
                    rows, node=node, version=version, now=now, is_quick=is_quick
                )
            except CommitUnknown:
                unknown += 1
                for waiting in batch:
                    waiting.in_doubt = True
                self._holdings.suspect()  # should the ledger go before it has told us
                if unknown >= UNKNOWN_TRIES:
                    raise
                now = self._clock.now()
                continue
            if not result.stale:
                break
            await self._loader.reload()
            version, now = NEWER_THAN_CALLS, self._clock.now()  # rows made before are late by what this took
            old = [waiting for waiting in batch if self._is_old(waiting)]
            if old and unknown:  # what fans out anew gets new ids, and the old ones may be in the ledger
                raise CommitUnknown("configuration changed after a commit of which nobody knows the outcome")
            for waiting in old:
                self._give_back(waiting)
            await self._prepare(old, now)
        if result.version > self._directory.version:
            self._staleness.newer(result.version)
        taken = iter(result.taken)
        answers = [
            [made if isinstance(made, Problem) else next(taken) for made in waiting.made] for waiting in batch
        ]
        for waiting, answer in zip(batch, answers, strict=True):
            waiting.answer(answer)
        await self._hand_over(batch, answers, node)

    async def _prepare(self, batch: list[WaitingEvents], now: int) -> None:
        """Ids, fan-out and body of every event, a slice at a time; before that its judgement, where that is old."""
        making, most, written_now = self._making, self._settings.slice_rows, instants.render(now)
        kinds: dict[tuple[str, str], Kind] = {}
        rows = 0
        for waiting in batch:
            is_old = self._is_old(waiting)
            waiting.version = self._directory.version
            for event, key in zip(waiting.events, waiting.keys, strict=True):
                name = event.tenant, event.type
                kind = kinds.get(name)
                if kind is None:
                    kind = kinds[name] = making.kind(*name, now)
                refused = self._directory.refuses(event) if is_old else None
                if refused is not None:
                    waiting.made.append(refused)
                    waiting.routes.append(())
                    continue
                incoming = making.incoming(event, key, kind, now, written_now)
                waiting.made.append(incoming)
                waiting.routes.append(kind.routes)
                making.deliver(incoming, kind.births, now)
                rows += 1 + len(kind.births)
                if is_old and self._directory.weight(event) > LIGHT:
                    rows = most
                for start in range(most, len(kind.routes), most):
                    await self._pause(waiting)
                    births = making.births(kind.routes[start : start + most], event.type, now)
                    making.deliver(incoming, births, now)
                    rows = most
                if rows >= most:
                    rows = 0
                    await self._pause(waiting)
                    kinds.clear()

    async def _pause(self, waiting: WaitingEvents) -> None:
        await pause(self._dispatch, is_large=waiting.fan_out >= self._settings.large_cost)

    def _is_old(self, waiting: WaitingEvents) -> bool:
        """True where what was decided for one of these events may have changed since."""
        version, directory = waiting.version, self._directory
        return version != directory.version and any(
            directory.changed.since(version, event.tenant, event.type) for event in waiting.events
        )

    async def _hand_over(
        self, batch: list[WaitingEvents], answers: list[list[Taken | Problem]], node: bytes
    ) -> None:
        """Committed: give what was born leased to dispatch, a slice at a time, and tell of what was born unheld."""
        rows, most, push = 0, self._settings.slice_rows, self._dispatch.push
        is_ours = self._node.is_still(node)
        left: set[Lane] = set()
        for waiting, answered in zip(batch, answers, strict=True):
            for made, routes, answer in zip(waiting.made, waiting.routes, answered, strict=True):
                waiting.handed += 1
                if isinstance(made, Problem):
                    continue
                if not isinstance(answer, Taken) or not answer.fresh:
                    self._making.give_back(made, routes)
                    continue
                self.accepted += 1
                for delivery, route in zip(made.deliveries, routes, strict=True):
                    if delivery.held and is_ours:
                        push(route, delivery)
                    else:
                        self._bear(delivery, route, left)
                    rows += 1
                    if rows >= most:
                        rows = 0
                        await self._pause(waiting)
                        is_ours = self._node.is_still(node)
        for lane in sorted(left):
            self._peers.left(lane)
        self._pump.pump()

    def _bear(self, delivery: Delivery, route: EndpointState, left: set[Lane]) -> None:
        """A delivery is in the ledger, and dispatch does not get it. `left` gathers the lanes of what is not ours to
        send."""
        if delivery.held:
            delivery.held = False  # we were evicted before it came here: it is free again
            self._dispatch.memory.let_go(route, delivery)
            left.add(delivery.lane)
        elif delivery.parked is not None:
            route.may_have_parked(delivery.parked)
            self._refill.wants_work(route)
        elif delivery.handed:
            assert self._send is not None
            self._send.put_reserved(delivery.lane, delivery.id)
        else:
            left.add(delivery.lane)

    def _give_back(self, waiting: WaitingEvents) -> None:
        """Nothing was made of these events: what was promised to their deliveries is free again."""
        left = zip(waiting.made, waiting.routes, strict=True)
        for made, routes in islice(left, waiting.handed, None):
            if isinstance(made, Incoming):
                self._making.give_back(made, routes)
        waiting.made, waiting.routes, waiting.handed = [], [], 0
