"""Handing ready work to workers in other processes: a broker with one queue per lane, and marks in the ledger.

Without a broker this port is not used: workers claim from the ledger, woken by hints. With one, whoever makes work ready
marks its rows, commits, and sends their ids; a worker takes the rows of a message by one fenced claim. The ledger stays the
authority. A row is marked so that nobody sends its id a second time, and a lease clears the mark, so that a row that comes
back is unmarked and will be handed over again.

**Marks and watermarks.** A mark is an *epoch*, a number that the ledger keeps per lane and that only rises. From time to
time one node (the *sweeper*) ends the epoch and sends it through the queue as a message, the *watermark*. A queue keeps its
order: when a watermark is taken out, everything sent before it was taken out as well, or is lost. So rows that are still
ready, with a mark older than the last watermark that came, were lost on their way (a dead publisher, a purged or deleted
queue, a broker's delivery limit) and are handed over again. Rows whose watermark has not come yet wait in a long queue and
are left alone. This needs no clock and no count of messages, and a queue is never filled twice. "Older than" leaves one
whole epoch of grace, for messages that a worker has fetched and not opened, and for publishers that learn of a new epoch
a second late.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from surehook.core.errors import SurehookError
from surehook.core.model import Lane


class BrokerAway(SurehookError):
    """The broker cannot be reached, or did not confirm. What was sent may or may not have arrived."""


class Parcel(Protocol):
    """One message taken from a queue and not yet acknowledged."""

    @property
    def body(self) -> bytes: ...

    def ack(self) -> None:
        """Let the queue forget the message. Never raises. On a lost connection it does nothing, and the message is delivered
        again to somebody."""
        ...


class LaneConnection(Protocol):
    """The connection of one lane. Lanes share nothing, so that trouble with one queue leaves the other alone.

    A lost connection stays lost; the caller connects anew.
    """

    async def publish(self, bodies: Sequence[bytes]) -> None:
        """Send messages in order, and return when all are safe with the broker. Raises BrokerAway otherwise."""
        ...

    async def consume(self, take: Callable[[Parcel], None], *, prefetch: int) -> None:
        """Begin to take messages, at most `prefetch` unacknowledged. Raises BrokerAway."""
        ...

    async def lost(self) -> str:
        """Wait until the connection or its queue is gone, and return the reason."""
        ...

    async def close(self) -> None:
        """Close the connection. Never raises. Messages taken and not acknowledged go back to the queue."""
        ...


class LaneBroker(Protocol):
    async def connect(self, lane: Lane) -> LaneConnection:
        """Connect, and create the lane's queue if there is none. Raises BrokerAway."""
        ...


class LaneMarks(Struct, frozen=True):
    """The marks of one lane: `epoch` is that of new marks, `passed` the last watermark that came."""

    epoch: int
    passed: int

    @property
    def under_way(self) -> int:
        """Count the watermarks that were sent since the last one that came."""
        return self.epoch - 1 - self.passed


class Handing(Protocol):
    """The ledger's side. A mark is an epoch > 0; 0 is no mark. Only unheld, unparked rows have one: `accept` writes the mark
    of a delivery that is created unheld, and every lease clears it."""

    async def prepare_handing(self) -> None:
        """Create the index that the calls below need. Raises Problem `handing_unsupported` if the ledger serves one process
        only."""
        ...

    async def identity(self) -> str:
        """Return a short name (letters and digits) that no other ledger has, the same for all nodes and forever.

        Copying the data elsewhere does not copy it. Empty if there is none.
        """
        ...

    async def lane_marks(self, lane: Lane) -> LaneMarks:
        """Read the marks of the lane."""
        ...

    async def hand_over(
        self, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int
    ) -> list[bytes] | None:
        """Mark up to `limit` rows to be sent, in one fenced transaction, and return their ids, earliest due first.

        These are rows that are ready (unheld, unparked, due_at <= due_by) and either unmarked or lost (0 < mark < passed).
        One node sweeps a lane at a time: None while another living node does. Otherwise the caller is the sweeper from now
        on, until it resigns or is evicted.
        """
        ...

    async def end_epoch(self, lane: Lane, *, node: bytes, now: int) -> int | None:
        """End the lane's epoch and return it, so that its watermark is sent. None if `node` is not the sweeper."""
        ...

    async def record_watermark(self, lane: Lane, epoch: int, *, node: bytes, now: int) -> None:
        """Raise `passed` to the epoch of a watermark that was taken out of the queue.

        An epoch that has not ended (a message of another installation) changes nothing.
        """
        ...

    async def resign(self, lane: Lane, *, node: bytes, now: int) -> None:
        """Stop being the lane's sweeper, if the node is."""
        ...
