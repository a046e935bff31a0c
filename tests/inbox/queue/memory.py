"""A broker in memory that keeps the contract and can be made to break: away, full, silent after it took, cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from surehook.inbox.queue.port import Length, QueueAway, QueueMessage


class MemoryQueue:
    """`port.Broker`. What it holds outlives every connection.

    is_away      nothing answers; connections that are open are lost
    is_mute      it takes and does not say so
    """

    def __init__(self, most_bytes: int = 1 << 30) -> None:
        self.most_bytes = most_bytes
        self.waiting: dict[int, bytes] = {}
        self.put_aside: list[tuple[bytes, str]] = []
        self.held: dict[int, MemoryTaking] = {}
        self.is_away = self.is_mute = False
        self.asked = 0  # for connections
        self._number = 0
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    @property
    def bytes(self) -> int:
        return sum(map(len, self.waiting.values()))

    async def publisher(self) -> MemoryGiving:
        self.asked += 1
        self.there()
        return MemoryGiving(self)

    async def consumer(self, taker: str) -> MemoryTaking:
        self.there()
        return MemoryTaking(self)

    def there(self) -> None:
        if self.is_away:
            raise QueueAway("nothing is there")

    def add(self, body: bytes) -> bool:
        if self.bytes + len(body) > self.most_bytes:
            return False
        self._number += 1
        self.waiting[self._number] = body
        return True

    def wake(self) -> None:
        """Doors and movers may be in loops of their own."""
        waiters, self._waiters = self._waiters, []
        for loop, event in waiters:
            loop.call_soon_threadsafe(event.set)

    async def changed(self) -> None:
        event = asyncio.Event()
        self._waiters.append((asyncio.get_running_loop(), event))
        await event.wait()


class MemoryGiving:
    def __init__(self, queue: MemoryQueue) -> None:
        self._queue = queue

    async def put(self, bodies: Sequence[bytes]) -> list[bool]:
        self._queue.there()
        answers = [self._queue.add(body) for body in bodies]
        if self._queue.is_mute:
            raise QueueAway("no confirm in time")
        self._queue.wake()
        return answers

    async def close(self) -> None:
        pass


class MemoryTaking:
    def __init__(self, queue: MemoryQueue) -> None:
        self._queue = queue

    async def take(self, limit: int, *, wait_s: float) -> list[QueueMessage]:
        self._queue.there()
        if not (found := self._free(limit)):
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._queue.changed()
            found = self._free(limit)
        self._queue.held |= dict.fromkeys(found, self)
        return [QueueMessage(number, self._queue.waiting[number]) for number in found]

    def _free(self, limit: int) -> list[int]:
        return [number for number in self._queue.waiting if number not in self._queue.held][:limit]

    async def done(self, messages: Sequence[QueueMessage]) -> None:
        self._queue.there()
        for one in messages:
            self._queue.waiting.pop(one.tag, None)
            self._queue.held.pop(one.tag, None)

    async def aside(self, message: QueueMessage, reason: str) -> None:
        await self.done([message])
        self._queue.put_aside.append((message.body, reason))

    async def length(self) -> Length:
        self._queue.there()
        return Length(len(self._queue.waiting), len(self._queue.put_aside))

    async def close(self) -> None:
        for number in [number for number, holder in self._queue.held.items() if holder is self]:
            del self._queue.held[number]
