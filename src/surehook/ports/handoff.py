"""Hands ready work to workers in other processes: a broker with one queue a lane, and the ledger's marks.

Without a broker this port is not used: workers claim from the ledger, woken by hints. With one, whoever makes
work ready marks its rows, commits, and sends their ids; a worker takes a message's rows by one fenced claim.
The ledger stays the authority: a row is marked so that nobody sends its id a second time, and the mark goes
with the lease, so that a row that comes back is unmarked and will be handed over again.

**Marks and tides.** A mark is a generation, a number that the ledger keeps for each lane and that only rises.
From time to time one node (the *sweeper*) ends the generation and sends it into the queue as a message, the
*tide*. A queue keeps its order: when a tide is taken out, everything sent before it was taken out as well, or is
lost. So rows that are still ready and whose mark is older than the last tide that came were lost on the way
(a dead publisher, a purged or deleted queue, a broker's delivery limit) and are handed over again; rows whose
tide has not come yet wait in a long queue and are left alone. No clock and no count of messages is asked, and a
queue is never filled twice. "Older than" leaves one whole generation of grace, for messages that a worker has
fetched and not opened, and for publishers whose knowledge of the generation is a second old.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from surehook.core.errors import SurehookError
from surehook.core.model import Lane


class BrokerAway(SurehookError):
    """The broker cannot be reached, or did not confirm: what was sent may or may not have arrived."""


class Parcel(Protocol):
    """One message taken from a queue and not yet acknowledged."""

    @property
    def body(self) -> bytes: ...

    def ack(self) -> None:
        """Acknowledge it: the queue may forget it. Never raises; on a lost connection it does nothing, and the message
        comes again to some worker."""
        ...


class Line(Protocol):
    """One lane's connection: lanes share nothing, so that one whose queue is in trouble leaves the other alone.
    Once lost it stays so; the caller connects anew."""

    async def publish(self, bodies: Sequence[bytes]) -> None:
        """Send messages in order; returns when all are safe with the broker. Raises BrokerAway otherwise."""
        ...

    async def consume(self, take: Callable[[Parcel], None], *, prefetch: int) -> None:
        """Begin to take messages, at most `prefetch` unacknowledged. Raises BrokerAway."""
        ...

    async def lost(self) -> str:
        """Wait until the connection or its queue is gone; returns the reason."""
        ...

    async def close(self) -> None:
        """Close; never raises. Messages taken and not acknowledged go back to their queue."""
        ...


class Broker(Protocol):
    async def connect(self, lane: Lane) -> Line:
        """A new connection with the lane's queue in place. Raises BrokerAway."""
        ...


class LaneMarks(Struct, frozen=True):
    """One lane's generation: `generation` is what marks are made with now, `passed` the last tide that came."""

    generation: int
    passed: int

    @property
    def under_way(self) -> int:
        """Number of tides sent since the last one that came."""
        return self.generation - 1 - self.passed


class Handing(Protocol):
    """The ledger's side. Every row mark is a generation > 0; 0 is no mark. Only unheld, unparked rows have one:
    `accept` writes the mark of a delivery that is born unheld, and every lease takes the mark off."""

    async def prepare_handing(self) -> None:
        """Make what the calls below need (an index). Raises Problem `handing_unsupported` where the ledger is
        for one process."""
        ...

    async def identity(self) -> str:
        """A short name (letters and digits) that no other ledger has, the same for all nodes and for ever; copying the data
        elsewhere does not copy it. Empty where there is none."""
        ...

    async def lane_marks(self, lane: Lane) -> LaneMarks:
        """The lane's generations now."""
        ...

    async def hand_over(
        self, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int
    ) -> list[bytes] | None:
        """Mark up to `limit` rows that are ready (unheld, unparked, due_at <= due_by) and unmarked, or whose mark
        is lost (0 < mark < passed), in one fenced transaction; their ids, earliest due first, have to be sent.

        One node sweeps a lane at a time: None while another living node does. Else the caller is the sweeper from now
        on, until it resigns or is evicted.
        """
        ...

    async def raise_tide(self, lane: Lane, *, node: bytes, now: int) -> int | None:
        """End the lane's generation and return it: its tide may be sent. None where `node` is not the sweeper."""
        ...

    async def tide_came(self, lane: Lane, generation: int, *, node: bytes, now: int) -> None:
        """A tide was taken out of the queue: `passed` becomes the greater of both. A generation that was never
        made (a message of another installation) changes nothing."""
        ...

    async def resign(self, lane: Lane, *, node: bytes, now: int) -> None:
        """Stop being the lane's sweeper; nothing where it is not."""
        ...
