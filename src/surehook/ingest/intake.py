"""Sends many messages in few requests: what the server has stored is acknowledged, what it refuses is put aside.

Messages that wait at the same moment share a request, as requests share a commit: no timer when idle, batches under load.
A server that is away, full or refuses our key keeps the messages where they are, unacknowledged and bounded by
the prefetch, and is asked again after a pause that doubles; no message is put aside for a fault of the server. A request that
is refused as a whole for its content is halved until the one message is found. Whatever happens, a message is
acknowledged only when its event, or its copy in the dead-letter queue, is safe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct

from surehook.client.calls import Sent
from surehook.client.errors import Refused, Unreachable
from surehook.core import limits
from surehook.core.errors import Problem
from surehook.delivery.batch import Batches
from surehook.ingest.reading import BrokerMessage, IngestRules, item

BATCH_EVENTS = 500  # in one request
BATCH_BYTES = limits.BATCH_BODY_BYTES // 2  # … and its bytes
WRITERS = 3  # requests at once: one is read, one is committed, one is answered
PAUSE_FIRST_S, PAUSE_MOST_S = 0.2, 30.0
OUR_TROUBLE = (401, 403, 404, 408, 429)  # and 5xx: no fault of the messages


class Delivered(Protocol):
    """A message that is ours until it is acknowledged or put aside. Neither raises: on a lost connection both do
    nothing, and the message comes again."""

    @property
    def message(self) -> BrokerMessage: ...
    def ack(self) -> None: ...
    async def put_aside(self, code: str, detail: str, field: str | None) -> None:
        """Send a copy with the reason to the dead-letter queue; when that is safe, acknowledge the message."""
        ...


class PendingItem(Struct):
    delivered: Delivered
    item: bytes
    is_open: bool = True  # neither acknowledged nor put aside


Post = Callable[[list[bytes]], Awaitable[list[Sent | Refused]]]


class Intake:
    """`post` publishes items in one request; `tell` gets a sentence for the operator."""

    def __init__(
        self,
        post: Post,
        *,
        rules: IngestRules,
        new_id: Callable[[], str],
        sleep: Callable[[float], Awaitable[object]],
        tell: Callable[[str], None],
    ) -> None:
        self._post = post
        self._rules = rules
        self._new_id = new_id
        self._sleep = sleep
        self._tell = tell
        self._batches: Batches[PendingItem] = Batches(
            self._flush, failed=self._broke, rows=BATCH_EVENTS, writers=WRITERS
        )
        self._asides: set[asyncio.Task[None]] = set()
        self.published = 0
        self.refused = 0

    @property
    def settled(self) -> int:
        """Number of messages done with since the beginning."""
        return self.published + self.refused

    def take(self, delivered: Delivered) -> None:
        """Queue a message for publishing, or put it aside if it cannot be read."""
        try:
            entry = PendingItem(delivered, item(delivered.message, self._rules, event_id=self._new_id()))
        except Problem as problem:
            self._aside(delivered, problem.code, problem.detail, problem.field)
            return
        except Exception as error:
            # A defect of our reader: left unanswered, the message would hold back all behind it for ever.
            self._aside(delivered, "unreadable", f"{type(error).__name__}: {error}", None)
            return
        self._batches.put(entry)

    async def drained(self) -> None:
        """Wait until everything that was taken is acknowledged or put aside."""
        await self._batches.drained()
        while self._asides:
            await asyncio.wait(set(self._asides))

    async def _flush(self, batch: list[PendingItem]) -> None:
        part: list[PendingItem] = []
        size = 0
        for entry in batch:
            if part and size + len(entry.item) > BATCH_BYTES:
                await self._publish(part)
                part, size = [], 0
            part.append(entry)
            size += len(entry.item) + 1
        await self._publish(part)

    async def _publish(self, entries: list[PendingItem]) -> None:
        pause_s = PAUSE_FIRST_S
        while True:
            try:
                answers = await self._post([entry.item for entry in entries])
                break
            except Unreachable as error:
                why = str(error)
            except Refused as error:
                if error.status < 500 and error.status not in OUR_TROUBLE:
                    await self._refused_whole(entries, error)
                    return
                why = str(error)
            if pause_s == PAUSE_FIRST_S:
                self._tell(f"waiting, messages stay in the queue: {why}")
            await self._sleep(pause_s)
            pause_s = min(pause_s * 2, PAUSE_MOST_S)
        if pause_s > PAUSE_FIRST_S:
            self._tell("the server answers again")
        again: list[PendingItem] = []
        for entry, answer in zip(entries, answers, strict=True):
            if isinstance(answer, Sent):
                self.published += 1
                entry.is_open = False
                entry.delivered.ack()
            elif answer.status >= 500 or answer.status in OUR_TROUBLE:
                again.append(entry)
            else:
                self._put_aside(entry, answer.code, answer.detail, answer.field)
        if again:
            await self._sleep(PAUSE_FIRST_S)
            await self._publish(again)

    async def _refused_whole(self, entries: list[PendingItem], error: Refused) -> None:
        if len(entries) == 1:
            self._put_aside(entries[0], error.code, error.detail, error.field)
            return
        half = len(entries) // 2
        await self._publish(entries[:half])
        await self._publish(entries[half:])

    def _broke(self, batch: list[PendingItem], error: Exception) -> None:
        """Put the messages without an answer aside after a defect of ours, so that a person finds them and the rest go on."""
        said = f"{type(error).__name__}: {error}"
        self._tell(f"a defect of surehook, report it; its messages are put aside: {said}")
        for entry in batch:
            if entry.is_open:
                self._put_aside(entry, "ingest_failed", said, None)

    def _put_aside(self, entry: PendingItem, code: str, detail: str, field: str | None) -> None:
        entry.is_open = False
        self._aside(entry.delivered, code, detail, field)

    def _aside(self, delivered: Delivered, code: str, detail: str, field: str | None) -> None:
        self.refused += 1
        task = asyncio.get_running_loop().create_task(delivered.put_aside(code, detail, field))
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)
