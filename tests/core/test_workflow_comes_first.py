"""Events that are not in a document may have their turn before those that wait there, or may not: in all small worlds."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest

from surehook.core.workflow.decide import decide, may_come_first
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
    return [
        order
        for size in range(1, 5)
        for some in combinations(range(1, 6), size)
        for order in permutations(some)
    ]


@pytest.mark.parametrize("of", TABLES.values(), ids=list(TABLES))
def test_one_that_may_not_is_given_up_by_no_wait(of):
    looked = 0
    for order in orders():
        document = standing(of, order)
        for number in set(range(1, 6)) - set(order):
            if not may_come_first(of, document, event(number), NOW):
                over = decide(of, document, None, LATER).document
                step = decide(of, over, event(number), LATER).own
                assert step is not None
                assert step.rule != "settled_number", (order, number)
                looked += 1
    assert looked > 100


@pytest.mark.parametrize("of", TABLES.values(), ids=list(TABLES))
def test_for_one_that_may_there_is_room(of):
    """It holds up time once: whoever hands it in does not hand it in again."""
    looked = 0
    for order in orders():
        document = standing(of, order)
        for number in set(range(1, 6)) - set(order):
            if may_come_first(of, document, event(number), NOW):
                step = decide(of, document, event(number), NOW).own
                assert step is not None
                assert step.rule != "line_full", (order, number)
                looked += 1
    assert looked > 100


def test_one_without_a_number_may_if_its_state_is_reached():
    one_waits = standing(SKIP, [3], numbered=False)
    assert may_come_first(SKIP, one_waits, event(1, numbered=False), NOW)
    assert not may_come_first(SKIP, one_waits, event(4, numbered=False), NOW)
