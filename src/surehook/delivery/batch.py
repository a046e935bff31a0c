"""Group commit: whoever waits at this moment shares one flush.

A flush starts at once when none runs, so a lone request never waits for a timer and batches form only
under load. With a window, results gather for that long first (nobody waits for them), and a full line
flushes at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Batches(Generic[T]):
    """A line of items, flushed in order, at most `rows` of weight at a time, by at most `writers` at once.

    What becomes of a batch that the ledger refuses is the business of `flush`. What it raises is a defect: `failed`
    is told of it with the batch, and the line goes on.
    """

    def __init__(
        self,
        flush: Callable[[list[T]], Awaitable[None]],
        *,
        failed: Callable[[list[T], Exception], None],
        rows: int,
        window_s: float = 0.0,
        writers: int = 1,
    ) -> None:
        self._flush = flush
        self._failed = failed
        self._rows = rows
        self._window_s = window_s
        self._writers = writers
        self._line: list[tuple[T, int]] = []
        self._running: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._hurry = False
        self._nudged = False
        self._under_way: list[list[T]] = []
        self.weight = 0  # of what waits, without what is being flushed
        self.flushing = 0  # weight under way

    def put(self, item: T, weight: int = 1) -> None:
        self._line.append((item, weight))
        self.weight += weight
        if len(self._running) >= self._writers:
            return
        if self._window_s and self.weight < self._rows and not self._hurry:
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(self._window_s, self._start)
            return
        self._start()

    def nudge(self) -> None:
        """Flush although nothing waits: what goes along with the items is worth a flush of its own."""
        self._nudged = True
        self._start()

    @property
    def is_empty(self) -> bool:
        return not self._line and not self._running and not self._nudged

    def items(self) -> list[T]:
        """Everything that waits or is being flushed."""
        items = [item for batch in self._under_way for item in batch]
        items += [item for item, _ in self._line]
        return items

    def forget(self) -> list[T]:
        """Take out everything that waits; what is being flushed goes on."""
        line, self._line, self.weight = self._line, [], 0
        return [item for item, _ in line]

    async def drained(self) -> None:
        """Flush without waiting for windows until nothing waits and nothing runs."""
        self._hurry = True
        try:
            while not self.is_empty:
                if len(self._running) < self._writers:
                    self._start()
                await asyncio.wait(set(self._running))
        finally:
            self._hurry = False

    def _start(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not (self._line or self._nudged) or len(self._running) >= self._writers:
            return
        task = asyncio.get_running_loop().create_task(self._run())
        self._running.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if self._line or self._nudged:
            self._start()

    async def _run(self) -> None:
        while self._line or self._nudged:
            self._nudged = False
            batch, weight = self._take()
            self.flushing += weight
            self._under_way.append(batch)
            try:
                await self._flush(batch)
            except Exception as error:
                self._failed(batch, error)
            finally:
                self.flushing -= weight
                self._under_way.remove(batch)
            if self._window_s and not self._hurry and 0 < self.weight < self._rows:
                await asyncio.sleep(self._window_s)

    def _take(self) -> tuple[list[T], int]:
        line, rows = self._line, self._rows
        if self.weight <= rows:
            self._line = []
            weight, self.weight = self.weight, 0
            return [item for item, _ in line], weight
        taken = weight = 0
        while taken < len(line) and (not taken or weight + line[taken][1] <= rows):
            weight += line[taken][1]
            taken += 1
        self._line = line[taken:]
        self.weight -= weight
        return [item for item, _ in line[:taken]], weight
