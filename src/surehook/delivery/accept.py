"""The way in: idempotency → ids → fan-out → the exact body, rendered once → group commit → hand over.

Events waiting at this moment share one transaction, and tenants take turns in filling it. 202 goes out after the
commit, and the flusher (not the request, whose client may be gone) gives the deliveries that were born leased to
dispatch through memory: the healthy path never claims and never polls.

Each event is written whole, with all its deliveries, in one transaction. A request is not: its events are written
as their turns come, and it is answered when the last one has its answer. Whatever is done row by row pauses after
`slice_rows`, and the event loop goes on. Events that cost more than `large_cost` (their fan-out is large) have a writer of
their own: those behind them need not wait until hundreds of rows are made, in pauses of a busy loop.

Events are judged and fan out from memory, and the transaction checks that memory was current. Where it was not,
nothing is written, what changed is taken over, and events whose tenant or type changed are judged and fan out anew.
The next try is not checked again: memory is now newer than every request of the batch, and a change beside a call
may come before it or after it. So whatever was answered 201 anywhere holds for the next call, and no number of
changes holds a batch up for longer than one reading. A refusal on memory's word is checked against the book's
version first (`current`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from surehook.core import envelope, ids, instants, lanes
from surehook.core.envelope import EventIn
from surehook.core.errors import (
    CommitUnknown,
    LedgerBroken,
    LedgerError,
    LedgerUnavailable,
    NodeBuried,
    Overloaded,
    Problem,
)
from surehook.core.model import Delivery, Event, Lane
from surehook.delivery.admission import EVENT_BYTES, Admission
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.fair_batches import FairBatches
from surehook.delivery.handoff.send import Send
from surehook.delivery.loops import Loops
from surehook.delivery.lost import Lost
from surehook.delivery.routes import Directory, Route
from surehook.delivery.settings import EngineSettings
from surehook.delivery.waiting import Request, Waiting, as_problem
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.ledger import NEWER_THAN_CALLS, Incoming, Ledger, Taken

DRAIN_S = 2.0  # at a shutdown: what the whole line takes at full speed, and a fifth of the grace time
UNKNOWN_TRIES = 5  # commits in a row with an unknown outcome before the caller is told 503


class Accept:
    """Takes events in. `node` is who writes; `reload` brings configuration into memory."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        entropy: Entropy,
        settings: EngineSettings,
        directory: Directory,
        dispatch: Dispatch,
        node: Callable[[], bytes],
        reload: Callable[[], Awaitable[None]],
        loops: Loops,
        hungry: Callable[[Route], None],
        left: Callable[[Lane], None],
        lost: Lost,
        send: Send | None = None,
    ) -> None:
        """`left` is told of a lane whose work was committed unheld: for want of memory, or because it is not ours."""
        self._ledger = ledger
        self._clock = clock
        self._entropy = entropy
        self._settings = settings
        self._directory = directory
        self._dispatch = dispatch
        self._node = node
        self._reload = reload
        self._loops = loops
        self._hungry = hungry
        self._left = left
        self._lost = lost
        self._send = send  # to workers elsewhere, where there is a broker
        self.closed = False
        self._ended = False  # nothing more is written
        self._count = 0  # ids made in the millisecond `_count_ms`
        self._count_ms = -1
        self.accepted = 0  # events taken since the start, repeats not counted
        self._admission = Admission(settings)
        self._batches: FairBatches[Waiting] = self._line()
        self._large: FairBatches[Waiting] = self._line()

    def _line(self) -> FairBatches[Waiting]:
        settings = self._settings
        return FairBatches(
            self._flush, items=settings.accept_rows, cost=settings.accept_cost, turn=settings.turn_cost,
            others=lambda: len(self._directory.tenants) > 1, wanted=lambda waiting: waiting.request.goes_on,
        )  # fmt: skip

    async def take(self, events: Sequence[EventIn], keys: Sequence[str | None]) -> list[Taken | Problem]:
        """Answer for each event once all of them are on disk (or refused).

        The caller has judged the events by memory as it is now; they are judged anew where memory turns out to be old.
        Raises TenantOverloaded where the tenant has its share of the line waiting, Overloaded where the line is full
        or the server is stopping, LedgerUnavailable where the book cannot be written: in all cases nothing of this
        request is on disk, or a repeat will find it. What strikes only some of the events is their answer.
        """
        if self.closed:
            raise Overloaded("the server is stopping")
        request = Request([None] * len(events), len(events), asyncio.get_running_loop().create_future())
        version, fan_out = self._directory.version, self._directory.fan_out
        line: list[Waiting] = []
        deliveries = size = 0
        for place, (event, key) in enumerate(zip(events, keys, strict=True)):
            count, weight = len(fan_out(event.tenant, event.type)), len(event.data) + EVENT_BYTES
            line.append(Waiting(request, place, event, key, version, count, weight))
            deliveries += count
            size += weight
        tenants = {event.tenant for event in events}
        if len(tenants) > 1:
            line = self._admit_each(line)
        else:
            refusal = self._admission.admit(events[0].tenant, len(events), deliveries, size)
            if refusal is not None:
                raise refusal
        most = self._settings.large_cost
        for waiting in line:
            cost = 1 + waiting.deliveries + (waiting.size >> 10)
            (self._batches if cost <= most else self._large).put(waiting.event.tenant, waiting, cost)
        return await request.done

    def _admit_each(self, line: list[Waiting]) -> list[Waiting]:
        """Those events of a request of several tenants that are let in; the others have their answer. Raises what the
        first of them is refused for where all are."""
        by_tenant: dict[str, list[Waiting]] = {}
        for waiting in line:
            by_tenant.setdefault(waiting.event.tenant, []).append(waiting)
        admitted: list[Waiting] = []
        refused: list[tuple[Waiting, Overloaded]] = []
        for tenant, group in by_tenant.items():
            deliveries, size = sum([each.deliveries for each in group]), sum([each.size for each in group])
            refusal = self._admission.admit(tenant, len(group), deliveries, size)
            if refusal is None:
                admitted += group
            else:
                refused += [(each, refusal) for each in group]
        if not admitted:
            raise refused[0][1]
        for each, refusal in refused:
            each.answer(as_problem(refusal))
        return admitted

    @property
    def waiting(self) -> int:
        """Events that have no answer yet."""
        return self._admission.events

    async def drained(self) -> None:
        """Write what waits, for `DRAIN_S` at most: a large request may be a minute's work. What is left is refused."""
        end = asyncio.get_running_loop().call_later(DRAIN_S, self._end)
        await self._batches.drained()
        await self._large.drained()
        end.cancel()

    def _end(self) -> None:
        self._ended = True

    # -- the flusher ------------------------------------------------------------------------------------

    async def _flush(self, line: list[Waiting]) -> None:
        """Write what was taken out of the line, but for what nobody waits for any more."""
        batch = [] if self._ended else [each for each in line if each.request.goes_on]
        try:
            if batch:
                with self._lost.leasing():  # what is born leased
                    await self._commit(batch)
        except Exception as error:
            self._give_up(batch, error)
        for waiting in line:
            self._admission.leave(waiting.event.tenant, waiting.deliveries, waiting.size)
            if waiting.request.left and not waiting.is_answered:
                waiting.refuse(waiting.request.error or Overloaded("the server is stopping"))

    def _give_up(self, batch: list[Waiting], error: Exception) -> None:
        """Nothing of a batch was written, or nobody knows. Whatever it was, everybody who waits is told."""
        told = error if isinstance(error, LedgerUnavailable) else LedgerUnavailable(str(error))
        if not isinstance(error, LedgerError):
            told = LedgerUnavailable("accepting failed: nobody knows whether the events were taken")
            self._loops.defect("accept", error)
        for waiting in batch:
            self._give_back(waiting)
            if not waiting.is_answered:
                waiting.refuse(told)
        if isinstance(error, LedgerBroken | NodeBuried):
            self._loops.fail(error)

    async def _commit(self, batch: list[Waiting]) -> None:
        node, now, version = self._node(), self._clock.now(), self._directory.version
        await self._prepare(batch, now)
        unknown = 0
        while True:
            rows = [waiting.incoming for waiting in batch if waiting.incoming is not None]
            try:
                receipt = await self._ledger.accept(rows, node=node, version=version, now=now)
            except CommitUnknown:
                unknown += 1
                self._lost.suspect()  # should the ledger go before it has told us
                if unknown >= UNKNOWN_TRIES:
                    raise
                continue
            if not receipt.stale:
                break
            await self._reload()
            version = NEWER_THAN_CALLS
            old = [waiting for waiting in batch if self._is_old(waiting)]
            if old and unknown:  # what fans out anew gets new ids, and the old ones may be in the book
                raise CommitUnknown("configuration changed after a commit of which nobody knows the outcome")
            for waiting in old:
                self._give_back(waiting)
            await self._prepare(old, now)
        taken = iter(receipt.taken)
        answers = [waiting.refused or next(taken) for waiting in batch]
        for waiting, answer in zip(batch, answers, strict=True):
            waiting.answer(answer)
        await self._hand_over(batch, answers, node)

    async def _prepare(self, batch: list[Waiting], now: int) -> None:
        """Ids, fan-out and body of every event, a slice at a time; before that its judgement, where that is old."""
        rows, slice_rows = 0, self._settings.slice_rows
        for waiting in batch:
            event_in = waiting.event
            waiting.refused = self._directory.refuses(event_in) if self._is_old(waiting) else None
            waiting.version = self._directory.version
            if waiting.refused is not None:
                continue
            incoming = self._incoming(waiting, now)
            waiting.incoming, deliveries = incoming, incoming.deliveries
            event_id, body = incoming.event.id, incoming.event.body
            for route in waiting.routes:
                deliveries.append(self._delivery(route, event_in, event_id, body, now))
                rows += 1
                if rows >= slice_rows:
                    rows = 0
                    await asyncio.sleep(0)
            rows += 1

    def _is_old(self, waiting: Waiting) -> bool:
        """True where what was decided for an event may have changed since."""
        version, event = waiting.version, waiting.event
        return version != self._directory.version and self._directory.changed.since(
            version, event.tenant, event.type
        )

    def _incoming(self, waiting: Waiting, now: int) -> Incoming:
        """An event as it will be written, and the routes of its deliveries, which are still to be made."""
        event_in = waiting.event
        given = event_in.id
        event_id = self._new_id(now) if given is None else given
        event_type = self._directory.types.get(event_in.type)
        version = event_in.schema_version or (event_type.schema_version if event_type is not None else "1")
        body = envelope.render_body(
            id=ids.text(ids.EVENT, event_id),
            type=event_in.type,
            timestamp=instants.render(event_in.occurred_at if event_in.occurred_at is not None else now),
            tenant=event_in.tenant,
            schema_version=version,
            subject=event_in.subject,
            sequence=event_in.sequence,
            workflow_version=event_in.workflow_version,
            correlation_id=event_in.correlation_id,
            causation_id=event_in.causation_id,
            source=event_in.source,
            data=event_in.data,
        )
        waiting.routes = self._directory.fan_out(event_in.tenant, event_in.type)
        event = Event(
            id=event_id,
            tenant=event_in.tenant,
            type=event_in.type,
            schema_version=version,
            subject=event_in.subject,
            sequence=event_in.sequence,
            workflow_version=event_in.workflow_version,
            correlation_id=event_in.correlation_id,
            causation_id=event_in.causation_id,
            source=event_in.source,
            occurred_at=event_in.occurred_at,
            accepted_at=now,
            body=body,
            digest=envelope.digest_of(event_in),
            fan_out=len(waiting.routes),
        )
        return Incoming(event=event, deliveries=[], key=waiting.key, given=given is not None)

    def _new_id(self, now: int) -> bytes:
        """A fresh id that sorts after those made before it in the same millisecond (RFC 9562, fixed-length counter)."""
        self._count = (self._count + 1) & 0xFFF if now == self._count_ms else 0
        self._count_ms = now
        return ids.uuid7(now, self._count.to_bytes(2, "big") + self._entropy.bits(8))

    def _delivery(self, route: Route, event_in: EventIn, event_id: bytes, body: bytes, now: int) -> Delivery:
        plan = self._directory.plan(route, event_in.type)
        escalate = plan.policy.escalate_after
        delivery = Delivery(
            id=ids.delivery_id(event_id, self._entropy.bits(6)),
            event=event_id,
            endpoint=route.endpoint.id,
            tenant=event_in.tenant,
            type=event_in.type,
            lane=lanes.first_lane(plan.policy, is_slow=route.pace.is_slow),
            attempt=1,
            due_at=now,
            born_at=now,
            body=body,
            overdue_at=None if escalate is None else now + int(escalate * 1000),
        )
        delivery.parked = route.takes
        mine = delivery.lane in self._settings.lanes
        if delivery.parked is None and mine and self._dispatch.memory.has_room():
            if self._dispatch.memory.has_share(route) and "share" not in route.parked:
                delivery.held = True
                self._dispatch.memory.hold(route, delivery)
            else:
                delivery.parked = "share"
        elif delivery.parked is None and self._send is not None:
            delivery.handed = self._send.reserve(delivery.lane)
        return delivery

    async def _hand_over(self, batch: list[Waiting], answers: Sequence[Taken | Problem], node: bytes) -> None:
        """Committed: give what was born leased to dispatch, a slice at a time, and tell of what was born unheld."""
        rows, slice_rows = 0, self._settings.slice_rows
        left: set[Lane] = set()
        for waiting, answer in zip(batch, answers, strict=True):
            if not isinstance(answer, Taken) or not answer.fresh:
                self._give_back(waiting)
                continue
            incoming, waiting.incoming = waiting.incoming, None
            assert incoming is not None
            self.accepted += 1
            for delivery, route in zip(incoming.deliveries, waiting.routes, strict=True):
                self._bear(delivery, route, node, left)
                rows += 1
                if rows >= slice_rows:
                    rows = 0
                    await asyncio.sleep(0)
        for lane in sorted(left):
            self._left(lane)
        self._dispatch.pump()

    def _bear(self, delivery: Delivery, route: Route, node: bytes, left: set[Lane]) -> None:
        """A delivery is in the book. `left` gathers the lanes of what is not ours to send."""
        if delivery.held:
            if node == self._node():
                self._dispatch.push(route, delivery)
                return
            delivery.held = False  # buried before it came here: it is free again
            self._dispatch.memory.let_go(route, delivery)
            left.add(delivery.lane)
        elif delivery.parked is not None:
            route.parked.add(delivery.parked)
            self._hungry(route)
        elif delivery.handed:
            assert self._send is not None
            self._send.put_reserved(delivery.lane, delivery.id)
        else:
            left.add(delivery.lane)

    def _give_back(self, waiting: Waiting) -> None:
        """What the deliveries of an event were promised, in memory and of the broker, is free again."""
        incoming, waiting.incoming = waiting.incoming, None
        if incoming is None:
            return
        # Routes come first: where making them was cut short, there are fewer deliveries.
        for route, delivery in zip(waiting.routes, incoming.deliveries, strict=False):
            if delivery.held:
                delivery.held = False
                self._dispatch.memory.let_go(route, delivery)
            if delivery.handed:
                assert self._send is not None
                delivery.handed = 0
                self._send.give_back()
