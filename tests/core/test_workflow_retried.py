"""Events that leave the queue without their turn, as their effects fail: in a small world, all orders, gaps and failures.

The world is the protocol of an inbox in a few lines: an event that came is handed in; where its effect fails, nothing of its
decision stands but its place, and it is tried again after a second. One that had waited leaves the queue instead. As time passes, those that
are let go on leave, and are handed in again at once. No wait ends before all that came within it was handed in.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from itertools import pairwise, permutations, product

import msgspec
import pytest
from msgspec import structs

from surehook.core.workflow.decide import (
    Arrival,
    Decision,
    Document,
    OperatorCommand,
    Order,
    Table,
    asked,
    decide,
    grant,
    is_undone,
    leave,
    put_off,
    release,
    wake_at,
)

NOW = 1_795_000_000_000
WAIT_S = 60
STATES = ("draft", "one", "two", "three", "four", "five")
NUMBERED = [(1, 2, 3, 4), (1, 3, 5), (2, 4), (1, 2, 4), (3, 4, 5)]


def table(**order) -> Table:
    return Table(
        document_type="story",
        states=STATES,
        initial="draft",
        terminal=("five",),
        moves={f"story.{after}": {before: after} for before, after in pairwise(STATES)},
        order=Order(**order),
    )


SKIP = table(mode="buffer", wait_s=WAIT_S, then="skip")
REFUSE = table(mode="strict", wait_s=WAIT_S)
REJECT = table(mode="buffer", wait_s=WAIT_S, then="refuse")


def event(number: int, numbered: bool = True, **more) -> Arrival:
    return Arrival(
        id=f"evt_{number}", type=f"story.{STATES[number]}", sequence=number if numbered else None, **more
    )


@pytest.mark.parametrize(("after_s", "why"), [(2, "as it was released"), (WAIT_S + 1, "after 60 s")])
def test_what_was_let_go_says_why_it_gives_numbers_up(after_s, why):
    """A person let it go after a second, its effect failed, and the journal said that it had waited."""
    document = decide(SKIP, None, event(4), NOW).document
    assert document is not None
    document = leave(SKIP, document, "evt_4", "", NOW + 1_000, back_at=NOW + 2_000, passed=NOW + 1_000)
    first, _ = decide(SKIP, document, event(4), NOW + after_s * 1_000, passes=False).steps
    assert (first.rule, first.reason) == ("gave_up", f"numbers 1 to 3 given up {why}")


class World:
    """One document, the events that are to be handed in with their instants, and how often the effect of each still fails."""

    def __init__(self, of: Table, fails: dict[str, int], dies: Collection[str] = ()) -> None:
        self.table, self.fails = of, dict(fails)
        self.dies = dies  # what is dead after its last failure, and not tried again
        self.document: Document | None = None
        self.now = NOW
        self.due: list[tuple[int, Arrival]] = []
        self.came: dict[str, int] = {}  # of those that were not handed in yet
        self.held: dict[str, Arrival] = {}
        self.applied: list[str] = []
        self.ends: dict[str, str] = {}
        self.taken_up: dict[str, int] = {}
        self.arrived: list[str] = []
        self.still_at: int | None = None  # before the happening with this number, for ten waits

    def come(self, one: Arrival, late_s: int = 0) -> None:
        """An event comes, and is handed in so much later."""
        self.due.append((self.now + late_s * 1000, one))
        self.came[one.id] = self.now
        self.arrived.append(one.id)

    def rest(self, seconds: int = 10_000) -> int:
        """Let things happen, in the order of their instants, until nothing does or the time is over; how many did."""
        until = self.now + seconds * 1000
        for happening in range(500):
            if happening == self.still_at:
                self.now += 10 * WAIT_S * 1000
            wakes = self._wake_at()
            own = min(self.due, key=lambda one: (one[0], self.arrived.index(one[1].id)), default=None)
            first = None if own is None else own[0]
            nearest = min((at for at in (wakes, first) if at is not None), default=None)
            if nearest is None or nearest > until:
                self.now = max(self.now, until)
                return happening
            self.now = max(self.now, nearest)
            if own is not None and own[0] <= self.now:
                self.due.remove(own)
                self._hand_in(own[1])
            else:
                assert wakes is not None
                self._wake(wakes)
        pytest.fail("it never comes to rest")

    def _wake_at(self) -> int | None:
        wakes = None if self.document is None else wake_at(self.table, self.document)
        if self.document is not None:
            is_due = bool(decide(self.table, self.document, None, self.now).steps)
            # Those that come at one instant are kept a millisecond apart.
            assert wakes is None or wakes > self.now or is_due, "it wakes for something"
            assert not is_due or (wakes is not None and wakes < self.now + 10), (
                "it wakes as something can go on"
            )
        return None if wakes is None or min(self.came.values(), default=wakes) < wakes else wakes

    def _hand_in(self, own: Arrival) -> None:
        self.came.pop(own.id, None)
        while True:
            decision = decide(self.table, self.document, own, self.now, passes=False)
            failing = self._first_that_fails(decision)
            if failing is None:
                return self._keep(decision, own)
            if failing == own.id:
                back_at = self._back_at(failing, self.now + 1_000)
                self.document = put_off(self.table, self.document, own, self.now, back_at=back_at)
                if back_at is not None:
                    self.due.append((back_at, own))
                return None
            self._leave(failing, self.now + 1_000)

    def _wake(self, until: int) -> None:
        while True:
            decision = decide(self.table, self.document, None, self.now, until=until)
            alone = [step.event for step in decision.released if step.is_move]
            if not alone:
                return self._keep(decision, None)
            for one in alone:
                self._leave(one, self.now, passed=until)

    def _first_that_fails(self, decision: Decision) -> str | None:
        for step in decision.steps:
            if step.is_move and self.fails.get(step.event, 0):
                self.fails[step.event] -= 1
                return step.event
        return None

    def _leave(self, one: str, due_at: int, *, passed: int | None = None) -> None:
        assert self.document is not None
        back_at = due_at if passed is not None else self._back_at(one, due_at)
        self.document = leave(self.table, self.document, one, "", self.now, back_at=back_at, passed=passed)
        gone = self.held.pop(one)
        if back_at is not None:
            self.due.append((back_at, gone))

    def _back_at(self, one: str, at: int) -> int | None:
        return None if one in self.dies and not self.fails[one] else at

    def released(self) -> None:
        """A person lets go on what waits."""
        if self.document is not None:
            self.document = asked(self.document, OperatorCommand(what="release", at=self.now, by="ana"))

    def _keep(self, decision: Decision, own: Arrival | None) -> None:
        self.document = decision.document
        for step in decision.steps:
            if not step.event:
                continue
            self.ends[step.event] = step.rule
            held = self.held.pop(step.event, None)
            if step.rule == "line_full":
                self.due.append((self.now + self.table.order.again_ms, held or own))
            elif step.verdict == "early":
                assert own is not None
                self.held[step.event] = own
            if step.is_move:
                self.applied.append(step.event)


def names(numbers) -> list[str]:
    return [f"evt_{one}" for one in numbers]


def came(order, fails, *, numbered: bool, of: Table = SKIP) -> World:
    """All come at once, in this order; so none is late."""
    world = World(of, dict(zip(names(sorted(order)), fails, strict=True)))
    for number in order:
        world.come(event(number, numbered))
    world.rest()
    assert world.document is not None
    assert (world.document.waiting, world.document.retried) == ((), ())
    return world


@pytest.mark.parametrize("numbers", NUMBERED, ids=str)
def test_whatever_fails_and_in_whatever_order_they_come_each_takes_effect_once_and_in_turn(numbers):
    """Where numbers are given up."""
    for order in permutations(numbers):
        for fails in product((0, 1, 2), repeat=len(numbers)):
            world = came(order, fails, numbered=True)
            assert world.applied == names(numbers), (order, fails, world.ends)


@pytest.mark.parametrize("numbers", NUMBERED, ids=str)
def test_without_numbers_those_that_wait_take_effect_as_if_nothing_had_failed(numbers):
    """By arrival, which may leave one without a move."""
    for order in permutations(numbers):
        without = came(order, (0,) * len(numbers), numbered=False)
        for fails in product((0, 1, 2), repeat=len(numbers)):
            world = came(order, fails, numbered=False)
            assert world.applied == without.applied, (order, fails, world.ends)


@pytest.mark.parametrize("apart_s", [20, 40])
@pytest.mark.parametrize("numbers", [(1, 2, 3, 4), (1, 3, 5)], ids=str)
def test_so_too_where_they_come_one_after_the_other_and_fail_for_longer(numbers, apart_s):
    """Up to forty seconds of failures, while those behind wait for sixty."""
    for order in permutations(numbers):
        for failing in numbers:
            world = World(SKIP, {f"evt_{failing}": 15})
            for number in order:
                world.come(event(number))
                world.rest(apart_s if number == order[0] else 0)
            world.rest()
            missing = set(range(1, max(numbers))) - set(numbers)
            if not missing:
                assert sorted(world.applied) == names(sorted(numbers)), (order, failing)
            numbered = [int(one.removeprefix("evt_")) for one in world.applied]
            assert numbered == sorted(numbered), (order, failing)
            assert f"evt_{failing}" in world.applied, (order, failing, world.ends)


@pytest.mark.parametrize("late", [1, 2, 3, 4])
def test_one_that_came_in_time_and_is_handed_in_late_is_waited_for_whatever_else_fails(late):
    """As if a process had ended with it. What failed comes back when its wait is over, and ends none by itself."""
    for order in permutations((1, 2, 3, 4)):
        for fails in product((0, 1, 2), repeat=4):
            world = World(SKIP, dict(zip(names((1, 2, 3, 4)), fails, strict=True)))
            for number in order:
                world.come(event(number), late_s=3 * WAIT_S if number == late else 0)
            world.rest()
            assert world.applied == names((1, 2, 3, 4)), (order, fails, world.ends)


@pytest.mark.parametrize("numbers", NUMBERED, ids=str)
def test_a_standstill_at_any_moment_gives_up_nothing_that_came_in_time(numbers):
    """As a process that is frozen: waits that are over end one by one, each as what came within it was handed in."""
    for order in permutations(numbers):
        for fails, still_at in product((0, 2), range(12)):
            world = World(SKIP, {f"evt_{order[-1]}": fails})
            for number in order:
                world.come(event(number))
            world.still_at = still_at
            world.rest()
            assert world.applied == names(numbers), (order, fails, still_at, world.ends)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("of", [SKIP, REJECT], ids=["skip", "refuse"])
def test_what_waits_has_its_turn_as_soon_as_what_it_waits_for_is_there_or_is_dead(of, seed):
    """With and without numbers, and releases and grants in between. One waited for days for another that was dead already."""
    dice = random.Random(seed)
    for _ in range(150):
        order = dice.choices((1, 2, 3, 4), k=5)
        fails = {f"evt_{number}_{at}": dice.choice((0, 0, 1, 3)) for at, number in enumerate(order)}
        dies = {name for name, times in fails.items() if times and dice.random() < 0.5}
        world = World(of, fails, dies)
        for at, number in enumerate(order):
            numbered = dice.random() < 0.3
            token = "t" if dice.random() < 0.2 else None
            world.come(structs.replace(event(number, numbered), id=f"evt_{number}_{at}", token=token))
            world.rest(dice.choice((0, 1, 3)))
            if dice.random() < 0.3:
                world.released()
            if dice.random() < 0.2:
                world.document = None if world.document is None else grant(world.document, "t")
        world.rest()
        assert world.document is not None
        assert (world.document.waiting, world.document.retried) == ((), ())


def test_a_wait_that_was_over_earlier_does_not_end_a_later_one():
    """Number 2 waits for 1, and 4 for 3, which came in time for that and is in the hands of a process that was killed."""
    world = World(SKIP, {})
    world.come(event(2))
    world.rest(30)
    world.come(event(4))
    world.rest(0)
    world.now = NOW + (WAIT_S + 10) * 1000
    world.come(event(3), late_s=4 * WAIT_S)
    world.now = NOW + 3 * WAIT_S * 1000
    world.rest()
    assert world.applied == names((2, 3, 4))


def test_what_was_let_go_waits_for_what_is_late_until_time_passes_once_more():
    """Numbers 2 and 3 are let go together, and 2 is not handed in again: where its run is gone, say."""
    document = decide(SKIP, decide(SKIP, None, event(2), NOW).document, event(3), NOW).document
    over, later = NOW + WAIT_S * 1000, NOW + 10 * WAIT_S * 1000
    for number in (2, 3):
        document = leave(SKIP, document, f"evt_{number}", "", over, back_at=over, passed=over)
    waits = decide(SKIP, document, event(3), later, passes=False)
    assert waits.own.rule == "gap"
    until = wake_at(SKIP, waits.document)
    assert until == over + WAIT_S * 1000
    woken = decide(SKIP, waits.document, None, later, until=until)
    assert [step.event for step in woken.released if step.is_move] == ["evt_3"]
    document = leave(SKIP, waits.document, "evt_3", "", later, back_at=later, passed=until)
    assert decide(SKIP, document, event(3), later, passes=False).own.rule == "leap"


def test_where_the_table_refuses_a_failure_gives_up_no_number():
    for order in permutations((1, 2, 3, 4)):
        for fails in product((0, 1, 2), repeat=4):
            world = World(REFUSE, dict(zip(names((1, 2, 3, 4)), fails, strict=True)))
            for number in order:
                world.come(event(number))
            world.rest()
            assert world.applied == names((1, 2, 3, 4)), (order, fails, world.ends)


@pytest.mark.parametrize("fails", list(product((0, 1, 2), repeat=3)), ids=str)
def test_a_token_passes_over_no_event_that_is_tried_again(fails):
    """It came with number 5; 3 waits, and 2 and 4 never come."""
    world = World(REFUSE, dict(zip(names((1, 3, 5)), fails, strict=True)))
    world.come(event(1))
    world.come(event(3))
    world.rest(10)
    assert world.document is not None
    world.document = grant(world.document, "by hand")
    world.come(event(5, token="by hand"))
    world.rest(30)
    assert (world.applied, world.document.grants) == (names((1, 3, 5)), ())


@pytest.mark.parametrize("numbered", [True, False], ids=["numbered", "unnumbered"])
def test_what_a_person_released_need_not_wait_once_more_after_it_failed(numbered):
    world = World(SKIP, {"evt_3": 2})
    world.come(event(3, numbered))
    world.rest(1)
    assert world.document is not None
    word = OperatorCommand(what="release", at=world.now, by="ana", why="seen on paper")
    world.document = asked(world.document, word)
    world.rest(WAIT_S // 2)
    assert world.applied == ["evt_3"]


@pytest.mark.parametrize("order", list(permutations((1, 2, 3, 4))), ids=str)
def test_events_with_and_without_numbers_come_to_rest(order):
    """Who was let go and waits for another that is tried again woke its document at one instant for ever."""
    for numbered in product((True, False), repeat=4):
        for failing, first_s in product(order, (5, WAIT_S + 1)):
            world = World(SKIP, {f"evt_{failing}": 6})
            for number, has_number in zip(order, numbered, strict=True):
                world.come(event(number, has_number))
                world.rest(first_s)
            happenings = world.rest()
            assert happenings < 40, (numbered, failing, first_s)
            assert world.document is not None
            assert world.document.waiting == (), (numbered, failing, first_s)


@pytest.mark.parametrize("first", [1, 4])
@pytest.mark.parametrize(
    ("order", "numbered"),
    [(SKIP, True), (SKIP, False), (REFUSE, True), (REJECT, True), (REJECT, False)],
    ids=["skip", "skip-unnumbered", "strict", "refuse", "refuse-unnumbered"],
)
def test_what_a_person_let_go_does_not_wait_for_what_had_left_before(order, numbered, first):
    """Number 1 fails as often as it is tried; and 4 waits, for it or for what leads to it."""
    world = World(order, {"evt_1": 100})
    for number in (first, 5 - first):
        world.come(event(number, numbered))
        world.rest(2)
    assert world.applied == []
    assert world.document is not None
    world.document = asked(world.document, OperatorCommand(what="release", at=world.now, by="ana"))
    world.rest(1)
    assert world.applied == ["evt_4"]


def held_behind_a_gap() -> Document:
    """Number 1 is done; 3 and 5 wait."""
    document = decide(SKIP, None, event(1), NOW).document
    for number in (3, 5):
        document = decide(SKIP, document, event(number), NOW).document
    return document


class TestWaitingForOne:
    def left(self) -> Document:
        return leave(SKIP, held_behind_a_gap(), "evt_3", "", NOW + WAIT_S * 1000, back_at=NOW + WAIT_S * 1000)

    def test_what_stands_behind_it_waits_for_it_as_long_as_for_any_that_is_missing(self):
        document, until = self.left(), NOW + 2 * WAIT_S * 1000
        assert wake_at(SKIP, document) == until
        assert decide(SKIP, document, None, until - 1).steps == ()
        decision = decide(SKIP, document, None, until)
        assert [(step.event, step.rule) for step in decision.steps] == [("", "gave_up"), ("evt_5", "leap")]
        assert decision.document.retried == ()
        assert decide(SKIP, decision.document, event(3), until).own.rule == "settled_number"

    def test_another_event_may_not_take_its_number(self):
        assert (
            decide(SKIP, self.left(), Arrival(id="other", type="story.three", sequence=3), NOW).own.rule
            == "same_number"
        )

    def test_a_person_who_knew_of_it_may_go_on_without_it(self):
        document = self.left()
        later = release(SKIP, document, NOW + WAIT_S * 1000 + 1, by="ana")
        assert [step.event for step in later.steps if step.is_move] == ["evt_5"]

    def test_one_that_is_not_tried_again_is_missing(self):
        document = leave(SKIP, held_behind_a_gap(), "evt_3", "", NOW, back_at=None)
        assert (document.retried, wake_at(SKIP, document)) == ((), NOW + WAIT_S * 1000)
        gone = leave(SKIP, self.left(), "evt_3", "", NOW, back_at=None)
        assert gone.retried == ()

    def test_one_that_fails_once_more_is_waited_for_anew_and_has_waited_since_it_came(self):
        later = NOW + 3 * WAIT_S * 1000
        again = leave(SKIP, self.left(), "evt_3", "", later - 1, back_at=later)
        ((since, back_at),) = [(one.since, one.back_at) for one in again.retried]
        assert (since, back_at) == (NOW, later)
        assert wake_at(SKIP, again) == later + WAIT_S * 1000

    @pytest.mark.parametrize("numbers", list(permutations((2, 3, 4, 5))), ids=str)
    def test_no_more_than_twice_as_many_are_remembered_as_may_wait_and_those_before_others_are(self, numbers):
        """The oldest was forgotten, for which all others waited."""
        small = table(mode="buffer", wait_s=WAIT_S, then="skip", count=1)
        document: Document | None = None
        for number in numbers:
            document = decide(small, document, event(number), NOW).document
            document = leave(small, document, f"evt_{number}", "", NOW, back_at=NOW)
        assert document is not None
        assert len(document.retried) == 2
        assert "evt_2" in [one.event.id for one in document.retried]

    def test_one_that_did_not_come_back_keeps_its_number_from_no_other(self):
        """It ended with its process, and nobody said so."""
        document, until = self.left(), NOW + 2 * WAIT_S * 1000
        other = Arrival(id="corrected", type="story.two", sequence=2)
        document = decide(SKIP, document, other, until, passes=False).document
        again = Arrival(id="again", type="story.three", sequence=3)
        assert decide(SKIP, document, again, until - 1, passes=False).own.rule == "same_number"
        decision = decide(SKIP, document, again, until, passes=False)
        assert (decision.own.rule, decision.document.retried) == ("move", ())
        assert decide(SKIP, decision.document, event(3), until).own.rule == "same_number"

    def test_one_that_comes_back_after_its_wait_ends_none_by_itself(self):
        """Another that came in time may be on its way still."""
        document = decide(SKIP, None, event(1), NOW).document
        document, later = put_off(SKIP, document, event(3), NOW, back_at=NOW), NOW + 9 * WAIT_S * 1000
        back = decide(SKIP, document, event(3), later, passes=False)
        assert (back.own.rule, back.wake_at) == ("gap", NOW + WAIT_S * 1000)
        (first, second) = decide(SKIP, back.document, event(2), later, passes=False).steps
        assert (first.event, second.event) == ("evt_2", "evt_3")
        assert [step.rule for step in decide(SKIP, back.document, None, later).steps] == ["gave_up", "leap"]


class TestAsTimePasses:
    """What can go on does, whatever it was that changed."""

    def test_a_conflict_stops_nothing_where_the_table_of_today_has_no_order(self):
        """The document woke at once, for ever, and did nothing."""
        stops = msgspec.structs.replace(table(mode="strict"), on_conflict="stop")
        document = decide(stops, None, event(1), NOW).document
        bad = Arrival(id="bad", type="story.unheard", sequence=2)
        document = decide(stops, document, bad, NOW).document
        document = decide(stops, document, event(3), NOW).document
        assert (document.stopped, len(document.waiting)) == (bad, 1)
        free = table(mode="free")
        decision = decide(free, document, None, NOW + 1)
        assert [(step.event, step.rule) for step in decision.steps] == [
            ("bad", "released"),
            ("evt_3", "leap"),
        ]
        assert (decision.wake_at, decision.document.stopped) == (None, None)

    def test_who_comes_stands_behind_those_that_wait_for_one_that_is_tried_again(self):
        """It passed them by, and they were stale without having been tried."""
        document, free = None, table(mode="free")
        for number in (2, 3):
            document = decide(SKIP, document, event(number), NOW).document
        document = leave(free, document, "evt_2", "", NOW, back_at=NOW + 30_000, passed=NOW)
        decision = decide(free, document, event(5), NOW + 1, passes=False)
        assert (decision.own.verdict, decision.own.reason) == (
            "early",
            "others that came before it wait still",
        )
        assert decision.wake_at == NOW + 30_000
        steps = decide(free, decision.document, event(2), NOW + 2, passes=False).steps
        assert [step.event for step in steps if step.is_move] == ["evt_2", "evt_3", "evt_5"]

    def test_what_the_table_of_today_does_not_hold_goes_on(self):
        free = table(mode="free")
        document = held_behind_a_gap()
        assert wake_at(free, document) == NOW
        decision = decide(free, document, None, NOW)
        assert [step.event for step in decision.steps if step.is_move] == ["evt_3", "evt_5"]
        assert decision.document.waiting == ()

    def test_one_to_whose_token_a_grant_was_made_goes_on_also_as_its_wait_is_over(self):
        document = decide(REFUSE, None, event(1), NOW).document
        document = decide(REFUSE, document, event(3, token="agreed"), NOW).document
        later = decide(REFUSE, grant(document, "agreed"), None, NOW + WAIT_S * 1000)
        assert [step.event for step in later.steps if step.is_move] == ["evt_3"]

    def test_a_release_is_of_the_event_that_waited_first_as_it_was_said(self):
        """Another has come since, and stands before it, as it has a number."""
        document = decide(SKIP, None, event(2, numbered=False), NOW).document
        word = OperatorCommand(what="release", at=NOW + 1, by="ana")
        document = decide(SKIP, asked(document, word), event(5), NOW + 1, passes=False).document
        decision = decide(SKIP, document, None, NOW + 2)
        assert [step.event for step in decision.steps if step.is_move] == ["evt_2"]
        assert [one.event.id for one in decision.document.waiting] == ["evt_5"]


class TestNoTimePasses:
    def test_a_predecessor_that_came_in_time_is_not_late_by_being_handed_in_late(self):
        later = NOW + 10 * WAIT_S * 1000
        decision = decide(SKIP, held_behind_a_gap(), event(2), later, passes=False)
        assert [step.event for step in decision.steps] == ["evt_2", "evt_3"]
        assert decide(SKIP, held_behind_a_gap(), event(2), later).own.rule == "settled_number"

    def test_commands_are_left_to_a_call_that_lets_time_pass(self):
        word = OperatorCommand(what="release", at=NOW + 5, by="ana")
        document = asked(held_behind_a_gap(), word)
        decision = decide(SKIP, document, event(2), NOW + 9, passes=False)
        assert decision.document.words == document.words
        assert decision.wake_at == NOW + 5
        assert decide(SKIP, decision.document, None, NOW + 9).document.words == ()


class TestTwoSources:
    """Two senders number their events alike."""

    def test_an_id_of_another_source_is_another_event(self):
        one, other = event(1, source="a"), Arrival(id="evt_1", type="story.two", sequence=2, source="b")
        document = decide(SKIP, None, one, NOW).document
        assert decide(SKIP, document, one, NOW).own.rule == "repeat"
        decision = decide(SKIP, document, other, NOW)
        assert decision.own.verdict == "applied"
        assert decide(SKIP, decision.document, other, NOW).own.rule == "repeat"

    def test_so_too_of_what_waits(self):
        document = decide(SKIP, None, event(3, source="a"), NOW).document
        other = Arrival(id="evt_3", type="story.four", sequence=4, source="b")
        document = decide(SKIP, document, other, NOW).document
        assert [one.event.source for one in document.waiting] == ["a", "b"]
        document = leave(SKIP, document, "evt_3", "b", NOW, back_at=NOW)
        assert [one.event.source for one in document.waiting] == ["a"]

    def test_what_was_kept_without_a_source_is_of_any(self):
        """As an older version kept it."""
        document = decide(SKIP, decide(SKIP, None, event(1), NOW).document, event(3), NOW).document
        for number in (1, 3):
            assert decide(SKIP, document, event(number, source="a"), NOW).own.rule == "repeat"
        assert not is_undone(document, "evt_1", "a")


class TestStopped:
    STOPS = Table(
        document_type="story",
        states=STATES,
        initial="draft",
        terminal=("five",),
        moves={f"story.{after}": {before: after} for before, after in pairwise(STATES)},
        order=Order(mode="buffer", wait_s=WAIT_S, then="skip"),
        on_conflict="stop",
    )

    def test_a_second_conflict_does_not_replace_the_first(self):
        document = decide(self.STOPS, None, Arrival(id="a", type="unknown", sequence=1), NOW).document
        assert document.stopped is not None
        second = decide(self.STOPS, document, Arrival(id="b", type="story.one", flaw="it has no form"), NOW)
        assert (second.own.verdict, second.document.stopped.id) == ("conflict", "a")
        assert release(self.STOPS, second.document, NOW).document.next == 2


def test_one_without_a_number_that_waits_once_more_is_not_let_go_by_the_tables_move():
    """A number was given up, the table had a move for it, it left, came back to wait for 4, and 2 was due at once: for ever."""
    world = World(SKIP, {"evt_4": 100})
    for number in (1, 2, 3):
        world.come(event(number, False))
    world.rest(1)
    assert world.applied == names((1, 2, 3))
    world.come(event(4))
    world.come(event(5, False))
    world.rest(30)
    world.come(Arrival(id="late_2", type="story.two", sequence=2))
    world.rest()
    assert world.document is not None and world.document.waiting == ()
