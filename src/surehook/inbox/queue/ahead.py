"""The queue of one inbox: what goes by it, what its doors ask, who moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from surehook.core.errors import SettingsError
from surehook.inbox.queue.blocking import BlockingFront
from surehook.inbox.queue.brokers import broker
from surehook.inbox.queue.front import Front
from surehook.inbox.queue.mover import Mover, Store, Stored
from surehook.inbox.queue.option import Queue
from surehook.inbox.queue.port import Broker, Length
from surehook.inbox.queue.telling import Telling
from surehook.inbox.receive import Taken
from surehook.inbox.trouble import Trouble
from surehook.inbox.watch import Watch


class Ahead:
    """`given` None: there is no queue, and all goes to the table. `draw(n)` makes random bytes, `boot` counts seconds."""

    def __init__(
        self,
        given: Queue | Broker | str | None,
        *,
        draw: Callable[[int], bytes],
        boot: Callable[[], float],
        trouble: Trouble,
        watch: Watch,
    ) -> None:
        self.broker = _broker(given)
        self._draw, self._boot, self._trouble, self._watch = draw, boot, trouble, watch
        self._telling = Telling("so the table takes what comes", boot)
        self._front: Front | None = None
        self._of: asyncio.AbstractEventLoop | None = None
        self._blocking = BlockingFront(self._make_front)

    def __bool__(self) -> bool:
        return self.broker is not None

    def confirmed(self, taken: Taken) -> bool:
        """Put a request into the queue; True: it is there for sure, and may be answered. Raises Overloaded."""
        if not self._is_for(taken):
            return False
        return self._counted(taken, self._blocking.confirmed(taken.request))

    async def confirmed_async(self, taken: Taken) -> bool:
        """`confirmed` for callers in an event loop."""
        if not self._is_for(taken):
            return False
        loop = asyncio.get_running_loop()
        if self._front is None or self._of is not loop:  # a connection is of the loop that made it
            self._front, self._of = self._make_front(), loop
        return self._counted(taken, await self._front.confirmed(taken.request))

    def mover(self, store: Store, stored: Stored) -> Mover:
        assert self.broker is not None
        return Mover(
            self.broker, f"mover-{self._draw(8).hex()}", store, stored, self._watch.saw_queue,
            Telling("and nothing is moved from it", self._boot), self._trouble, self._boot,
        )  # fmt: skip

    async def length(self) -> Length | None:
        """Count the messages now; None: there is no queue. Raises QueueAway."""
        if self.broker is None:
            return None
        self._watch.saw_queue(None)  # an old one is not shown for a new one
        taking = await self.broker.taking(f"look-{self._draw(8).hex()}")
        try:
            found = await taking.length()
        finally:
            await taking.close()
        self._watch.saw_queue(found)
        return found

    def length_now(self) -> Length | None:
        """`length` for callers that block, also one in whose thread a loop runs."""
        if self.broker is None:
            return None
        with ThreadPoolExecutor(1, "surehook-inbox-queue") as pool:
            return pool.submit(lambda: asyncio.run(self.length())).result()

    async def close_async(self) -> None:
        """Let go of what was asked in this loop."""
        front, self._front = self._front, None
        if front is not None:
            await front.close()

    def close(self) -> None:
        self._blocking.close()

    def _is_for(self, taken: Taken) -> bool:
        """Tell whether a request may go by the queue. To refuse conflicts, the table has to be looked at before the answer."""
        return self.broker is not None and taken.source.on_conflict != "refuse"

    def _counted(self, taken: Taken, is_in: bool) -> bool:
        if is_in:
            self._watch.put_in_queue(taken.source.name)
        return is_in

    def _make_front(self) -> Front:
        assert self.broker is not None
        return Front(self.broker, self._telling, self._boot)


def _broker(given: Queue | Broker | str | None) -> Broker | None:
    if isinstance(given, str):
        given = Queue(given)
    if isinstance(given, Queue):
        return broker(given)
    if given is not None and not hasattr(given, "giving"):
        raise SettingsError(
            "queue",
            f"a {type(given).__name__} is no queue",
            hint='queue="amqp://…", or Queue("redis://…", name=…)',
        )
    return given
