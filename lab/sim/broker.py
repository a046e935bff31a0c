"""A message broker in the simulated world: two queues, many lines, and every way in which hints get lost.

Honest where a quorum queue is honest: a queue keeps its order, a message is with one consumer at a time, what
was not acknowledged when its line ends goes back to the head, and a message that came back too often is dropped
(the delivery limit). What may befall it (`Trouble`, and the acts below) is all that the sender must survive:

    lost         confirmed and never seen again
    twice        a second copy behind the first
    swapped      two neighbours change places
    unconfirmed  taken, but the line ends before the confirm
    purged, deleted, cut, away   by `purge`, `delete`, `cut`, `go_away`
    frozen       nothing moves, and no connection breaks (a stopped process, a network that swallows), by `stand_still`
    alarmed      nothing is taken from publishers, everything else goes on (RabbitMQ's memory alarm), by the same
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence

from msgspec import Struct

from lab.sim.loop import Process, SimLoop, context_of
from surehook.core import parcel
from surehook.core.model import FIRST, LANES, RETRY, Lane
from surehook.ports.handoff import BrokerAway, Parcel

DELIVERY_LIMIT = 20  # as declared for the real queues
TRAVEL_S = (0.0005, 0.004)  # one way
CONNECT_S, CONFIRM_S = 5.0, 10.0  # the patience of lanes/rabbitmq.py


class Trouble(Struct):
    """Shares of messages (or of publishing calls) that something befalls."""

    lost: float = 0.0
    twice: float = 0.0
    swapped: float = 0.0
    unconfirmed: float = 0.0


class Message(Struct):
    body: bytes
    returns: int = 0


class SimBroker:
    """The broker itself. `at(process)` is the port as one process sees it."""

    def __init__(self, loop: SimLoop, chance: random.Random, trouble: Trouble | None = None) -> None:
        self.loop = loop
        self.chance = chance
        self.trouble = trouble or Trouble()
        self.queues: list[deque[Message]] = [deque() for _ in LANES]
        self.lines: list[SimLine] = []
        self.away: set[Lane] = set()
        self.frozen: set[Lane] = set()
        self.alarmed: set[Lane] = set()
        self._moves = asyncio.Event()  # set when whatever stood still goes on
        self.published = 0  # ids in messages that were taken
        self.dropped = 0  # messages over the delivery limit

    def at(self, process: Process | None) -> SimPort:
        return SimPort(self, process)

    # -- what befalls it ---------------------------------------------------------------------------------

    def purge(self, lane: Lane) -> None:
        self.queues[lane].clear()

    def delete(self, lane: Lane) -> None:
        """The queue goes with all that is in it, and every line that took from it is told."""
        for line in [line for line in self.lines if line.lane == lane]:
            line.unacked = {}
            line.end("the queue was deleted")
        self.queues[lane].clear()

    def cut(self) -> None:
        """Every connection breaks."""
        for line in list(self.lines):
            line.end("the connection was reset")

    def go_away(self, *lanes: Lane) -> None:
        """Nobody is let in any more, to these lanes or to any."""
        self.away = set(lanes or (FIRST, RETRY))
        for line in [line for line in self.lines if line.lane in self.away]:
            line.end("the connection was reset")

    def stand_still(self, *lanes: Lane, alarm: bool = False) -> None:
        """Freeze these lanes' queues, or take nothing for them any more."""
        (self.alarmed if alarm else self.frozen).update(lanes)
        self._moves.clear()

    def come_back(self) -> None:
        self.away, self.frozen, self.alarmed = set(), set(), set()
        self._moves.set()
        for lane in (FIRST, RETRY):
            self.hand_out(lane)

    async def moving(self, lane: Lane, *, publishing: bool = False) -> None:
        """Wait until the lane's queue moves, and takes messages."""
        while lane in self.frozen or (publishing and lane in self.alarmed):
            await self._moves.wait()

    def copies(self, lane: Lane) -> dict[bytes, int]:
        """Count of each id in the queue."""
        counts: dict[bytes, int] = {}
        for message in self.queues[lane]:
            content = parcel.decode(message.body)
            for delivery in content if isinstance(content, list) else ():
                counts[delivery] = counts.get(delivery, 0) + 1
        return counts

    # -- what it does ------------------------------------------------------------------------------------

    def travel_s(self) -> float:
        low, high = TRAVEL_S
        return low + (high - low) * self.chance.random()

    def append(self, lane: Lane, body: bytes) -> None:
        content = parcel.decode(body)
        self.published += len(content) if isinstance(content, list) else 0
        queue = self.queues[lane]
        draw = self.chance.random
        if draw() < self.trouble.lost:
            return
        queue.append(Message(body))
        if draw() < self.trouble.twice:
            queue.append(Message(body))
        if len(queue) > 1 and draw() < self.trouble.swapped:
            queue[-1], queue[-2] = queue[-2], queue[-1]

    def put_back(self, lane: Lane, message: Message) -> None:
        message.returns += 1
        if message.returns > DELIVERY_LIMIT:
            self.dropped += 1
        else:
            self.queues[lane].appendleft(message)

    def hand_out(self, lane: Lane) -> None:
        """Give messages to lines that may take more, in turn."""
        queue = self.queues[lane]
        while queue and lane not in self.frozen:
            free = [line for line in self.lines if line.lane == lane and line.may_take()]
            if not free:
                return
            self.chance.choice(free).give(queue.popleft())


class SimParcel:
    def __init__(self, line: SimLine, tag: int, body: bytes) -> None:
        self._line = line
        self._tag = tag
        self.body = body

    def ack(self) -> None:
        self._line.acked(self._tag)


class SimLine:
    """`ports.handoff.LaneConnection` of one process."""

    def __init__(self, broker: SimBroker, process: Process | None, lane: Lane) -> None:
        self.lane = lane
        self.unacked: dict[int, Message] = {}
        self._take: Callable[[Parcel], None] | None = None
        self._broker = broker
        self._process = process
        self._prefetch = 0
        self._inbox: deque[tuple[int, bytes]] = deque()
        self._tags = 0
        self._reason: str | None = None
        self._ended: asyncio.Future[str] = broker.loop.create_future()

    # -- the port ----------------------------------------------------------------------------------------

    async def publish(self, bodies: Sequence[bytes]) -> None:
        lane = self.lane
        broker = self._broker
        await asyncio.sleep(broker.travel_s())
        self._check()
        try:
            async with asyncio.timeout(CONFIRM_S):
                await broker.moving(lane, publishing=True)
        except TimeoutError:
            self.end("no confirm in time")
        self._check()
        for body in bodies:
            broker.append(lane, body)
        broker.hand_out(lane)
        if broker.chance.random() < broker.trouble.unconfirmed:
            self.end("the connection was reset before the confirm")
        await asyncio.sleep(broker.travel_s())
        self._check()

    async def consume(self, take: Callable[[Parcel], None], *, prefetch: int) -> None:
        await asyncio.sleep(self._broker.travel_s())
        self._check()
        self._take = take
        self._prefetch = prefetch
        self._broker.hand_out(self.lane)

    async def lost(self) -> str:
        return await asyncio.shield(self._ended)

    async def close(self) -> None:
        self.end("closed")

    # -- the broker's side -------------------------------------------------------------------------------

    def may_take(self) -> bool:
        return self._take is not None and len(self.unacked) < self._prefetch

    def give(self, message: Message) -> None:
        self._tags += 1
        self.unacked[self._tags] = message
        self._inbox.append((self._tags, message.body))
        context = context_of(self._process)
        self._broker.loop.call_later(self._broker.travel_s(), self._take_one, context=context)

    def _take_one(self) -> None:
        """In the process: the next message of the line, in the order in which they were sent."""
        if self._reason is None and self._inbox and self._take is not None:
            tag, body = self._inbox.popleft()
            self._take(SimParcel(self, tag, body))

    def acked(self, tag: int) -> None:
        if self._reason is None:
            assert tag in self.unacked, "acknowledged twice, for which the real one ends the channel"
            del self.unacked[tag]
            self._broker.hand_out(self.lane)

    def end(self, reason: str) -> None:
        if self._reason is not None:
            return
        self._reason = reason
        self._broker.lines.remove(self)
        back = sorted(self.unacked.items(), reverse=True)
        self.unacked = {}
        for _, message in back:
            self._broker.put_back(self.lane, message)
        if not self._ended.done():
            self._ended.set_result(reason)
        self._broker.hand_out(self.lane)

    def _check(self) -> None:
        if self._reason is not None:
            raise BrokerAway(self._reason)


class SimPort:
    """`ports.handoff.LaneBroker` as seen from one process."""

    def __init__(self, broker: SimBroker, process: Process | None) -> None:
        self._broker = broker
        self._process = process

    async def connect(self, lane: Lane) -> SimLine:
        await asyncio.sleep(self._broker.travel_s())
        if lane in self._broker.away:
            raise BrokerAway("nobody listens")
        try:
            async with asyncio.timeout(CONNECT_S):
                await self._broker.moving(lane)
        except TimeoutError:
            raise BrokerAway("nobody answers") from None
        line = SimLine(self._broker, self._process, lane)
        self._broker.lines.append(line)
        if self._process is not None:
            self._process.at_death.append(lambda: line.end("its process died"))
        return line
