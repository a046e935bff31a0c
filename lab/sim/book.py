"""A second book, kept by the world: what every committed call of the ledger must have meant.

It follows the port's contract, not an implementation, so it checks the ledger and its callers at once:
a transition that is not in the table, a lease on a held row, a result written without a lease, a claim of a
row that is parked or not yet near its time, a request sent by somebody who does not hold the delivery. Each
breach becomes a sentence in `findings`; the world stops at the first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, field

from lab.ledger.nodes import FREED_PATIENTLY, FREED_WAIT_MS
from surehook.core import ids
from surehook.core.delivery import TRANSITIONS
from surehook.core.model import END_STATES, Attempt, BreakerRow, Delivery, Event, Settled
from surehook.ports.ledger import AcceptResult, Incoming, Recorded, weight
from surehook.ports.reading import ReplayJob

CHURN = 40  # moves of one delivery within a second; honest ones are a claim and a result for each attempt


class Moment(Struct, frozen=True):
    """A row from the instant `at` on."""

    at: float
    state: str
    holder: bytes | None
    attempt: int
    due_at: int
    step: int = 0  # … and from this step of the loop on


class Row(Struct):
    """One delivery as the world knows it."""

    id: bytes
    event: bytes
    endpoint: bytes
    type: str
    attempt: int
    due_at: int
    holder: bytes | None
    parked: str | None
    spared: int = 0
    end: str | None = None
    reason: str | None = None
    replay_of: bytes | None = None
    entries: list[Attempt] = field(default_factory=list)
    interrupted: dict[int, int] = field(default_factory=dict)  # by attempt number
    freed: int = 0  # times running that it was
    past: list[Moment] = field(default_factory=list)

    @property
    def name(self) -> str:
        return ids.text(ids.DELIVERY, self.id)

    @property
    def state(self) -> str:
        if self.end is not None:
            return self.end
        if self.holder is not None:
            return "sending"
        if self.parked is not None:
            return "parked"
        return "retrying" if any(entry.kind == "attempt" for entry in self.entries) else "scheduled"

    def when(self, at: float) -> Moment | None:
        """The row as it stood at loop time `at`; None: it did not exist."""
        found = bisect_right(self.past, at, key=lambda moment: moment.at)
        return self.past[found - 1] if found else None

    def after_step(self, step: int) -> Moment | None:
        """The row as it stood after a step of the loop. One instant may have many: a process that was frozen may write a request
        and give it up in one."""
        found = bisect_right(self.past, step, key=lambda moment: moment.step)
        return self.past[found - 1] if found else None


class Book:
    """Every event, delivery, node and breaker, by the committed calls seen so far."""

    def __init__(
        self,
        time: Callable[[], float],
        *,
        memory_bytes: int | None = None,
        steps: Callable[[], int] = lambda: 0,
    ) -> None:
        """`memory_bytes`: of bodies, that a process may keep. `steps`: of the loop, so far."""
        self._time = time
        self._steps = steps
        self._memory_bytes = memory_bytes
        self.events: dict[bytes, Event] = {}
        self.rows: dict[bytes, Row] = {}
        self.living: set[bytes] = set()
        self.evicted: set[bytes] = set()
        self.breakers: dict[tuple[str, str], BreakerRow] = {}
        self._words: dict[tuple[str, str], BreakerRow] = {}  # what was written of each one last
        self._closings: dict[tuple[str, str], int] = {}  # generation of each one's last closing
        self._breaker_past: dict[tuple[str, str], list[tuple[float, BreakerRow | None]]] = {}
        self.findings: list[str] = []
        self.on_finding: Callable[[str], None] = lambda sentence: None
        self.held: dict[bytes, set[bytes]] = {}  # node → rows
        self.jobs: dict[bytes, ReplayJob] = {}
        self.replayed: set[bytes | None] = set()  # what jobs have made a new delivery of
        self.rotated: dict[bytes, list[bytes]] = {}  # endpoint → secrets that were to be written, told or not

    def find(self, sentence: str) -> None:
        """Something that must never be. The first one stops the story that is told (`on_finding`)."""
        if not self.findings:
            self.on_finding(sentence)
        self.findings.append(sentence)

    def rotates(self, endpoint: bytes, material: bytes) -> None:
        """A secret is about to be written: requests may be signed with it before anybody was told."""
        self.rotated.setdefault(endpoint, []).append(material)

    # -- nodes ------------------------------------------------------------------------------------------

    def entered(self, node: bytes) -> None:
        if node in self.living or node in self.evicted:
            self.find(f"node id {node.hex()} was used twice")
        self.living.add(node)

    def did_evict(self, nodes: Iterable[bytes], freed: int, now: int) -> None:
        count = 0
        for node in nodes:
            self.living.discard(node)
            self.evicted.add(node)
            for row_id in sorted(self.held.pop(node, ())):
                count += 1
                self._interrupt(self.rows[row_id], now)
        if count != freed:
            self.find(f"an eviction freed {freed} deliveries where {count} were held")

    def freed(self, row_ids: Iterable[bytes], node: bytes, now: int) -> None:
        for row_id in row_ids:
            row = self.rows.get(row_id)
            if row is not None and row.holder == node:
                self._interrupt(row, now)

    def _interrupt(self, row: Row, now: int) -> None:
        row.freed += 1
        if row.freed > FREED_PATIENTLY:  # by the clock of who freed it, which may be days ahead
            row.due_at = max(row.due_at, now + FREED_WAIT_MS)
        row.interrupted[row.attempt] = row.interrupted.get(row.attempt, 0) + 1
        self._move(row, "interrupt", holder=None)

    # -- the way in --------------------------------------------------------------------------------------

    def accepted(self, batch: Sequence[Incoming], node: bytes, result: AcceptResult) -> None:
        self._fenced(node, "accept")
        if result.stale:
            return
        for incoming, taken in zip(batch, result.taken, strict=True):
            if not taken.fresh:
                if taken.problem is None and taken.event not in self.events:
                    self.find(f"a repeat of an event that was never accepted: {taken.event.hex()}")
                continue
            known = self.events.setdefault(incoming.event.id, incoming.event)
            if known.body != incoming.event.body:
                self.find(f"event {known.id.hex()} was written twice with different bodies")
            if len(incoming.deliveries) != taken.fan_out:
                self.find(f"an event with {len(incoming.deliveries)} deliveries was answered {taken.fan_out}")
            for delivery in incoming.deliveries:
                if delivery.id not in self.rows:
                    self.add(delivery, node)

    def add(self, delivery: Delivery, node: bytes | None) -> None:
        row = Row(
            id=delivery.id,
            event=delivery.event,
            endpoint=delivery.endpoint,
            type=delivery.type,
            attempt=delivery.attempt,
            due_at=delivery.due_at,
            holder=node if delivery.held else None,
            parked=delivery.parked,
            spared=delivery.spared,
            replay_of=delivery.replay_of,
        )
        self.rows[row.id] = row
        self._hold(row)
        self._remember(row)

    def advanced(self, before: ReplayJob, moved: ReplayJob, made: Sequence[Delivery]) -> None:
        """A replay job came one page further."""
        name = ids.text(ids.REPLAY, moved.id)
        job = self.jobs[moved.id]
        if job.position != before.position or job.state != "running":
            self.find(f"{name} was moved by a walker that is behind")
        if moved.created - job.created != len(made):
            self.find(f"{name} made {len(made)} deliveries and counts {moved.created - job.created}")
        for delivery in made:
            if delivery.replay_of in self.replayed:
                self.find(
                    f"{ids.text(ids.DELIVERY, delivery.id)} is the second that jobs made of one delivery"
                )
            self.replayed.add(delivery.replay_of)
            self.add(delivery, None)
        self.jobs[moved.id] = moved

    # -- the way out -------------------------------------------------------------------------------------

    def claimed(
        self, taken: Sequence[Delivery], node: bytes, *, due_by: int | None, unpark: bool = False
    ) -> None:
        self._fenced(node, "claim")
        if self._memory_bytes is not None and weight(taken[:-1]) >= self._memory_bytes:
            self.find(f"one call leased {weight(taken)} bytes, where memory holds {self._memory_bytes}")
        for delivery in taken:
            row = self._known(delivery.id)
            if row is None:
                continue
            if row.holder is not None:
                self.find(f"{row.name} was leased to a second node while the first holds it")
            if (row.parked is not None) != unpark:
                self.find(f"{row.name} was claimed while it is {row.state}")
            if due_by is not None and row.due_at > due_by:
                self.find(f"{row.name} was claimed {row.due_at - due_by} ms before it may be")
            row.due_at, row.attempt, row.spared = delivery.due_at, delivery.attempt, delivery.spared
            self._move(row, "start", holder=node)

    def parked(self, deliveries: Sequence[Delivery], reason: str, node: bytes) -> None:
        self._fenced(node, "park")
        for delivery in deliveries:
            row = self._known(delivery.id)
            if row is not None and row.holder == node and row.attempt == delivery.attempt:
                self._move(row, "park", holder=None, parked=reason)

    def released(self, deliveries: Sequence[Delivery], node: bytes) -> None:
        self._fenced(node, "release")
        for delivery in deliveries:
            row = self._known(delivery.id)
            if row is not None and row.holder == node and row.attempt == delivery.attempt:
                self._move(row, "hand_back", holder=None)

    def recorded(
        self, settled: Sequence[Settled], node: bytes, outcome: Recorded, breakers: Sequence[BreakerRow]
    ) -> None:
        self._fenced(node, "record")
        lost = set(outcome.lost)
        for result in settled:
            row = self._known(result.delivery.id)
            if row is None:
                continue
            ours = row.holder == node and row.attempt == result.delivery.attempt
            if row.id in lost:
                if ours:
                    self.find(f"the result of {row.name} was refused although its node holds it")
            elif not ours:
                if result.entry is None or result.entry not in row.entries:  # else: the same batch again
                    self.find(f"the result of {row.name} was written by a node that does not hold it")
            else:
                self._settle(row, result)
        for breaker in breakers:
            key = (breaker.tenant, breaker.key)
            self._words[key] = breaker
            if breaker.state != "closed" and breaker.generation < breaker.opened_at:
                self.find(f"the breaker of {key[1]} opened by a generation that is before its instant")
            closed = breaker.state == "closed"
            stands, closing = self.breakers.get(key), self._closings.get(key, 0)
            is_late = stands is not None and stands.generation > breaker.generation
            if closed:
                self._closings[key] = max(closing, breaker.generation)
            elif breaker.generation <= closing:
                is_late = True
            if is_late:
                continue
            self._breaker_past.setdefault(key, []).append((self._time(), None if closed else breaker))
            if closed:
                self.breakers.pop(key, None)
            else:
                self.breakers[key] = breaker

    def overtaken(self, breakers: Sequence[BreakerRow]) -> list[BreakerRow]:
        """Earlier states of these breakers, where they are older."""
        before = ((self._words.get((row.tenant, row.key)), row) for row in breakers)
        return [word for word, row in before if word is not None and word.generation < row.generation]

    def breakers_read(self, rows: Sequence[BreakerRow], asked: Sequence[tuple[str, str]]) -> None:
        """Whoever reads hears what was decided last, whatever was written after it."""
        told = {(row.tenant, row.key): row.generation for row in rows if row.state != "closed"}
        for place in told.keys() | self.breakers.keys():
            stands = self.breakers.get(place)
            if told.get(place) != (None if stands is None else stands.generation):
                self.find(f"what the ledger says of the breaker of {place[1]} was not decided last")
        closings = {(row.tenant, row.key): row.generation for row in rows if row.state == "closed"}
        for place in asked:
            if closings.get(place, 0) != self._closings.get(place, 0):
                self.find(f"the ledger has forgotten a closing of the breaker of {place[1]}")

    def breaker_at(self, key: tuple[str, str], at: float) -> tuple[int, BreakerRow, float] | None:
        """The open breaker that stood in the ledger at loop time `at`, with a number for that opening and when it was written."""
        past = self._breaker_past.get(key, [])
        found = bisect_right(past, at, key=lambda entry: entry[0])
        since, row = past[found - 1] if found else (0.0, None)
        return None if row is None else (found, row, since)

    def _settle(self, row: Row, result: Settled) -> None:
        if result.entry is not None:
            if result.entry.number != row.attempt:
                self.find(f"{row.name} records attempt {result.entry.number} while {row.attempt} is in hand")
            if result.entry.kind == "attempt" and any(
                entry.kind == "attempt" and entry.number == row.attempt for entry in row.entries
            ):
                self.find(f"{row.name} records attempt {row.attempt} twice")
            row.entries.append(result.entry)
            row.freed = 0
        if result.end is not None:
            self.ended(row, result.end, result.reason)
            return
        if result.number < row.attempt:
            self.find(f"{row.name} goes back from attempt {row.attempt} to {result.number}")
        row.attempt, row.due_at, row.spared = result.number, result.due_at, result.spared
        self._move(row, "fail", holder=None, parked=result.parked)

    def ended(self, row: Row, state: str, reason: str | None = None) -> None:
        if state not in END_STATES:
            self.find(f"{row.name} ended in {state}, which is no end state")
        if row.end is not None:
            self.find(f"{row.name} ended as {row.end} and then as {state}")
        row.end, row.reason = state, reason
        self._move(row, "end", holder=None, parked=None)

    def ended_idle(self, row_ids: Iterable[bytes], state: str, reason: str | None) -> None:
        """Ended without a call in hand."""
        for row_id in row_ids:
            row = self._known(row_id)
            if row is None:
                continue
            if row.holder is not None:
                self.find(f"{row.name} was ended as {state} while a node holds it")
            self.ended(row, state, reason)

    def due_now(self, row_id: bytes, now: int) -> None:
        row = self._known(row_id)
        if row is not None:
            row.due_at = min(row.due_at, now)
            self._remember(row)

    # -- shared ------------------------------------------------------------------------------------------

    def _fenced(self, node: bytes, call: str) -> None:
        if node not in self.living:
            self.find(
                f"{call} by node {node.hex()}, which is {'evicted' if node in self.evicted else 'unknown'}"
            )

    def _known(self, row_id: bytes) -> Row | None:
        row = self.rows.get(row_id)
        if row is None:
            self.find(f"the ledger speaks of {ids.text(ids.DELIVERY, row_id)}, which was never accepted")
        return row

    def _move(self, row: Row, why: str, *, holder: bytes | None, parked: str | None = None) -> None:
        before = row.past[-1].state
        if row.holder is not None:
            self.held.get(row.holder, set()).discard(row.id)
        row.holder = holder
        if why != "interrupt":
            row.parked = parked
        self._hold(row)
        if row.state not in TRANSITIONS[before].values():
            self.find(f"{row.name} went from {before} to {row.state} ({why}), which is not in the table")
        self._remember(row)

    def _hold(self, row: Row) -> None:
        if row.holder is not None:
            self.held.setdefault(row.holder, set()).add(row.id)

    def _remember(self, row: Row) -> None:
        if len(row.past) >= CHURN and self._time() - row.past[-CHURN].at < 1.0:
            self.find(f"{row.name} moved {CHURN} times within a second: it goes round in a circle")
        row.past.append(
            Moment(
                at=self._time(),
                state=row.state,
                holder=row.holder,
                attempt=row.attempt,
                due_at=row.due_at,
                step=self._steps(),
            )
        )
