"""The way in: idempotency → ids → fan-out → the exact body, rendered once → group commit → hand over.

All requests waiting at this moment share one transaction. 202 goes out after its commit, and the flusher
(not the request, whose client may be gone) gives the deliveries that were born leased to dispatch through
memory: the healthy path never claims and never polls.

Fan-out is made from memory and the transaction checks that memory was current; where it was not, nothing is
written, configuration is read again and the whole batch fans out anew. A refusal on memory's word is checked
against the book's version first (`current`), so whatever was answered 201 anywhere holds for the next call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from surehook.core import envelope, ids, instants, lanes
from surehook.core.envelope import EventIn
from surehook.core.errors import (
    CommitUnknown,
    LedgerBroken,
    LedgerUnavailable,
    NodeBuried,
    Overloaded,
    Problem,
)
from surehook.core.model import Delivery, Event, Lane
from surehook.delivery.batch import Batches
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.handoff.send import Send
from surehook.delivery.lost import Lost
from surehook.delivery.routes import Directory, Route
from surehook.delivery.settings import EngineSettings
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.ledger import Incoming, Ledger, Taken

UNKNOWN_TRIES = 5  # commits in a row with an unknown outcome before the caller is told 503
STALE_TRIES = 10  # configuration changes in a row that one batch will fan out anew for


class Waiting(Struct, gc=False):
    """One request in the line: its events, and the future its answer goes to."""

    events: Sequence[EventIn]
    keys: Sequence[str | None]
    done: asyncio.Future[list[Taken | Problem]]
    incoming: list[Incoming]
    routes: list[list[Route]]  # per event, the routes of its deliveries


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
        fail: Callable[[BaseException], None],
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
        self._fail = fail
        self._hungry = hungry
        self._left = left
        self._lost = lost
        self._send = send  # to workers elsewhere, where there is a broker
        self.closed = False
        self._count = 0  # ids made in the millisecond `_count_ms`
        self._count_ms = -1
        self.accepted = 0  # events taken since the start, repeats not counted
        self._batches: Batches[Waiting] = Batches(self._flush, rows=settings.accept_rows)

    async def take(self, events: Sequence[EventIn], keys: Sequence[str | None]) -> list[Taken | Problem]:
        """Answer for each event once all of them are on disk (or refused).

        Raises Overloaded where the line is full or the server is stopping, LedgerUnavailable where the book
        cannot be written: in both cases nothing of this request is on disk, or a repeat will find it.
        """
        if self.closed:
            raise Overloaded("the server is stopping")
        if self._batches.weight + len(events) > self._settings.waiting_events:
            raise Overloaded("too many events are waiting for the disk")
        waiting = Waiting(events, keys, asyncio.get_running_loop().create_future(), [], [])
        self._batches.put(waiting, len(events))
        return await waiting.done

    @property
    def waiting(self) -> int:
        return self._batches.weight + self._batches.flushing

    async def drained(self) -> None:
        await self._batches.drained()

    # -- the flusher ------------------------------------------------------------------------------------

    async def _flush(self, batch: list[Waiting]) -> None:
        try:
            with self._lost.leasing():  # what is born leased
                await self._commit(batch)
        except (LedgerUnavailable, NodeBuried) as error:
            for waiting in batch:
                self._give_back(waiting)
                if not waiting.done.done():
                    told = error if isinstance(error, LedgerUnavailable) else LedgerUnavailable(str(error))
                    waiting.done.set_exception(told)
            if isinstance(error, LedgerBroken | NodeBuried):
                self._fail(error)

    async def _commit(self, batch: list[Waiting]) -> None:
        node, now, version = self._node(), self._clock.now(), self._directory.version
        for waiting in batch:
            self._prepare(waiting, now)
        unknown = stale = 0
        while True:
            rows = [incoming for waiting in batch for incoming in waiting.incoming]
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
            if unknown:  # what fans out anew gets new ids, and the old ones may be in the book
                raise CommitUnknown("configuration changed after a commit of which nobody knows the outcome")
            stale += 1
            if stale >= STALE_TRIES:
                raise LedgerUnavailable("the configuration keeps changing")
            await self._reload()
            version = self._directory.version
            for waiting in batch:
                self._give_back(waiting)
                self._prepare(waiting, now)
        if node != self._node():
            for waiting in batch:
                self._unhold(waiting)  # buried before the answer came: it is free again
        at = 0
        left: set[Lane] = set()
        for waiting in batch:
            taken = receipt.taken[at : at + len(waiting.incoming)]
            at += len(waiting.incoming)
            self._hand_over(waiting, taken, left)
        for lane in sorted(left):
            self._left(lane)
        self._dispatch.pump()

    def _prepare(self, waiting: Waiting, now: int) -> None:
        """Ids, fan-out and body of every event of a request."""
        waiting.incoming = []
        waiting.routes = []
        for event_in, key in zip(waiting.events, waiting.keys, strict=True):
            incoming, routes = self._incoming(event_in, key, now)
            waiting.incoming.append(incoming)
            waiting.routes.append(routes)

    def _incoming(self, event_in: EventIn, key: str | None, now: int) -> tuple[Incoming, list[Route]]:
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
        routes = list(self._directory.fan_out(event_in.tenant, event_in.type))
        deliveries = [self._delivery(route, event_in, event_id, body, now) for route in routes]
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
            fan_out=len(deliveries),
        )
        return Incoming(event=event, deliveries=deliveries, key=key, given=given is not None), routes

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
        if delivery.parked is None and mine and self._dispatch.has_room():
            if self._dispatch.has_share(route) and "share" not in route.parked:
                delivery.held = True
                self._dispatch.hold(route, len(body))
            else:
                delivery.parked = "share"
        elif delivery.parked is None and self._send is not None:
            delivery.handed = self._send.reserve(delivery.lane)
        return delivery

    def _hand_over(self, waiting: Waiting, taken: Sequence[Taken], left: set[Lane]) -> None:
        """Committed: answer the request, and give what was born leased to dispatch. `left` gathers the lanes of
        what was born unheld."""
        answers: list[Taken | Problem] = []
        for incoming, routes, answer in zip(waiting.incoming, waiting.routes, taken, strict=True):
            answers.append(answer)
            if not answer.fresh:
                self._forget(incoming, routes)
                continue
            self.accepted += 1
            for delivery, route in zip(incoming.deliveries, routes, strict=True):
                if delivery.held:
                    self._dispatch.push(route, delivery)
                elif delivery.parked is not None:
                    route.parked.add(delivery.parked)
                    self._hungry(route)
                elif delivery.handed:
                    assert self._send is not None
                    self._send.put_reserved(delivery.lane, delivery.id)
                else:
                    left.add(delivery.lane)
        if not waiting.done.done():
            waiting.done.set_result(answers)

    def _give_back(self, waiting: Waiting) -> None:
        for incoming, routes in zip(waiting.incoming, waiting.routes, strict=True):
            self._forget(incoming, routes)

    def _forget(self, incoming: Incoming, routes: list[Route]) -> None:
        """What these deliveries were promised, in memory and of the broker, is free again."""
        self._let_go(incoming, routes)
        for delivery in incoming.deliveries:
            if delivery.handed:
                assert self._send is not None
                delivery.handed = 0
                self._send.give_back()

    def _unhold(self, waiting: Waiting) -> None:
        for incoming, routes in zip(waiting.incoming, waiting.routes, strict=True):
            self._let_go(incoming, routes)

    def _let_go(self, incoming: Incoming, routes: list[Route]) -> None:
        for delivery, route in zip(incoming.deliveries, routes, strict=True):
            if delivery.held:
                delivery.held = False
                self._dispatch.let_go(route, len(delivery.body))
