"""The queue of one inbox: which requests go by it, the doors' side of it, and the mover's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from surehook.core.errors import SettingsError
from surehook.inbox.queue.brokers import broker
from surehook.inbox.queue.mover import Mover, Store, Stored
from surehook.inbox.queue.option import Queue
from surehook.inbox.queue.port import Broker, Length
from surehook.inbox.queue.publisher import Publisher
from surehook.inbox.queue.threads import BlockingPublisher
from surehook.inbox.queue.trouble import QueueTrouble
from surehook.inbox.receive import BelievedRequest
from surehook.inbox.trouble import Trouble
from surehook.inbox.watch import Watch


class InboxQueue:
    """The inbox's queue. `given` None: all goes to the table. `draw(n)` makes random bytes, `boot` counts seconds."""

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
        self._trouble_log = QueueTrouble("so the table takes what comes", boot)
        self._publisher: Publisher | None = None
        self._of: asyncio.AbstractEventLoop | None = None
        self._blocking = BlockingPublisher(self._make_publisher)

    def __bool__(self) -> bool:
        return self.broker is not None

    def confirmed(self, taken: BelievedRequest) -> bool:
        """Put a request into the queue; True: it is there for sure, and may be answered. Raises Overloaded."""
        if not self._is_for(taken):
            return False
        return self._counted(taken, self._blocking.confirmed(taken.request))

    async def confirmed_async(self, taken: BelievedRequest) -> bool:
        """`confirmed` for callers in an event loop."""
        if not self._is_for(taken):
            return False
        loop = asyncio.get_running_loop()
        if self._publisher is None or self._of is not loop:  # a connection is of the loop that made it
            self._publisher, self._of = self._make_publisher(), loop
        return self._counted(taken, await self._publisher.confirmed(taken.request))

    def mover(self, store: Store, stored: Stored) -> Mover:
        assert self.broker is not None
        return Mover(
            self.broker, f"mover-{self._draw(8).hex()}", store, stored, self._watch.saw_queue,
            QueueTrouble("and nothing is moved from it", self._boot), self._trouble, self._boot,
        )  # fmt: skip

    async def length(self) -> Length | None:
        """Count the messages now; None: there is no queue. Raises QueueAway."""
        if self.broker is None:
            return None
        self._watch.saw_queue(None)  # if this fails, metrics must not show an old length
        consumer = await self.broker.consumer(f"look-{self._draw(8).hex()}")
        try:
            found = await consumer.length()
        finally:
            await consumer.close()
        self._watch.saw_queue(found)
        return found

    def length_now(self) -> Length | None:
        """`length` for callers that block, also one in whose thread a loop runs."""
        if self.broker is None:
            return None
        with ThreadPoolExecutor(1, "surehook-inbox-queue") as pool:
            return pool.submit(lambda: asyncio.run(self.length())).result()

    async def close_async(self) -> None:
        """Close the connection of this loop."""
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            await publisher.close()

    def close(self) -> None:
        self._blocking.close()

    def _is_for(self, taken: BelievedRequest) -> bool:
        """Tell whether a request may go by the queue. To refuse conflicts, the table has to be looked at before the answer."""
        return self.broker is not None and taken.source.on_conflict != "refuse"

    def _counted(self, taken: BelievedRequest, is_in: bool) -> bool:
        if is_in:
            self._watch.put_in_queue(taken.source.name)
        return is_in

    def _make_publisher(self) -> Publisher:
        assert self.broker is not None
        return Publisher(self.broker, self._trouble_log, self._boot)


def _broker(given: Queue | Broker | str | None) -> Broker | None:
    if isinstance(given, str):
        given = Queue(given)
    if isinstance(given, Queue):
        return broker(given)
    if given is not None and not hasattr(given, "publisher"):
        raise SettingsError(
            "queue",
            f"a {type(given).__name__} is no queue",
            hint='queue="amqp://…", or Queue("redis://…", name=…)',
        )
    return given
