"""Work that memory does not hold: retries, what a dead node left, what other processes accepted.

Rows are leased in batches, a little before they are due: as many as slots can use soon and never more than
memory has room for, so that one worker does not hoard what another could send. A batch begins small and
doubles while the ledger gives as much as was asked. The next rows are claimed while the last are being sent:
when the queue has run down, a record window says so, and where memory was full, what was parked.

Rows come in the order in which they are due, so that everybody would wait behind one endpoint's fifty thousand. Whoever
has enough in memory is therefore passed over, endpoint or tenant, until that has run down; what the others have is
claimed past it.

While a tenant with very many endpoints has use for all that claims bring, one follows another until it has enough. A hint
does not wait for that: between two of them there is a look past such a crowd, at what has just fallen due. The next one is
the crowd's again, so it waits for one look at most; and it is no sooner than after a hint that came too late.

The loop looks at a lane when it is told to (`wake` by this process, `woken` by another), when a retry that it
knows of comes near, and at every poll: what nobody told it of is found by then. A hint from another process
reaches every worker, and all but one of them may come too late. Who comes too late answers the next hint a
little later, up to `QUIET_MOST_S`; who finds work answers at once again. So an idle worker asks for nothing at
most sixteen times a second, whatever the others accept.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from surehook.core.errors import LedgerUnavailable
from surehook.core.model import Delivery, Lane
from surehook.delivery.company import Company
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.lost import Lost
from surehook.delivery.routes import Directory, Route
from surehook.delivery.settings import EngineSettings
from surehook.delivery.timers import Timers
from surehook.ports.clock import Clock
from surehook.ports.ledger import Ledger, Skip, is_full

BATCH_LEAST = 64  # rows: a claim's fixed cost is small beside theirs
AHEAD_LEAST = 32  # rows beyond the free slots: what is sent while the next claim is under way
IN_OTHER_HANDS_S = 0.02  # a row that is due and was not given is being leased by somebody else
BESIDE_FIRST_S, BESIDE_MOST_S = 0.05, 0.1  # between looks past those who have enough, as they find nothing
CLAIM_BYTES = 16 << 20  # bodies in one claim: the ledger's answer is in memory twice for a moment
BACKLOG_MS = 100  # a full claim of rows that have been due for so long is of a backlog
QUIET_FIRST_S, QUIET_MOST_S = 0.002, 0.064  # after claims that came too late


class Look:
    """What the loop knows of one lane. Boot times in seconds, due times in Unix milliseconds."""

    __slots__ = (
        "at", "batch", "beside_s", "crowd", "due", "empty_at", "far_at", "for_hint", "full", "hint_at", "hinted",
        "quiet_s", "starved",
    )  # fmt: skip

    def __init__(self) -> None:
        self.at: float | None = 0.0  # look from then on; None: nothing calls for it
        self.due: int | None = None  # the earliest retry that is known of
        self.batch = BATCH_LEAST
        self.beside_s = BESIDE_FIRST_S
        self.far_at = 0.0  # until then looks past those who have enough see what is fresh alone
        # Tenants that fill claims in the order of due times: what others have lies behind their rows.
        self.crowd: tuple[str, ...] = ()
        self.hint_at: float | None = None  # look for a hint from then on
        self.for_hint = False  # the last look was for a hint, past the crowd: now it is the crowd's turn
        self.hinted = False  # it is another process's hint that calls
        self.quiet_s = 0.0
        self.empty_at = 0.0  # when a hint last led to nothing
        self.full: dict[Route, None] = {}  # endpoints that have enough in memory, as an ordered set
        self.starved = False  # there may be more, and the slots have enough for now

    def is_behind_crowd(self, now: float) -> bool:
        """Whether a claim in the order of due times would bring the crowd's rows before what a hint tells of."""
        return bool(self.crowd) and self.hint_at is not None and self.hint_at <= now

    def by(self, at: float) -> None:
        """Look then at the latest. Who called while a look was under way may have meant something that it could not see
        yet, and has a look of their own."""
        if self.at is None or at < self.at:
            self.at = at


class Claim:
    """The claiming loop over the lanes that this node delivers. `orphan` is told of rows whose endpoint memory
    does not know, `stray` of rows that belong to another node's lane."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        settings: EngineSettings,
        directory: Directory,
        dispatch: Dispatch,
        node: Callable[[], bytes],
        park: Callable[[Route, Delivery, str], None],
        orphan: Callable[[list[Delivery]], None],
        stray: Callable[[Route, Delivery], None],
        hand_back: Callable[[list[Delivery]], None],
        may_claim: Callable[[], bool],
        company: Company,
        lost: Lost,
        defect: Callable[[str, BaseException], None],
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._settings = settings
        self._directory = directory
        self._dispatch = dispatch
        self._node = node
        self._park = park
        self._orphan = orphan
        self._stray = stray
        self._hand_back = hand_back
        self._may_claim = may_claim
        self._company = company
        self._lost = lost
        self._wake = asyncio.Event()
        self._stopped = False
        self._barred = False  # resting because nothing may be claimed, whatever calls for a look
        # The patient lane first: what is due there has waited already.
        self._looks: dict[Lane, Look] = {lane: Look() for lane in sorted(settings.lanes, reverse=True)}
        self._poll_at = 0.0
        self._ahead_ms = int(settings.claim_ahead_s * 1000)
        # Endpoints whose rows are on their way back, until memory has caught up.
        self._unknown: set[bytes] = set()
        self.timers = Timers(clock, self._due, stray, ahead_ms=self._ahead_ms, defect=defect)

    def wake(self) -> None:
        """There may be due work in the ledger: look now, in every lane."""
        for look in self._looks.values():
            look.at, look.hinted = self._clock.boot(), False
            look.far_at = 0.0  # it may lie anywhere
        self._wake.set()

    def woken(self, lane: Lane) -> None:
        """Another process says there is work: look, but not at once where the last such looks were in vain."""
        look = self._looks.get(lane)
        if look is None:
            return
        at = max(self._clock.boot(), look.empty_at + look.quiet_s)
        if look.hint_at is None:
            look.hint_at = at
        if look.at is None or at < look.at:
            look.at, look.hinted = at, True
            self._wake.set()

    def hint(self, lane: Lane, due_at: int) -> None:
        """A retry was written for this instant."""
        look = self._looks[lane]
        if look.due is None or due_at < look.due:
            look.due = due_at
            if due_at - self._clock.now() < self._settings.poll_s * 1000:
                self._wake.set()

    def freed(self) -> None:
        """Results are in the book, or what was parked: slots are free again, or memory."""
        if self._barred and self._may_claim():
            self._wake.set()
        for lane, look in self._looks.items():
            if look.starved and self._has_use(lane):
                look.starved, look.at = False, self._clock.boot()
                self._wake.set()
        if self._dispatch.spilled and self._dispatch.memory.has_room():
            self._dispatch.spilled = False
            self.wake()

    def stop(self) -> None:
        """End the loop once the call in hand is done."""
        self._stopped = True
        self._wake.set()

    async def run(self) -> None:
        """Claim until it is stopped."""
        while not self._stopped:
            full = False
            if self._may_claim():
                try:
                    full = await self._round()
                except LedgerUnavailable:
                    self.wake()  # look again as soon as it answers
                    raise
            if not full and not self._stopped:
                await self._rest()

    async def _round(self) -> bool:
        """Look at every lane that calls for it; True where one gave as much as was asked (there may be more)."""
        full = False
        boot = self._clock.boot()
        polls = boot >= self._poll_at
        if polls:
            self._poll_at = boot + self._settings.poll_s
        for lane, look in self._looks.items():
            due = look.due is not None and look.due - self._ahead_ms <= self._clock.now()
            called = look.at is not None and look.at <= boot
            if polls or due or called:
                full = await self._look(lane, look, ask_due=polls or due or not look.hinted) or full
        self._dispatch.pump()
        return full

    async def _look(self, lane: Lane, look: Look, *, ask_due: bool) -> bool:
        hinted, look.hinted, look.at = look.hinted, False, None
        memory = self._dispatch.memory
        skip, wanted = self._needs(lane, look)
        limit = min(wanted, look.batch, self._settings.claim_rows, memory.room())
        if limit <= 0:
            look.starved, look.due = True, None
            return False
        size = min(memory.room_bytes(), CLAIM_BYTES)
        node, now = self._node(), self._clock.now()
        boot = self._clock.boot()
        look.for_hint = skip is None and look.is_behind_crowd(boot) and not look.for_hint
        if look.for_hint:
            skip = Skip(tenants=look.crowd)
        told, look.hint_at = look.hint_at, None
        fresh = look.for_hint or boot < look.far_at
        asked: dict[str, Any] = {
            "node": node,
            "limit": limit,
            "due_by": now + self._ahead_ms,
            "now": now,
            "size": size,
        }
        with self._lost.leasing():
            if skip is None:
                rows = await self._ledger.claim(lane, **asked)
            else:
                rows = await self._ledger.claim_others(lane, skip=skip, fresh=fresh, **asked)
            if node != self._node():
                return False  # buried before the answer came: they are free again
            self.take(rows)
        self._tell_of_retries(rows)
        if rows and (skip is not None or not look.crowd):  # the crowd's rows say nothing about hints
            look.quiet_s = 0.0
        elif not rows and (hinted or look.for_hint):
            look.quiet_s = min(max(QUIET_FIRST_S, look.quiet_s * 2), QUIET_MOST_S)
            look.empty_at = self._clock.boot()
        full = is_full(rows, limit=limit, size=size)
        if look.for_hint:  # the crowd's turn, at once
            look.at = self._clock.boot()
            if full:
                look.hint_at = look.at
            return True
        if skip is None:
            look.crowd = self._crowd(rows, now) if full else ()
            if full and look.hint_at is None:
                look.hint_at = told  # its rows may lie behind these
        if full:
            look.batch = min(self._settings.claim_rows, look.batch * 2)
            look.at = self._clock.boot()
            return True
        look.batch = BATCH_LEAST
        near = now + self._ahead_ms
        if skip is not None:
            look.starved = True
            boot = self._clock.boot()
            if rows:
                look.beside_s = BESIDE_FIRST_S
            elif not fresh:
                look.beside_s = min(look.beside_s * 2, BESIDE_MOST_S)
                look.far_at = boot + look.beside_s
            look.by(max(look.far_at, boot) if fresh and not rows else boot + look.beside_s)
        elif ask_due:
            look.due = await self._ledger.next_due(lane)
            if look.due is not None and look.due <= near:
                look.due = None
                look.by(self._clock.boot() + IN_OTHER_HANDS_S)
        if look.due is not None and look.due <= near:
            look.due = None
        return False

    def _needs(self, lane: Lane, look: Look) -> tuple[Skip | None, int]:
        """Whose rows to pass over (None: nobody's), and how many of the others the lane's slots can use soon.

        A tenant has enough where what it has in memory is its part of the slots among the tenants that have something
        there, or all that it may hold; an endpoint where its queue is as long as taking back from parking makes it.
        """
        free = self._free(lane)
        waiting = self._dispatch.startable(lane, of_all=free)
        tenants: set[str] = set()
        if not self._dispatch.memory.is_lone:
            tenants.update(name for name, count in waiting.items() if count * len(waiting) >= free)
            tenants.update(self._dispatch.memory.full_tenants())
        for route in [route for route in look.full if len(route.queues[lane]) < route.pull // 2]:
            del look.full[route]
        wanted = free - sum(count for name, count in waiting.items() if name not in tenants)
        if not tenants and not look.full and not self._unknown:
            return None, wanted
        endpoints = (*(route.endpoint.id for route in look.full), *sorted(self._unknown))
        return Skip(endpoints=endpoints, tenants=tuple(sorted(tenants))), wanted

    def _crowd(self, rows: list[Delivery], now: int) -> tuple[str, ...]:
        """The tenants that most of a full claim's rows are of, where there are others and the rows are of a backlog."""
        if self._dispatch.memory.is_lone or not rows or rows[-1].due_at > now - BACKLOG_MS:
            return ()
        counts = Counter(row.tenant for row in rows)
        return tuple(sorted(name for name, count in counts.items() if count * len(counts) >= len(rows)))

    def _free(self, lane: Lane) -> int:
        """How many rows the lane could start, and a few to have at hand."""
        state = self._dispatch.lanes[lane]
        return max(0, state.slots - state.busy) + AHEAD_LEAST

    def _has_use(self, lane: Lane) -> bool:
        """Whether the lane's slots can use a batch of rows soon, whosever they are."""
        return not self._dispatch.has_startable(lane, self._free(lane) - AHEAD_LEAST + 1)

    def take(self, rows: list[Delivery], *, out_of_parking: bool = False) -> int:
        """Leased rows come into memory: queued, timed, or parked where their endpoint cannot take them now. Returns
        how many of them went back to the ledger, because another node delivers their lane.

        What came out of parking was asked for while it had a share, and is kept although a claim under way took that
        first: of two that count on the same room, one would be parked and taken back for ever."""
        orphans: list[Delivery] = []
        later: list[Delivery] = []
        strays = 0
        now = self._clock.now()
        soon = now + 2 * self._ahead_ms
        for delivery in rows:
            route = self._directory.routes.get(delivery.endpoint)
            if route is None:
                orphans.append(delivery)
                continue
            if delivery.lane not in self._looks:
                strays += 1
                self._dispatch.memory.hold(route, delivery)
                self._stray(route, delivery)
                continue
            if delivery.due_at > soon:  # taken out of parking, and its time is far: the book keeps it
                later.append(delivery)
                continue
            has_share = out_of_parking or self._dispatch.memory.has_share(route)
            self._dispatch.memory.hold(route, delivery)
            reason = route.takes or (None if has_share else "share")
            if reason is not None:
                self._park(route, delivery, reason)
                if reason == "share":
                    self._looks[delivery.lane].full[route] = None
            elif delivery.due_at > now:
                self.timers.add(route, delivery)
            else:
                self._dispatch.push(route, delivery)
                if len(route.queues[delivery.lane]) >= route.pull:
                    self._looks[delivery.lane].full[route] = None
        if orphans:
            self._unknown.update(delivery.endpoint for delivery in orphans)
            self._orphan(orphans)
        if later:
            self._hand_back(later)
        return strays

    def _tell_of_retries(self, rows: list[Delivery]) -> None:
        if len(self._directory.tenants) > 1:
            now = asyncio.get_running_loop().time()
            for tenant, count in Counter(row.tenant for row in rows if row.attempt > 1).items():
                self._company.tried_again(tenant, count, now)

    def known(self, rows: Sequence[Delivery]) -> None:
        """Memory has caught up with orphans, or they have ended: their endpoints are passed over no longer."""
        self._unknown.difference_update(delivery.endpoint for delivery in rows)

    def _due(self, route: Route, delivery: Delivery) -> None:
        self._dispatch.push(route, delivery)
        self._dispatch.pump()

    async def _rest(self) -> None:
        """Until the earliest thing that calls for a look."""
        boot = self._clock.boot()
        wait_s = self._poll_at - boot
        for look in self._looks.values():
            if look.at is not None:
                wait_s = min(wait_s, look.at - boot)
            if look.due is not None:
                wait_s = min(wait_s, (look.due - self._ahead_ms - self._clock.now()) / 1000)
        self._barred = not self._may_claim()
        if self._barred:
            wait_s = self._settings.poll_s
        try:
            async with asyncio.timeout(max(0.001, wait_s)):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()
