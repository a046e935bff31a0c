"""Group commit with turns: whoever waits at this moment shares a flush, and tenants take turns in filling it.

Start-time fair queueing. Each tenant's line has a position on a scale of cost; the line that stands lowest goes
next, and moves up by the cost of what it brings. A tenant with a hundred thousand events waiting and one with a
single event so get the same share of every flush, whatever their events cost. A line that was empty enters
where the scale is now, or where its last turn left it if that is higher: nobody saves turns up, and nobody
escapes what was spent by coming one at a time.

A line may have to rest after a turn, in proportion to what it has brought and to how many others are at it; whoever has
not had a turn of late goes at once. So the time that all of them take together is a stated share. A rest is over when
there is nobody any more to rest for.

Deficit round robin is the road not taken: its quantum must be as large as the dearest item (an event for ten
thousand endpoints), or rounds pass in which nobody may send.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from heapq import heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")

LOOK_S = 1.0  # between looks whether those who rest still have to
# 128 events: a commit's fixed cost is a tenth of theirs, and those behind wait a quarter as long.
OTHERS_PART = 4


class _Line(Generic[T]):
    """Line of one tenant: each waiting item with its parts and their cost, and where the line stands on the scale."""

    __slots__ = ("at", "items", "rests")

    def __init__(self, at: int) -> None:
        self.at = at
        self.items: deque[tuple[T, int, int]] = deque()
        self.rests = False


class FairBatches(Generic[T]):
    """Lines of items by tenant, flushed by one writer. An item may have many parts that cost the same, and is `cut` where
    not all of them fit: at most `items` parts and, unless one alone is dearer, `cost` are written at a time, of which a
    tenant brings `turn` before the next one does. Where `others` may come meanwhile, a flush is a quarter of
    that: who finds one under way waits for what is left of it, and for the next, in which it has its turn.

    A flush starts at once when none runs, so a lone item never waits for a timer. `flush` must not raise: what
    becomes of a failed batch is its business.
    """

    def __init__(
        self,
        flush: Callable[[list[T]], Awaitable[None]],
        *,
        items: int,
        cost: int,
        turn: int,
        others: Callable[[], bool],
        wanted: Callable[[T], bool] = lambda item: True,
        cut: Callable[[T, int], T] = lambda item, parts: item,
        rest: Callable[[int], float] = lambda cost: 0.0,
    ) -> None:
        """`wanted` says whether somebody still waits for an item: what nobody waits for costs its line nothing. `cut` takes
        the first so many parts out of an item that has more. `rest`: seconds that a line which is alone here rests after a
        turn of this cost."""
        self._flush = flush
        self._items = items
        self._cost = cost
        self._turn_cost = turn
        self._others = others
        self._wanted = wanted
        self._cut = cut
        self._rest = rest
        self._now = 0  # on the scale: where the line stands that had the last turn
        self._count = 0  # of turns given out: who came first goes first where two stand level
        self._lines: dict[str, _Line[T]] = {}  # of this busy period: empty lines keep what they have spent
        self._turns: list[tuple[int, int, _Line[T]]] = []  # a heap of the lines that have something
        self._resting: list[tuple[float, int, _Line[T]]] = []  # a heap of lines by the end of their rest
        self._running: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()  # somebody came, or nobody is to rest any more
        self._hurry = False

    def put(self, tenant: str, item: T, cost: int, parts: int = 1) -> None:
        """`cost`: of each part."""
        line = self._lines.get(tenant)
        if line is None:
            line = self._lines[tenant] = _Line(self._now)
        if not line.items:
            line.at = max(line.at, self._now)
            if not line.rests:
                self._queue(line)
                self._woken.set()
        line.items.append((item, cost, parts))
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())

    async def drained(self) -> None:
        """Wait until nothing waits and nothing is being flushed; nobody rests meanwhile."""
        self._hurry = True
        self._woken.set()
        try:
            while self._running is not None:
                await asyncio.wait((self._running,))
        finally:
            self._hurry = False

    def _queue(self, line: _Line[T]) -> None:
        self._count += 1
        heappush(self._turns, (line.at, self._count, line))

    async def _run(self) -> None:
        try:
            while self._turns or self._resting:
                if self._resting:
                    await self._rested()
                if self._turns:
                    await self._flush(self._take())
        finally:
            # In this very step, so that whoever comes next finds a writer at work or begins one.
            self._running = None
        self._lines.clear()
        self._now = 0

    async def _rested(self) -> None:
        """Give those their turns again who have rested; where nobody has one, wait for that, or for somebody new."""
        now = asyncio.get_running_loop().time()
        is_over = self._hurry or not self._rest(1)  # those whom they made room for have gone
        while self._resting and (is_over or self._resting[0][0] <= now):
            *_, line = heappop(self._resting)
            line.rests = False
            if line.items:
                self._queue(line)
        if self._resting and not self._turns:
            self._woken.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(self._resting[0][0], now + LOOK_S)):
                    await self._woken.wait()

    def _take(self) -> list[T]:
        """The next batch: turn by turn, until it is full or nobody waits."""
        batch: list[T] = []
        items, room = self._items, self._cost
        if self._others():
            items, room = max(1, items // OTHERS_PART), max(1, room // OTHERS_PART)
        is_full = False
        while self._turns and not is_full:
            self._now, _, line = heappop(self._turns)
            # Where nobody else waits, one turn after another is the same as one long turn.
            turn = self._turn_cost if self._turns else max(room, 1)
            spent, parts, is_full = self._turn(line, batch, turn, items, room)
            items -= parts
            room -= spent
            line.at += spent
            self._next(line, spent)
        return batch

    def _next(self, line: _Line[T], spent: int) -> None:
        """After a turn: into the line for the next one, or to rest."""
        rest = 0.0 if self._hurry else self._rest(spent)
        if rest:
            line.rests = True
            self._count += 1
            at = asyncio.get_running_loop().time() + rest * (1 + len(self._turns) + len(self._resting))
            heappush(self._resting, (at, self._count, line))
        elif line.items:
            self._queue(line)

    def _turn(self, line: _Line[T], batch: list[T], turn: int, most: int, room: int) -> tuple[int, int, bool]:
        """Let a line bring what its turn allows; returns its cost and parts, and whether the batch is full."""
        items, spent, brought = line.items, 0, 0
        while items and spent < turn:
            item, cost, parts = items[0]
            if self._wanted(item):
                fit = min(most - brought, (room - spent) // cost)
                if fit < 1:
                    if batch:
                        return spent, brought, True
                    fit = 1  # dearer than a whole batch
                fit = min(fit, -((spent - turn) // cost))  # with the last one, the turn is over
                if fit < parts:
                    items[0] = item, cost, parts - fit
                    item, parts = self._cut(item, fit), fit
                else:
                    items.popleft()
                spent += cost * parts
            else:
                items.popleft()
            batch.append(item)
            brought += parts
        return spent, brought, False
