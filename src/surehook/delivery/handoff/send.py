"""Marked work on its way into the queues: gathered, sent in order, kept until the broker has it.

Nobody waits for this: accept marks a delivery only where there is a place for its id here (`reserve`), and what
finds no place stays unmarked for the sweeper. After a lost connection the same ids are sent again; a message
that was there already finds nothing to claim.
"""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice

from surehook.core import parcel
from surehook.core.model import LANES, Lane
from surehook.ports.clock import Clock
from surehook.ports.handoff import LaneConnection

# Ids of one lane that wait for the broker: 0.4 MB, about half a second of a fast node. Each lane has its own, so that a
# queue that confirms nothing leaves the other one alone.
WAITING_IDS_MAX = 25_000
BODIES_MAX = 50  # messages sent before their confirms are awaited, so that a slow broker is felt at once


class Send:
    """Two lines of ids and watermarks. `mark` is the epoch to mark with, 0 while nothing should be handed over."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._asked_at: list[float | None] = [None for _ in LANES]  # of what the broker has not confirmed
        self._lines: list[deque[bytes | int]] = [deque() for _ in LANES]  # an int is a watermark
        self._more = [asyncio.Event() for _ in LANES]
        self._safe = asyncio.Event()  # set each time the broker has confirmed something
        self._places = [0 for _ in LANES]  # reserved, or taken by an id that is not yet safe
        self.marks = [0 for _ in LANES]
        self.sent = 0  # ids that the broker has confirmed

    # -- what is handed in ------------------------------------------------------------------------------

    def room(self, lane: Lane) -> int:
        """Number of ids that may still wait."""
        return max(0, WAITING_IDS_MAX - self._places[lane])

    @property
    def is_empty(self) -> bool:
        return not any(self._lines)

    def reserve(self, lane: Lane) -> int:
        """A place for one id and the mark to write, or 0: no broker, no room, and no place was taken."""
        mark = self.marks[lane]
        if mark and self._places[lane] < WAITING_IDS_MAX:
            self._places[lane] += 1
            return mark
        return 0

    def give_back(self, lane: Lane) -> None:
        """A reserved place is not needed: its delivery was not written."""
        self._places[lane] -= 1

    def put_reserved(self, lane: Lane, delivery: bytes) -> None:
        """The delivery that a place was reserved for is committed."""
        self._lines[lane].append(delivery)
        self._more[lane].set()

    def put(self, lane: Lane, ids: list[bytes]) -> None:
        """Ids that the sweeper marked; it asked for no more than `room`."""
        self._places[lane] += len(ids)
        self._lines[lane].extend(ids)
        self._more[lane].set()

    def put_watermark(self, lane: Lane, epoch: int) -> None:
        """A watermark: it goes out after everything that waits here now."""
        self._lines[lane].append(epoch)
        self._more[lane].set()

    # -- and sent ---------------------------------------------------------------------------------------

    async def run(self, line: LaneConnection, lane: Lane) -> None:
        """Send what waits, for as long as the line holds. Raises BrokerAway; what was not confirmed stays."""
        waiting, more = self._lines[lane], self._more[lane]
        while True:
            if not waiting:
                more.clear()
                await more.wait()
            taken = min(len(waiting), BODIES_MAX * parcel.IDS_MAX)
            entries = list(islice(waiting, taken))
            bodies, used = _bodies(entries)
            if self._asked_at[lane] is None:
                self._asked_at[lane] = self._clock.boot()
            await line.publish(bodies)
            self._asked_at[lane] = None
            ids = 0
            for _ in range(used):
                ids += isinstance(waiting.popleft(), bytes)
            self._places[lane] -= ids
            self.sent += ids
            self._safe.set()

    def unconfirmed_s(self, lane: Lane) -> float:
        """For how many seconds the broker has been asked to take something without confirming anything, on however many
        lines."""
        asked_at = self._asked_at[lane]
        return 0.0 if asked_at is None else self._clock.boot() - asked_at

    async def emptied(self, *, within_s: float) -> None:
        """Wait until nothing waits any more, at most so long (shutdown)."""
        try:
            async with asyncio.timeout(within_s):
                while not self.is_empty:
                    self._safe.clear()
                    await self._safe.wait()
        except TimeoutError:
            pass


def _bodies(entries: list[bytes | int]) -> tuple[list[bytes], int]:
    """Messages for these entries in their order, at most BODIES_MAX, and how many entries they hold."""
    bodies: list[bytes] = []
    ids: list[bytes] = []
    used = 0
    for entry in entries:
        if isinstance(entry, int):
            if ids:
                bodies.append(parcel.encode_ids(ids))
                used, ids = used + len(ids), []
            if len(bodies) >= BODIES_MAX:
                return bodies, used
            bodies.append(parcel.encode_watermark(entry))
            used += 1
        else:
            ids.append(entry)
            if len(ids) == parcel.IDS_MAX:
                bodies.append(parcel.encode_ids(ids))
                used, ids = used + len(ids), []
        if len(bodies) >= BODIES_MAX:
            return bodies, used
    if ids:
        bodies.append(parcel.encode_ids(ids))
        used += len(ids)
    return bodies, used
