"""The store of the receiver library: the values that travel, and the contract of one transaction.

A **request** is what came over the wire, kept byte for byte until its retention ends. Each event in it is an **event**: the
dedupe record, which outlives the request's body. Each processing of an event is a **run**: number 0 when it arrived, further
ones for replays, so that a replay is a reference and changes nothing of the original.

Everything happens inside a transaction of the application's database. `Store.run(work)` opens one, calls `work` with the
`Transaction`, commits, and only then returns. The same `work` serves synchronous and asynchronous stores: it is an ordinary
function, and where a handler is a coroutine, `Transaction.wait` waits for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct

from surehook.core.errors import SurehookError
from surehook.ports.inbox_depth import Depth
from surehook.ports.inbox_pruning import FROM_THE_START, PrunedPart, PrunePlace
from surehook.ports.inbox_receipts import ReceiptTransaction
from surehook.ports.inbox_runs import DocumentKey, Filter, Run, State
from surehook.ports.inbox_tries import Try, TryTransaction
from surehook.ports.inbox_waking import WakingTransaction

T = TypeVar("T")
_pairs = msgspec.json.Decoder(list[tuple[str, str]])

NO_HANDLER = "no_handler"
UNKNOWN_SOURCE = "unknown_source"
LINE_FULL = "line_full"  # why a run waits that was not tried: its document has no room
UNHANDLED = (NO_HANDLER, UNKNOWN_SOURCE)  # why a run is parked until the code here is changed


class StoreError(SurehookError):
    """The store could not do it."""


class StoreUnavailable(StoreError):
    """The database cannot answer now (away, locked, out of disk); the same call may succeed later."""


class Contended(StoreUnavailable):
    """Others wanted the same rows, and the database ended this transaction for it (a deadlock, a lock waited for too long)."""


class DocumentMoved(Contended):
    """A handler that began without a transaction has decided on a document that another worker has moved since."""


class Clash(StoreError):
    """A row of the batch was there already, or another process was faster: look first, and do it again."""


class LostLease(StoreError):
    """Another worker has taken what this one had claimed; none of this one's work was kept."""


class StoredEvent(Struct, frozen=True, kw_only=True, gc=False):
    """One verified event on its way in.

    id              16 bytes, sortable by time of arrival
    event_id        the sender's; with source and tenant it is what repeats are recognised by
    body_sha256     of the raw body, or of the item where several events came in one body
    item            its place in such a body, or None
    parked          of a schema version that no handler knows yet
    """

    id: bytes
    source: str
    tenant: str
    event_id: str
    type: str | None
    body_sha256: bytes
    item: int | None
    occurred_at: int | None
    sent_at: int | None
    proven: str
    key_id: str | None
    schema_version: str | None
    correlation_id: str | None
    parked: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.source, self.tenant, self.event_id)


class StoredRequest(Struct, frozen=True, kw_only=True, gc=False):
    """One request as it came, with the events found in it. `headers` is JSON: pairs of names and values."""

    id: bytes
    source: str
    received_at: int
    url: str | None
    headers: str
    body: bytes
    events: tuple[StoredEvent, ...]


def pairs(headers: str) -> list[tuple[str, str]]:
    """The headers of a stored request, read again."""
    return _pairs.decode(headers)


class Stored(Struct, frozen=True, gc=False):
    """The result for one event: `id` is the stored one, whichever request brought it."""

    kind: Literal["new", "duplicate", "conflict"]
    id: bytes


class Settlement(Struct, kw_only=True, gc=False):
    """The end of a run, or when it is tried again (`due_at`, Unix milliseconds)."""

    run: bytes
    state: State
    attempts: int
    due_at: int | None = None
    processed_at: int | None = None
    finalized_at: int | None = None
    handler: str | None = None
    handler_version: str | None = None
    result_sha256: bytes | None = None
    changed: bool = False
    error_code: str | None = None
    error: str | None = None
    tried: Try | None = None  # where the attempt failed


class Entry(Struct, frozen=True, kw_only=True):
    """One event and its newest run, as lists show it."""

    id: bytes
    source: str
    tenant: str
    event_id: str
    correlation_id: str | None
    type: str | None
    received_at: int
    state: State
    number: int
    attempts: int
    due_at: int | None
    processed_at: int | None
    finalized_at: int | None
    handler: str | None
    handler_version: str | None
    result_sha256: bytes | None
    changed: bool
    error_code: str | None
    error: str | None


class Conflict(Struct, frozen=True, kw_only=True):
    """Another body under the id of a stored event."""

    id: bytes
    event: bytes
    source: str
    tenant: str
    event_id: str
    received_at: int
    body_sha256: bytes
    body_bytes: int | None  # None: its retention has ended


class DocumentRow(Struct, frozen=True, kw_only=True, gc=False):
    """A document as stored: `body` is its state as JSON, None before anything was decided; `wake_at` Unix milliseconds."""

    key: DocumentKey
    body: str | None
    state: str = ""
    wake_at: int | None = None
    updated_at: int = 0


class HeldRun(Struct, frozen=True):
    """A run that is held, its document, and the last step by which its event waits, as JSON."""

    run: bytes
    key: DocumentKey | None
    step: str | None


class StepRow(Struct, frozen=True, kw_only=True, gc=False):
    """One decision about a document, for the journal: `body` is the step as JSON, `event` whose it is, or None."""

    id: bytes
    key: DocumentKey
    event: bytes | None
    event_id: str
    verdict: str
    at: int
    body: str


class Transaction(ReceiptTransaction, TryTransaction, WakingTransaction, Protocol):
    """The inbox inside one open transaction. Every method raises StoreUnavailable when the database is away."""

    def only_reads(self) -> None:
        """Note, before anything else, that nothing will be written: where there is one writer, it need not be had for that."""
        ...

    def persist(self, requests: Sequence[StoredRequest], *, careful: bool) -> list[list[Stored]]:
        """Write what is new; returns the result for every event of every request.

        Of equal keys the first is kept; one with another hash is stored as a conflict. Unless `careful`, all are taken for
        new, which is fast, and Clash is raised if one is not.
        """
        ...

    def claim(self, *, now: int, lease_ms: int, token: bytes, limit: int) -> list[Run]:
        """Lease due runs, oldest first, and count the attempt. Runs of a lapsed lease are due again."""
        ...

    def hold(self, runs: Sequence[bytes], token: bytes) -> set[bytes]:
        """Lock those of these runs that the token still owns until the transaction ends; returns them."""
        ...

    def release(self, runs: Sequence[bytes], token: bytes, *, due_at: int) -> None:
        """Give back runs that were not tried, without counting an attempt. Those that had failed before are due since `due_at`:
        since they were claimed first, as a later instant would let waits of their documents end before them."""
        ...

    def put_off(self, runs: Sequence[bytes], token: bytes, *, until: int) -> None:
        """Give back runs that were not tried, to be due at this instant: another worker has their document. Until then they
        matter for its waits as if somebody had them."""
        ...

    def call_back(self, runs: Sequence[bytes], *, now: int) -> tuple[Collection[bytes], Collection[bytes]]:
        """Let runs be due at once that are put off; returns them, and those that nobody has had yet: locked just now, or due
        since they were called before. The others somebody has, or has had, by now."""
        ...

    def settle(self, settlements: Sequence[Settlement]) -> None:
        """Write how runs ended. Only for runs that `hold` returned in this transaction."""
        ...

    def last_results(self, events: Sequence[bytes]) -> dict[bytes, bytes]:
        """The result hash of the newest finished earlier run of each event that has one."""
        ...

    def replay(self, wanted: Filter, *, reason: str, now: int, ids: Callable[[], bytes], limit: int) -> int:
        """Begin a further run of each event that matches and has none open; returns how many were begun."""
        ...

    def decide(self, event: bytes, *, state: State, code: str | None, note: str | None, now: int) -> bool:
        """Set the newest run to `finalized` or `rejected` if it is `processed`; True if it was."""
        ...

    def unhandled(self, *, after: bytes, limit: int) -> list[tuple[bytes, str, str | None]]:
        """Runs parked as `UNHANDLED`, in the order of ids, after this one, with source and type."""
        ...

    def take_up(self, runs: Sequence[bytes], *, now: int) -> int:
        """Let parked runs be processed; returns how many were still parked."""
        ...

    def unpark(
        self, source: str, versions: Collection[str], *, after: bytes, limit: int, now: int
    ) -> tuple[int, bytes | None]:
        """Look at the next parked runs, by id, and let those of schema versions that are known now be processed; returns how
        many, and where to go on (None: it is done)."""
        ...

    def entries(self, wanted: Filter, *, limit: int) -> list[Entry]:
        """Events with their newest run, newest first."""
        ...

    def conflicts(self, *, limit: int, before: bytes | None = None) -> list[Conflict]:
        """Conflicts older than `before` (an id), newest first, without their bodies."""
        ...

    def documents(self, keys: Sequence[DocumentKey]) -> dict[DocumentKey, DocumentRow]:
        """The documents in the order of their keys, made if missing, and locked until the transaction ends."""
        ...

    def keep_documents(self, rows: Sequence[DocumentRow]) -> None:
        """Write documents that `documents` gave."""
        ...

    def journal(self, steps: Sequence[StepRow]) -> None:
        """Write decisions; they are never changed."""
        ...

    def held_runs(self, key: DocumentKey, event_ids: Sequence[str]) -> list[Run]:
        """The runs of a document's events that are `held`, locked."""
        ...

    def hasten(
        self, tenant: str, events: Sequence[tuple[str, str]], *, codes: Sequence[str], now: int
    ) -> None:
        """Let events, by source and id, be processed at once that were put off with such a code, but for those that others have
        locked."""
        ...

    def effective_step(self, event: bytes) -> tuple[DocumentKey, str] | None:
        """The latest decision by which an event took effect, or was recorded as informational, and on which document; None: there
        is none, or what it did was taken back."""
        ...

    def held_after(self, after: bytes, *, limit: int) -> list[HeldRun]:
        """The next runs that are held, by id, at most so many."""
        ...

    def history(
        self, document: str, *, document_type: str | None, tenant: str, limit: int = 0
    ) -> list[tuple[DocumentRow, list[str]]]:
        """Documents of this id, each with its last decisions in order, at most so many."""
        ...

    def counts(self) -> dict[tuple[str, State], int]:
        """Runs by source and state."""
        ...

    def depth(self, *, now: int, limit: int) -> list[Depth]:
        """Waiting runs by source; at most `limit` of each kind are counted."""
        ...

    def next_due(self, types: Sequence[str]) -> int | None:
        """When the next run, or document of these types, is due, Unix milliseconds; None: nothing waits."""
        ...

    def prune(
        self,
        *,
        bodies_before: int,
        events_before: int,
        limit: int,
        place: PrunePlace = FROM_THE_START,
        within_s: float | None = None,
    ) -> PrunedPart:
        """Go on with a walk of retention: remove bodies and, later, dedupe records of events that are finished, at most
        `limit` of each, and look at a bounded number of rows whatever it finds. No statement of it takes longer than
        `within_s`, where the database can be told so."""
        ...

    def savepoint(self) -> AbstractContextManager[None]:
        """Undo the changes made inside when it raises; the transaction goes on."""
        ...

    @property
    def has_changed_session(self) -> bool:
        """True if others in this transaction might see what a handler has set: a setting, a temporary table."""
        ...

    def tx(self, *, is_async: bool) -> AbstractContextManager[Any]:
        """The transaction as a handler gets it."""
        ...

    def wait(self, coroutine: Coroutine[object, None, T]) -> T:
        """Wait for a handler that is a coroutine."""
        ...


class Store(Protocol):
    """The storage of an inbox, for callers that block."""

    def run(self, work: Callable[[Transaction], T]) -> T:
        """Call `work` in one transaction and commit. Raises StoreUnavailable, or what `work` raises: nothing is kept."""
        ...

    def create(self) -> None:
        """Make the tables that are missing."""
        ...

    def close(self) -> None: ...


class AsyncStore(Protocol):
    """`Store` for callers that must not block."""

    def run(self, work: Callable[[Transaction], T]) -> Awaitable[T]: ...

    def create(self) -> Awaitable[None]: ...

    def close(self) -> Awaitable[None]: ...
