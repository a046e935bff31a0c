"""The sender's ledger: everything that is written on the way of an event. Batches only.

Every writing call takes the node that writes and fails whole with `NodeEvicted` when that node has been
evicted; rows are changed only where `holder` is this node and `attempt` is the one in hand. `now` is an
argument down to the SQL. A call either commits everything it reports or raises:

    LedgerUnavailable  nothing was changed; the same call may succeed later (LedgerFull: disk at its floor)
    LedgerBroken       a commit failed in a way that makes this handle untrustworthy; the process should end
    CommitUnknown      the connection was lost while committing; the caller runs the same batch again. A lease cannot be
                       run again: the caller looks for rows that it holds here and nowhere else (`held`)
    NodeEvicted         forget everything in memory and begin again under a new node id

`receipts.py` keeps what receivers report later, a part of this port. `registry.py` holds configuration and management,
`reading.py` the lists: one object implements all three.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from surehook.core.model import (
    BreakerRow,
    Delivery,
    EndpointHealth,
    Event,
    Lane,
    NodeRow,
    Notice,
    RecordedEndpoint,
    Settled,
)
from surehook.ports.receipts import ReceiptLedger

# Stands for a configuration that was read after the last call of the batch came: whatever the ledger's version is now,
# newer changes happened at the same time as these calls and need not apply to them.
NEWER_THAN_CALLS = (1 << 63) - 1
NONE_KEPT: Mapping[bytes, bytes] = MappingProxyType({})


class Incoming(Struct, gc=False):
    """One event on its way in, with its fan-out already made (`held` and `parked` set on each delivery)."""

    event: Event
    deliveries: list[Delivery]
    given: bool = False  # the publisher chose the id: it may exist already


class Taken(Struct, gc=False):
    """The ledger's answer for one incoming event.

    `fresh`: written now. Not fresh and no `problem`: a repeat, `event` and `fan_out` are the first one's.
    `problem`: `idempotency_conflict` (same key, other content) or `event_id_conflict` (same id, other
    content or other tenant). A row that the database itself refuses (DataError) has problem `unstorable`.
    """

    event: bytes
    fan_out: int
    fresh: bool
    problem: str | None = None


class Eviction(Struct, gc=False):
    """Answer to `evict`: the nodes that were evicted, in order, and how many rows were freed."""

    nodes: list[bytes]
    freed: int


class AcceptResult(Struct, gc=False):
    """Answer to `accept`.

    stale    True: the configuration has changed in a way that concerns events of the batch, or may do so, and *nothing was
             written*; reload, judge and fan out again, call again
    taken    one answer for each event, in the order of the batch
    version  of the configuration now: memory may be behind it although the batch was not concerned
    """

    stale: bool
    taken: list[Taken]
    version: int


class Recorded(Struct, gc=False):
    """Answer to `record`. `lost` are ids of deliveries that were no longer ours (their entries were not
    written). `changes` are endpoints whose count or status changed in the same transaction."""

    lost: list[bytes]
    changes: list[RecordedEndpoint]


ANY_SIZE = 1 << 40  # bytes of bodies: as many as the rows have


class Skip(Struct, frozen=True):
    """Endpoints and tenants whose rows a claim passes over, because they have enough in memory."""

    endpoints: tuple[bytes, ...] = ()
    tenants: tuple[str, ...] = ()


def weight(rows: Sequence[Delivery]) -> int:
    """Bytes of the rows' bodies, each event's once."""
    return sum(len(body) for body in {row.event: row.body for row in rows}.values())


def is_full(rows: Sequence[Delivery], *, limit: int, size: int) -> bool:
    """True if a call that leases stopped at one of its bounds, so that there may be more."""
    return len(rows) >= limit or weight(rows) >= size


class ClaimedIds(Struct, gc=False):
    """Answer to `claim_ids`. `rest` are the ids that were not looked at, because the call had reached its bytes. All others
    are leased now, or not ours to take."""

    rows: list[Delivery]
    rest: list[bytes]


class ParkedGroup(Struct, frozen=True):
    """Parked deliveries of one endpoint for one reason: it exists and has at least one row."""

    endpoint: bytes
    reason: str
    first: bytes  # the lowest id among them, which is the oldest event's


class AgedGroup(Struct, frozen=True):
    """A parked group to look through for rows past their age: those with born_at + stood_ms < born_before, beyond the
    id `after`, where a look before this one ended."""

    endpoint: bytes
    reason: str
    born_before: int
    after: bytes = b""


class AgedPage(Struct, frozen=True):
    """Answer to `parked_aged`: rows past their age, without their bodies, and the groups that may have more, each
    with the place to go on from."""

    rows: list[Delivery]
    goes_on: list[AgedGroup]


class Ledger(ReceiptLedger, Protocol):
    # -- the life of a node: the lease is a fence ------------------------------------------------------

    async def open(self, *, now: int) -> None:
        """Connect, take the OS lock where there is one, migrate, check integrity settings."""
        ...

    async def close(self) -> None: ...

    async def enter(self, node: NodeRow, *, now: int) -> None:
        """Write the node's row and its beat. From now on its writes are accepted."""
        ...

    async def beat(self, node: bytes, counter: int, *, now: int) -> dict[bytes, int]:
        """Write this node's beat and return the counters of all nodes that are not evicted. The beat row is
        never locked by the fence."""
        ...

    async def time(self) -> int | None:
        """The ledger's own clock (Unix milliseconds, rounded down), by which processes on several machines agree on what is
        due; None where the ledger is in this process and has our clock."""
        ...

    async def nodes(self) -> list[NodeRow]:
        """All nodes that are not evicted, this one included."""
        ...

    async def evict(
        self, nodes: Sequence[bytes], *, now: int, judged: Mapping[bytes, int] | None = None
    ) -> Eviction:
        """Evict the nodes: mark them dead and free what they hold, in one transaction. `judged` are the counters by which
        the nodes were judged: one that has beaten since is alive, relies on its new lease, and is left alone.

        A freed delivery keeps its due_at and spends no retry; `freed` goes up by one (from the fifth time
        running it waits 10 s from `now`), and an `interrupted` entry is appended for the attempt in hand.
        """
        ...

    # -- the way in -------------------------------------------------------------------------------------

    async def accept(
        self, batch: Sequence[Incoming], *, node: bytes, version: int, now: int, is_quick: bool = False
    ) -> AcceptResult:
        """Append events, deliveries and the keys that events name in one transaction.

        `version` is the configuration the fan-out was made from, or NEWER_THAN_CALLS: changes after it of other tenants and
        types than the batch's do no harm. Running the same batch again after
        CommitUnknown counts rows with the batch's own ids as fresh. A row the database refuses is answered
        alone (`unstorable`); the others are written. Expired idempotency keys (24 h) count as absent. `is_quick`: a few
        events, which a ledger that has one writer lets go before what others wait for.
        """
        ...

    # -- the way out ------------------------------------------------------------------------------------

    async def claim(
        self, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int, size: int = ANY_SIZE
    ) -> list[Delivery]:
        """Lease up to `limit` unheld, unparked rows of the lane with due_at <= due_by, earliest due first. The row with
        which their bodies reach `size` bytes (each event's counted once) is the last."""
        ...

    async def claim_others(
        self,
        lane: Lane,
        *,
        node: bytes,
        limit: int,
        due_by: int,
        now: int,
        skip: Skip,
        size: int = ANY_SIZE,
        fresh: bool = False,
    ) -> list[Delivery]:
        """Lease as `claim` does, leaving out rows of those that `skip` names.

        A call looks at a bounded number of rows: at those that have just fallen due, and where none of them is wanted, at
        some of the older ones, from where the last call ended. So a short answer does not mean that there is no more.
        `fresh`: look only at those that have just fallen due, which is quick."""
        ...

    async def claim_ids(
        self, ids: Sequence[bytes], *, node: bytes, now: int, size: int = ANY_SIZE
    ) -> ClaimedIds:
        """Lease these rows in their order; held, parked or not yet due ones are skipped. `size` as in `claim`: the ids
        behind the row that reaches it are returned as `rest`."""
        ...

    async def unpark(
        self,
        endpoint: bytes,
        reasons: Sequence[str],
        *,
        node: bytes,
        limit: int,
        now: int,
        size: int = ANY_SIZE,
        restart: bool = False,
    ) -> list[Delivery]:
        """Lease up to `limit` parked rows of an endpoint, oldest first, and take them out of parking. `size` as in `claim`.

        Rows parked for a standing reason (paused, inactive, failure) get their `stood_ms` raised by the time they
        stood. A row whose due_at lies ahead keeps it; the caller waits. `restart`: their schedule begins anew
        instead (born_at = now, due now, stood_ms = 0, spared = attempt − 1; the number of the attempt in hand goes
        on, since history keeps every number once), as after enter_failure.
        """
        ...

    async def park(self, deliveries: Sequence[Delivery], reason: str, *, node: bytes, now: int) -> None:
        """Park leased rows in one batched update: unheld, parked for `reason`; due_at and attempt stay."""
        ...

    async def release(self, deliveries: Sequence[Delivery], *, node: bytes, now: int) -> None:
        """Hand back leased rows that were not sent: unheld, no history entry."""
        ...

    async def record(
        self,
        settled: Sequence[Settled],
        *,
        node: bytes,
        health: Sequence[EndpointHealth],
        breakers: Sequence[BreakerRow],
        notices: Sequence[Notice],
        now: int,
    ) -> Recorded:
        """Write one window of results in one transaction.

        1. Entries are appended, finished deliveries deleted, the others rescheduled or parked.
        2. Endpoint counts are folded. An endpoint that becomes `inactive` by its limit gets an `endpoint.disabled` notice,
           and the configuration version goes up.
        3. A breaker's row is written unless the stored one has a greater generation. `closed` deletes the row and is
           remembered for a day, so that an older opening that comes late is not kept.
        4. Notices are kept.
        """
        ...

    # -- reading and ending -----------------------------------------------------------------------------

    async def held_count(self, node: bytes) -> int:
        """Number of deliveries that this node holds in the ledger."""
        ...

    async def held(self, node: bytes, *, limit: int) -> list[bytes]:
        """Ids of deliveries this node holds, oldest first."""
        ...

    async def free(self, ids: Sequence[bytes], *, node: bytes, now: int) -> None:
        """Free rows that this node holds in the ledger and not in memory, as an eviction would (they may have been sent, so
        the `interrupted` entry is written)."""
        ...

    async def parked_groups(self) -> list[ParkedGroup]:
        """The (endpoint, reason) pairs that have parked rows. O(groups), whatever the backlog."""
        ...

    async def next_due(self, lane: Lane) -> int | None:
        """The earliest due_at of an unheld, unparked row in the lane."""
        ...

    async def parked_aged(self, groups: Sequence[AgedGroup], *, limit: int) -> AgedPage:
        """Look through a bounded piece of each group, in the order of ids, for rows past their age (now − born_at −
        stood_ms): at most `limit` of all groups together, and of each its equal part (at least one)."""
        ...

    async def overdue(self, *, now: int, limit: int) -> list[Delivery]:
        """Unfinished deliveries whose overdue_at has passed."""
        ...

    async def mark_overdue(
        self, deliveries: Sequence[Delivery], notices: Sequence[Notice], *, now: int
    ) -> list[bytes]:
        """Clear overdue_at and keep the notices, in one transaction. Returns the ids that were marked by this call;
        those that another process had marked before are skipped, and so are their notices."""
        ...

    async def end(
        self,
        deliveries: Sequence[Delivery],
        *,
        state: str,
        reason: str | None,
        notices: Sequence[Notice],
        now: int,
        request_headers: Mapping[bytes, bytes] = NONE_KEPT,
    ) -> list[bytes]:
        """Finish *unheld* deliveries without a call in hand: an `ended` entry with the final state each, the
        row deleted. Returns the ids that were ended by this call; held and vanished ones are skipped, and those that
        went on since they were read (another attempt in hand, or a new schedule). `request_headers`: the header lines of
        its last request that a dead letter keeps, by delivery."""
        ...

    async def end_endpoint(self, endpoint: bytes, *, reason: str, limit: int, now: int) -> int:
        """Cancel up to `limit` unheld deliveries of an endpoint; returns how many (0: none left unheld)."""
        ...

    async def unheld_endpoints(self, after: bytes) -> tuple[Collection[bytes], bytes | None]:
        """One step of a walk over all unfinished deliveries, from after this id on: the endpoints of those that nobody
        holds, and where it stopped (None: at the end)."""
        ...

    async def breakers(self, asked: Sequence[tuple[str, str]] = ()) -> list[BreakerRow]:
        """Open and half-open breakers, followed by the last closings of those `asked` for by tenant and key, as rows with
        state `closed`."""
        ...

    # -- keeping house ----------------------------------------------------------------------------------

    async def prune(self, *, events_before: int, bodies_before: int, limit: int, now: int) -> int:
        """Remove up to `limit` rows older than the given instants, oldest first; returns how many.

        Never touches an event that an unfinished or a dead, undismissed delivery still needs; idempotency
        keys past their 24 h, notices and dismissed dead letters older than `events_before` go too.
        """
        ...

    async def index_lists(self) -> bool:
        """One bounded step of making the indexes of lists for rows that are no longer new; False: nothing is left to do for
        now."""
        ...

    async def backup(self, path: str) -> None:
        """Write a consistent copy of the whole ledger to `path` while work goes on. Raises Problem."""
        ...
