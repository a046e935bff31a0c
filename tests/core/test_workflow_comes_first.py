"""Events that are not in a document may have their turn before those that wait there, or may not: in all small worlds."""

from __future__ import annotations

from itertools import combinations, permutations, product

import pytest

from surehook.core.workflow.decide import OperatorCommand, asked, decide, leave, may_come_first
from tests.core.test_workflow_retried import NOW, REFUSE, SKIP, WAIT_S, event, table

LATER = NOW + WAIT_S * 1000
FULL = [
    table(**order, count=2)
    for order in ({"mode": "buffer", "wait_s": WAIT_S, "then": "skip"}, {"mode": "strict"})
]
TABLES = {"skip": SKIP, "refuse": REFUSE, "skip, full": FULL[0], "strict, full": FULL[1]}


def standing(of, numbers, numbered=True):
    """A document to which these events came in this order; it waits for what is missing."""
    document = None
    for number in numbers:
        document = decide(of, document, event(number, numbered), NOW).document
    assert document is not None
    return document


def orders():
    """All orders in which up to four of five events may come."""
    return [
        order
        for size in range(1, 5)
        for some in combinations(range(1, 6), size)
        for order in permutations(some)
    ]


def looks(of, *, may):
    """Documents, and a number that has not come and may come first in them, or not."""
    found = [
        (standing(of, order), number) for order in orders() for number in range(1, 6) if number not in order
    ]
    found = [one for one in found if may_come_first(of, one[0], event(one[1]), NOW) is may]
    assert len(found) > 50
    return found


@pytest.mark.parametrize("of", TABLES.values(), ids=list(TABLES))
def test_one_that_may_not_is_given_up_by_no_wait(of):
    for document, number in looks(of, may=False):
        over = decide(of, document, None, LATER).document
        step = decide(of, over, event(number), LATER).own
        assert step is not None
        assert step.rule != "settled_number", (document, number)


@pytest.mark.parametrize("of", TABLES.values(), ids=list(TABLES))
def test_for_one_that_may_there_is_room(of):
    """It holds up time once: whoever hands it in does not hand it in again."""
    for document, number in looks(of, may=True):
        step = decide(of, document, event(number), NOW).own
        assert step is not None
        assert step.rule != "line_full", (document, number)


MIXED = {"skip": SKIP, "refuse": table(mode="buffer", wait_s=WAIT_S, then="refuse")}


def effects(*decisions):
    """The events that took effect, in a few decisions."""
    return {step.event for one in decisions for step in one.steps if step.verdict == "applied" and step.event}


@pytest.mark.parametrize("of", MIXED.values(), ids=list(MIXED))
def test_where_some_have_no_numbers_nothing_is_lost_either(of):
    """Had it come first, no more would have taken effect."""
    looked = 0
    for order in (one for one in orders() if len(one) < 4):
        for number in set(range(1, 6)) - set(order):
            for numbered in product((True, False), repeat=len(order)):
                document = None
                for place, (other, has_number) in enumerate(zip(order, numbered, strict=True)):
                    document = decide(
                        of, document, event(other, has_number), NOW + place, passes=False
                    ).document
                for one in (event(number), event(number, numbered=False)):
                    assert document is not None
                    if not document.waiting or may_come_first(of, document, one, LATER + 9):
                        continue
                    first = decide(of, document, None, LATER + 9)
                    then = decide(of, first.document, one, LATER + 9, passes=False)
                    came = decide(of, document, one, LATER + 9, passes=False)
                    over = decide(of, came.document, None, LATER + 9)
                    assert effects(came, over) <= effects(first, then), (order, numbered, one.sequence)
                    looked += 1
    assert looked > 50


def test_what_a_release_gives_up_may_come_first_though_nothing_waits_any_more():
    document = standing(SKIP, [1, 5])
    said = asked(document, OperatorCommand(what="release", at=NOW))
    left = leave(SKIP, said, "evt_5", "", NOW, back_at=NOW + 1_000)
    assert may_come_first(SKIP, left, event(3), NOW)
    assert not may_come_first(SKIP, standing(SKIP, [1, 4]), event(5), NOW)


def test_one_whose_turn_had_come_may_come_first():
    document = standing(SKIP, [1, 3], numbered=False)
    document = leave(SKIP, document, "evt_3", "", LATER, back_at=LATER, passed=LATER)
    document = decide(SKIP, document, event(5, numbered=False), LATER, passes=False).document
    assert may_come_first(SKIP, document, event(3, numbered=False), LATER)


def test_one_without_a_number_may_if_its_state_is_reached_or_there_is_room():
    full = table(mode="buffer", wait_s=WAIT_S, then="skip", count=1)
    for of, may in ((SKIP, True), (full, False)):
        one_waits = standing(of, [3], numbered=False)
        assert may_come_first(of, one_waits, event(1, numbered=False), NOW)
        assert may_come_first(of, one_waits, event(4, numbered=False), NOW) is may, (
            "there is room for it, or not"
        )
