"""A line without room for all that wait: in a small world, all orders, gaps and failures. What came is never given up."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from surehook.core.workflow.decide import (
    Document,
    Order,
    asked,
    decide,
    fitting,
    grant,
    leave,
    put_off,
    release,
    wake_at,
)
from surehook.core.workflow.values import OperatorCommand
from tests.core.test_workflow_retried import NOW, WAIT_S, World, came, event, names, table

MODES = {
    "skip": {"mode": "buffer", "wait_s": WAIT_S, "then": "skip"},
    "refuse": {"mode": "strict", "wait_s": WAIT_S},
    "for ever": {"mode": "strict", "then": "wait"},
}


def tables(count: int, **order):
    return table(**order, count=count)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("mode", MODES)
def test_whatever_fails_and_in_whatever_order_they_come_each_takes_effect_once_and_in_turn(mode, count):
    small = tables(count, **MODES[mode])
    for order in permutations((1, 2, 3, 4, 5)):
        for fails in product((0, 2), repeat=5):
            world = came(order, fails, numbered=True, of=small)
            assert world.applied == names((1, 2, 3, 4, 5)), (order, fails, world.ends)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("numbers", [(1, 3, 4, 5), (2, 3, 5), (3, 4, 5), (1, 2, 5)], ids=str)
def test_where_numbers_never_come_they_are_given_up_and_no_others(numbers, count):
    small = tables(count, **MODES["skip"])
    for order in permutations(numbers):
        for fails in product((0, 1), repeat=len(numbers)):
            world = came(order, fails, numbered=True, of=small)
            assert world.applied == names(numbers), (order, fails, world.ends)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("mode", MODES)
def test_a_release_passes_over_what_is_missing_and_over_none_that_was_handed_back(mode, count):
    small = tables(count, **MODES[mode])
    for order in permutations((2, 3, 4, 5)):
        world = World(small, {})
        for number in order:
            world.come(event(number))
        world.rest(WAIT_S // 3)
        assert world.document is not None
        assert world.applied == []
        word = OperatorCommand(what="release", at=world.now, by="ana")
        world.document = asked(world.document, word)
        world.rest()
        assert world.applied == names((2, 3, 4, 5)), (order, world.ends)


def test_nor_where_one_with_a_higher_number_took_its_place_meanwhile():
    small, document = tables(2, **MODES["skip"]), full(2, 3, 4)
    for one in ("evt_2", "evt_3"):
        document = leave(small, document, one, "", NOW, back_at=None)
    document = decide(small, document, event(5), NOW + 1, passes=False).document
    assert (numbers_of(document.waiting), numbers_of(document.retried)) == ([5], [4])
    document = release(small, document, NOW + 2, by="ana").document
    assert document.next == 4
    document = decide(small, document, event(4), NOW + 3, passes=False).document
    assert (document.next, document.waiting, document.retried) == (6, (), ())


def full(*numbers, count: int = 2, since: int = NOW) -> Document:
    small, document = tables(count, **MODES["skip"]), None
    for number in numbers:
        document = decide(small, document, event(number), since, passes=False).document
    assert document is not None
    return document


def numbers_of(ones) -> list[int | None]:
    return [one.event.sequence for one in ones]


def test_the_lowest_numbers_stand_in_the_line_and_the_others_are_kept_in_mind():
    document = full(5, 4, 3, 2)
    assert numbers_of(document.waiting) == [2, 3]
    assert numbers_of(document.retried) == [4, 5]


def test_a_decision_names_those_that_are_handed_back():
    small = tables(2, **MODES["skip"])
    document = full(3, 4)
    mine = decide(small, document, event(5), NOW)
    assert ([step.event for step in mine.handed_back], mine.again) == (["evt_5"], True)
    other = decide(small, document, event(2), NOW)
    assert ([step.event for step in other.handed_back], other.again) == (["evt_4"], False)
    assert other.own is not None
    assert other.own.rule == "gap"
    assert [step.event for step in other.released] == ["evt_4"]


def test_the_first_wait_ends_in_time_however_often_others_are_handed_back():
    small, document = tables(2, **MODES["skip"]), full(3, 4)
    for second in range(0, WAIT_S, 5):
        document = decide(small, document, event(5), NOW + second * 1000, passes=False).document
    assert wake_at(small, document) == NOW + WAIT_S * 1000
    steps = decide(small, document, None, NOW + WAIT_S * 1000).steps
    assert [step.event for step in steps if step.is_move] == ["evt_3", "evt_4"]


def test_there_is_room_for_those_with_the_lowest_numbers():
    small, document = tables(2, **MODES["skip"]), full(2, 3, 4, 5)
    assert fitting(small.order, document) == []
    document = decide(small, document, event(1), NOW, passes=False).document
    assert [one.sequence for one in fitting(small.order, document)] == [4, 5]


def test_one_that_stands_behind_those_that_were_handed_back_keeps_no_room_from_them():
    document = full(3, 5, 4, 2)
    order = Order(mode="buffer", wait_s=WAIT_S, then="skip", count=2)
    document = leave(tables(2, **MODES["skip"]), document, "evt_2", "", NOW, back_at=None)
    assert (numbers_of(document.waiting), numbers_of(document.retried)) == ([3], [4, 5])
    assert [one.sequence for one in fitting(order, document)] == [4]


def test_one_whose_turn_came_and_that_failed_was_not_handed_back_any_more():
    small = tables(2, **MODES["skip"])
    document = put_off(small, full(2, 3, 4), event(4), NOW, back_at=NOW + 1)
    assert fitting(small.order, leave(small, document, "evt_2", "", NOW, back_at=None)) == []


@pytest.mark.parametrize(("wait_s", "again_ms"), [(900, 60_000), (60, 30_000), (0.5, 1_000), (None, 60_000)])
def test_who_is_handed_back_comes_again_before_another_wait_is_over(wait_s, again_ms):
    assert Order(mode="strict", wait_s=wait_s, then="refuse" if wait_s else "wait").again_ms == again_ms


def test_an_event_without_a_number_takes_no_place_of_another():
    small = tables(2, **MODES["skip"])
    decision = decide(small, full(3, 4), event(5, numbered=False), NOW, passes=False)
    assert decision.again
    assert (numbers_of(decision.document.waiting), decision.document.retried) == ([3, 4], ())


@pytest.mark.parametrize("mode", MODES)
def test_a_token_goes_up_to_one_that_was_handed_back_and_on_once_that_is_through(mode):
    """It did nothing as long as that one was out: for ever, where events wait for ever."""
    world = World(tables(1, **MODES[mode]), {})
    for number in (3, 4):
        world.come(event(number))
    world.rest(1)
    assert world.document is not None
    world.document = grant(world.document, "by hand")
    world.come(event(5, token="by hand"))
    world.rest(WAIT_S // 2 + 5 if mode != "for ever" else 70)
    assert (world.applied, world.document.grants) == (names((3, 4, 5)), ())


@pytest.mark.parametrize("count", [1, 2, 3])
def test_some_without_a_number_keep_nothing_waiting_for_ever(count):
    """What was let go on forgot that it had waited, or waited for one that could not come in before it had gone."""
    small = tables(count, **MODES["skip"])
    for order in permutations((2, 3, 4, 5)):
        for unnumbered in (2, 3, 4, 5):
            world = World(small, {})
            for number in order:
                world.come(event(number, number != unnumbered))
            world.rest(10_000)
            assert world.document is not None
            assert (world.document.waiting, world.document.retried, world.due) == ((), (), []), (
                order,
                unnumbered,
            )


def test_one_that_is_put_off_for_what_comes_first_stays_protected():
    """A release gave its number up, though it lacked nothing but room."""
    small, document = tables(2, **MODES["skip"]), full(2, 3, 4)
    document = put_off(small, document, event(4), NOW, back_at=NOW + 1, has_failed=False)
    assert [one.line_full for one in document.retried] == [True]
