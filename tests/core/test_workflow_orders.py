"""All orders in which a document's events can arrive, and all with one of them twice, against the model."""

from __future__ import annotations

from itertools import permutations

import msgspec
import pytest

from surehook.core.workflow.decide import Arrival, Decision, Document, Order, Table, decide
from surehook.core.workflow.signing import SIGNING
from tests.core.workflow_model import AGREED, DECLINES, Line, Told, arrivals, expected

NOW = 1_795_000_000_000
BUFFER = msgspec.structs.replace(SIGNING, order=Order(mode="buffer", wait_s=60, then="skip"))
FREE = msgspec.structs.replace(SIGNING, order=Order(mode="free"))

both = pytest.mark.parametrize("table", [SIGNING, BUFFER], ids=["strict", "buffer"])
documents = pytest.mark.parametrize("lines", [AGREED, DECLINES], ids=["agreed", "declines"])


def told(decision: Decision) -> list[Told]:
    return [(step.event, step.verdict, step.after, step.released) for step in decision.steps]


class Walk:
    """Every way in which a set of events can arrive, walked as a tree; each decision is checked against the model.

    `decide` is a function of its arguments, so where two ways lead to the same document at the same instant the decisions
    that follow are made once and looked up after that. Whether it is one is a test of its own.
    """

    def __init__(self, table: Table, lines: tuple[Line, ...]) -> None:
        self.table, self.lines, self.events = table, lines, arrivals(lines)
        self.made: dict[tuple[int, int], tuple[int, Document, list[Told]]] = {}
        self.documents: dict[bytes, int] = {}
        self.ways = 0

    def go(self, copies: dict[int, int]) -> None:
        """Walk all orders of `copies` (number of event → how often it comes)."""
        self._step(-1, None, copies, frozenset())

    def _step(
        self, key: int, document: Document | None, copies: dict[int, int], arrived: frozenset[int]
    ) -> None:
        left = [number for number, count in copies.items() if count]
        if not left:
            assert document is not None
            assert (document.state, document.next, document.waiting) == (
                self.lines[-1].after,
                len(self.lines) + 1,
                (),
            )
            self.ways += 1
        for number in left:
            after, then, steps = self._decide(key, document, number)
            assert steps == expected(self.lines, arrived, number), (sorted(arrived), number)
            self._step(after, then, {**copies, number: copies[number] - 1}, arrived | {number})

    def _decide(self, key: int, document: Document | None, number: int) -> tuple[int, Document, list[Told]]:
        found = self.made.get((key, number))
        if found is None:
            decision = decide(self.table, document, self.events[number - 1], NOW)
            stored = msgspec.json.encode(decision.document)
            after = self.documents.setdefault(stored, len(self.documents))
            found = self.made[key, number] = (
                after,
                msgspec.json.decode(stored, type=Document),
                told(decision),
            )
        return found


@both
@documents
def test_in_every_order_each_event_has_the_verdict_of_the_model_and_the_end_is_the_same(table, lines):
    walk = Walk(table, lines)
    walk.go(dict.fromkeys(range(1, 8), 1))
    assert walk.ways == 5040


@pytest.mark.slow
@both
@documents
def test_an_event_that_comes_twice_changes_nothing_wherever_it_comes(table, lines):
    walk = Walk(table, lines)
    for twice in range(1, 8):
        walk.go({number: 1 + (number == twice) for number in range(1, 8)})
    assert walk.ways == 7 * 40320 // 2


@pytest.mark.slow
@both
@documents
def test_a_missing_event_holds_back_all_after_it_and_nothing_before_it(table, lines):
    for missing in range(1, 8):
        for order in permutations([number for number in range(1, 8) if number != missing], 6):
            if order[:2] > (3, 3):
                continue  # a third of them is enough: without a gap this is the walk above
            document, arrived = None, frozenset()
            for number in order:
                decision = decide(table, document, arrivals(lines)[number - 1], NOW)
                assert told(decision) == expected(lines, arrived, number)
                document, arrived = decision.document, arrived | {number}
            assert document is not None
            assert document.next == missing
            assert [one.event.sequence for one in document.waiting] == list(range(missing + 1, 8))


@pytest.mark.slow
@documents
def test_times_change_nothing(lines):
    """The clock goes on, back and stands still between arrivals: verdicts and state are the model's."""
    for start, order in enumerate(permutations(range(1, 8))):
        if start % 7:
            continue
        document, arrived = None, frozenset()
        for place, number in enumerate(order):
            decision = decide(
                SIGNING, document, arrivals(lines)[number - 1], NOW + (start * 7919 * place) % 100_000
            )
            assert told(decision) == expected(lines, arrived, number)
            document, arrived = decision.document, arrived | {number}
        assert document is not None
        assert document.state == lines[-1].after


@pytest.mark.parametrize("mode", ["buffer", "free"])
def test_without_numbers_every_order_ends_alike(mode):
    """Nobody counted; what lies beyond what is known from the table alone."""
    table = BUFFER if mode == "buffer" else FREE
    events = [Arrival(id=line.type, type=line.type) for line in AGREED if line.party != "bob"]
    for order in permutations(events):
        document = None
        for event in order:
            document = decide(table, document, event, NOW).document
        assert document is not None
        assert (document.state, document.waiting) == ("completed", ())


def test_buffer_without_numbers_passes_over_no_state_that_must_be_seen():
    """`free` leaps over what comes late; `buffer` waits for it. Countersigning may be left out, signing may not."""
    kinds = ["document.sent", "document.signed", "document.countersigned", "document.completed"]
    for order in permutations(kinds):
        document, moves = None, []
        for kind in order:
            decision = decide(BUFFER, document, Arrival(id=kind, type=kind), NOW)
            document = decision.document
            moves += [step.after for step in decision.steps if step.is_move]
        assert moves in (["sent", "signed", "completed"], ["sent", "signed", "countersigned", "completed"]), (
            order
        )
