"""The state behind the memory ledger, and the few moves that keep its indexes true.

A row lies in exactly one of three places: under its holder, under its parking group, or in its lane.
`moving` takes it out of its place, lets the caller change it, and puts it where it then belongs.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager

from lab.ledger.rows import KnownKey, Receipt, Row, Story
from lab.ledger.sorted_keys import SortedKeys
from surehook.core.errors import NodeEvicted
from surehook.core.model import (
    LANES,
    Attempt,
    BreakerRow,
    Delivery,
    Endpoint,
    Event,
    EventType,
    NodeRow,
    Notice,
    Secret,
    Tenant,
)
from surehook.ledgers.changes import Note
from surehook.ports.handoff import LaneMarks
from surehook.ports.reading import ReplayJob
from surehook.ports.registry import NOTES_KEPT, ApiKey


class Group:
    """The parked rows of one (endpoint, reason): by id, and by the instant their age counts from."""

    __slots__ = ("ages", "ids")

    def __init__(self) -> None:
        self.ids: SortedKeys[bytes] = SortedKeys()
        self.ages: SortedKeys[tuple[int, bytes]] = SortedKeys()


class Book:
    def __init__(self) -> None:
        # configuration
        self.version = 1
        self.changes: deque[Note] = deque(maxlen=NOTES_KEPT)
        self.tenants: dict[str, Tenant] = {}
        self.event_types: dict[str, EventType] = {}
        self.endpoints: dict[bytes, Endpoint] = {}
        self.secrets: dict[bytes, Secret] = {}
        self.api_keys: dict[bytes, ApiKey] = {}
        # nodes that are not evicted, and their counters
        self.nodes: dict[bytes, NodeRow] = {}
        self.beats: dict[bytes, int] = {}
        # events, and the instants retention goes by
        self.events: dict[bytes, Event] = {}
        self.event_ids: SortedKeys[bytes] = SortedKeys()
        self.event_ages: SortedKeys[tuple[int, bytes]] = SortedKeys()
        self.body_ages: SortedKeys[tuple[int, bytes]] = SortedKeys()
        # Event → unfinished deliveries and dead letters.
        self.needed: defaultdict[bytes, int] = defaultdict(int)
        self.keys: dict[tuple[str, str], KnownKey] = {}
        self.key_ages: SortedKeys[tuple[int, str, str]] = SortedKeys()
        # deliveries: unfinished, finished, and both together in the order of their ids
        self.rows: dict[bytes, Row] = {}
        self.stories: dict[bytes, Story] = {}
        self.delivery_ids: SortedKeys[bytes] = SortedKeys()
        self.story_ages: SortedKeys[tuple[int, bytes]] = SortedKeys()
        self.dead_letters: SortedKeys[bytes] = SortedKeys()
        self.history: dict[bytes, list[Attempt]] = {}
        # where the unfinished ones lie
        self.ready: list[SortedKeys[tuple[int, bytes]]] = [SortedKeys() for _ in LANES]
        # … of these the ones that no queue knows, and the ones that were handed over to a broker, by generation
        self.unmarked: list[SortedKeys[tuple[int, bytes]]] = [SortedKeys() for _ in LANES]
        self.marked: list[SortedKeys[tuple[int, int, bytes]]] = [SortedKeys() for _ in LANES]
        self.marks = [LaneMarks(epoch=1, passed=0) for _ in LANES]
        self.sweepers: list[bytes | None] = [None for _ in LANES]
        self.held: defaultdict[bytes, SortedKeys[bytes]] = defaultdict(SortedKeys)
        self.groups: dict[tuple[bytes, str], Group] = {}
        self.overdue: SortedKeys[tuple[int, bytes]] = SortedKeys()
        self.of_endpoint: defaultdict[bytes, SortedKeys[bytes]] = defaultdict(SortedKeys)
        self.of_tenant: defaultdict[str, int] = defaultdict(int)
        self.held_in_lane = [0 for _ in LANES]
        self.parked_in_lane = [0 for _ in LANES]
        # the rest
        self.breakers: dict[tuple[str, str], BreakerRow] = {}
        self.closings: dict[tuple[str, str], BreakerRow] = {}
        self.notices: dict[bytes, Notice] = {}
        self.notice_ids: SortedKeys[bytes] = SortedKeys()
        self.notice_ages: SortedKeys[tuple[int, bytes]] = SortedKeys()
        self.replays: dict[bytes, ReplayJob] = {}
        # what receivers said later, by event and endpoint; the waits for an end; the instants of the last changes
        self.receipts: dict[tuple[bytes, bytes], Receipt] = {}
        self.awaited: SortedKeys[tuple[int, bytes, bytes]] = SortedKeys()
        self.receipt_ages: SortedKeys[tuple[int, bytes, bytes]] = SortedKeys()

    # -- the fence --------------------------------------------------------------------------------------

    def fence(self, node: bytes) -> None:
        """Raise NodeEvicted unless the node has entered and is not evicted."""
        if node not in self.nodes:
            raise NodeEvicted(node)

    def in_hand(self, delivery: Delivery, node: bytes) -> Row | None:
        """The delivery's row, if this node holds it for the same attempt."""
        row = self.rows.get(delivery.id)
        if row is None or row.holder != node or row.attempt != delivery.attempt:
            return None
        return row

    # -- rows -------------------------------------------------------------------------------------------

    def note_change(self, kind: str, key: bytes) -> None:
        """Raise the version, and note what for."""
        self.version += 1
        self.changes.append((self.version, kind, key))

    def add_event(self, event: Event) -> None:
        self.events[event.id] = event
        self.event_ids.add(event.id)
        self.event_ages.add((event.accepted_at, event.id))
        self.body_ages.add((event.accepted_at, event.id))

    def add_row(self, row: Row) -> None:
        self.rows[row.id] = row
        self.history[row.id] = []
        self.delivery_ids.add(row.id)
        self.of_endpoint[row.endpoint].add(row.id)
        self.of_tenant[row.tenant] += 1
        self.needed[row.event] += 1
        self._put(row)

    @contextmanager
    def moving(self, row: Row) -> Iterator[Row]:
        """Change a row. What the block does must not raise."""
        self._lift(row)
        yield row
        self._put(row)

    def lease(self, row: Row, node: bytes) -> Delivery:
        """Give an unheld row to the node, and the node its copy."""
        with self.moving(row):
            row.holder = node
            row.handed = 0
        return self.copy(row)

    def copy(self, row: Row) -> Delivery:
        return row.hand_out(self.events[row.event].body)

    def finish(
        self,
        row: Row,
        *,
        entry: Attempt,
        state: str,
        reason: str | None,
        now: int,
        request_headers: bytes | None,
    ) -> None:
        """Append the last entry, take the row out and keep its story."""
        self._lift(row)
        del self.rows[row.id]
        self.of_endpoint[row.endpoint].discard(row.id)
        self.of_tenant[row.tenant] -= 1
        self.history[row.id].append(entry)
        story = Story(
            id=row.id,
            event=row.event,
            endpoint=row.endpoint,
            tenant=row.tenant,
            type=row.type,
            state=state,
            reason=reason,
            lane=entry.lane,
            outcome=entry.outcome if entry.kind == "attempt" else row.outcome,
            unknown=entry.unknown if entry.kind == "attempt" else row.unknown,
            finished_at=now,
            replay_of=row.replay_of,
            request_headers=request_headers,
        )
        self.stories[row.id] = story
        self.story_ages.add((now, row.id))
        if story.is_dead_letter:
            self.dead_letters.add(row.id)
        else:
            self.release_event(row.event)

    def release_event(self, event: bytes) -> None:
        """One delivery fewer needs the event."""
        self.needed[event] -= 1
        if not self.needed[event]:
            del self.needed[event]

    def add_notice(self, notice: Notice) -> None:
        """Keep it; one that is there already stays."""
        if notice.id in self.notices:
            return
        self.notices[notice.id] = notice
        self.notice_ids.add(notice.id)
        self.notice_ages.add((notice.at, notice.id))

    def put_receipt(self, key: tuple[bytes, bytes], receipt: Receipt | None) -> None:
        """Keep a receipt in the place of the one before, or (None) take it away."""
        before = self.receipts.pop(key, None)
        if before is not None:
            self.receipt_ages.discard((before.changed_at, *key))
            if before.row.finalize_by is not None:
                self.awaited.discard((before.row.finalize_by, *key))
        if receipt is not None:
            self.receipts[key] = receipt
            self.receipt_ages.add((receipt.changed_at, *key))
            if receipt.row.finalize_by is not None:
                self.awaited.add((receipt.row.finalize_by, *key))

    # -- the three places -------------------------------------------------------------------------------

    def _put(self, row: Row) -> None:
        if row.overdue_at is not None:
            self.overdue.add((row.overdue_at, row.id))
        if row.holder is not None:
            self.held[row.holder].add(row.id)
            self.held_in_lane[row.lane] += 1
        elif row.parked is not None:
            group = self.groups.setdefault((row.endpoint, row.parked), Group())
            group.ids.add(row.id)
            group.ages.add((row.aged_from, row.id))
            self.parked_in_lane[row.lane] += 1
        else:
            self.ready[row.lane].add((row.due_at, row.id))
            if row.handed:
                self.marked[row.lane].add((row.handed, row.due_at, row.id))
            else:
                self.unmarked[row.lane].add((row.due_at, row.id))

    def _lift(self, row: Row) -> None:
        if row.overdue_at is not None:
            self.overdue.discard((row.overdue_at, row.id))
        if row.holder is not None:
            self.held[row.holder].discard(row.id)
            self.held_in_lane[row.lane] -= 1
        elif row.parked is not None:
            group = self.groups[row.endpoint, row.parked]
            group.ids.discard(row.id)
            group.ages.discard((row.aged_from, row.id))
            self.parked_in_lane[row.lane] -= 1
            if not group.ids:
                del self.groups[row.endpoint, row.parked]
        else:
            self.ready[row.lane].discard((row.due_at, row.id))
            if row.handed:
                self.marked[row.lane].discard((row.handed, row.due_at, row.id))
            else:
                self.unmarked[row.lane].discard((row.due_at, row.id))
