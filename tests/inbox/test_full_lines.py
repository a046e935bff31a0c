"""Documents for which more events wait than there is room for: what came is never given up, and goes on when it can."""

from __future__ import annotations

import random

import pytest

from surehook.inbox import Backoff, Rules
from surehook.inbox.sql.waking import TRIED_MOST
from surehook.inbox.workflow import Fields, Order, Table
from tests.inbox.test_leaving import EACH_SECOND, claimed, failing, given_back, lines

LAST = 30
COUNT = 4
FORGOTTEN = 3 + COUNT + 2 * COUNT  # COUNT wait in the line, twice as many are kept in mind beside it
SKIP = {"mode": "buffer", "wait_s": 900.0, "then": "skip"}
STRICT = {"mode": "strict"}
MODES = pytest.mark.parametrize("order", [SKIP, STRICT], ids=["skip", "strict"])


def followed(houses, order, **options):
    house = houses(**{"backoff": EACH_SECOND, **options})
    states = tuple(f"step{number}" for number in range(LAST + 1))
    house.inbox.follow(
        Table(
            document_type="steps",
            states=(*states, "done"),
            initial="step0",
            terminal=("done",),
            moves={f"steps.{number}": {states[number - 1]: states[number]} for number in range(1, LAST + 1)}
            | {"steps.done": {states[LAST]: "done"}},
            order=Order(**order, count=COUNT),
            fields=Fields(document="document", sequence="n"),
        ),
        "*",
    )
    return house


def tell(house, *numbers):
    for number in numbers:
        assert house.receive(f"evt_{number:02}", f"steps.{number}", document="doc_1", n=number).status == 200


def names(numbers):
    return [f"evt_{number:02}" for number in numbers]


def shuffled(*numbers):
    found = list(numbers)
    random.Random(4).shuffle(found)
    return found


def works(house, seconds, step=1):
    for _ in range(0, seconds, step):
        house.work()
        house.clock.passes(step)


def in_order(seen):
    """Tell whether the last attempts of all came by number."""
    last = {event.body["n"]: place for place, event in enumerate(seen)}
    return sorted(last, key=last.__getitem__) == sorted(last)


@MODES
def test_none_that_came_is_given_up_while_one_is_tried_again(houses, order):
    """Numbers 4 on wait for number 3, whose handler fails for a minute: those beyond the line were given up, and stale."""
    house = followed(houses, order, backoff=Backoff(first_s=30, factor=1, attempts=9, jitter=0))
    seen = house.on(failing("evt_03", times=3))
    for number in range(1, LAST + 1):
        tell(house, number)
        house.work()
    works(house, 180, 5)
    assert house.effects() == names(range(1, LAST + 1)), lines(house)
    assert in_order(seen)


@MODES
def test_all_go_on_as_soon_as_what_is_missing_comes(houses, order):
    """They waited for their own timers: a minute for each few, where they had been put off for long."""
    house = followed(houses, order)
    seen = house.on()
    tell(house, *shuffled(1, *range(3, LAST + 1)))
    works(house, 600, 20)
    assert house.effects() == names([1])
    tell(house, 2)
    works(house, 15, 1)
    assert house.effects() == names(range(1, 2 + COUNT + 2 * COUNT + 1)), "as many as are kept in mind"
    works(house, 180, 1)
    assert house.effects() == names(range(1, LAST + 1)), lines(house)
    assert in_order(seen)


@MODES
def test_a_release_gives_up_none_that_came(houses, order):
    house = followed(houses, order)
    seen = house.on()
    tell(house, *shuffled(1, *range(3, LAST + 1)))
    works(house, 20)
    assert house.do(house.inbox.release("doc_1", by="ana", reason="signed on paper"))
    works(house, 240)
    assert house.effects() == names([1, *range(3, LAST + 1)]), lines(house)
    assert in_order(seen)


def test_what_never_came_is_given_up_in_time_and_nothing_else(houses):
    house = followed(houses, SKIP)
    house.on()
    tell(house, *shuffled(1, *range(3, 15), *range(16, LAST + 1)))
    works(house, 899, 31)
    assert house.effects() == names([1])
    works(house, 300, 5)
    assert house.effects() == names([1, *range(3, 15)]), "number 15 may come still"
    works(house, 900, 31)
    assert house.effects() == names([1, *range(3, 15), *range(16, LAST + 1)]), lines(house)


def test_one_for_which_there_is_no_room_is_tried_less_and_less_often(houses):
    """Each event beyond the line was claimed each second, as long as the gap was there."""
    house = followed(houses, STRICT)
    house.on()
    tell(house, *range(2, 2 + COUNT + 1))
    claims = []
    for _ in range(40):
        house.work()
        claims.append(house.sql("select due_at from surehook_inbox_runs where state = 'accepted'")[0][0])
        house.clock.passes(30)
    assert len(set(claims)) == pytest.approx(20, abs=2), "each minute, after a while"


def test_a_full_line_is_said_once_a_minute(houses, caplog):
    house = followed(houses, STRICT)
    house.on()
    tell(house, *range(2, LAST + 1))
    works(house, 20)
    told = [one for one in caplog.messages if "line_full" in one]
    assert len(told) == 1, told


def test_one_that_loses_its_place_in_the_batch_in_which_it_got_it_is_tried_again(houses):
    house = followed(houses, STRICT)
    house.on()
    tell(house, *range(LAST, 1, -1))
    house.work()
    states = {one.id: (one.state, one.code) for one in house.events()}
    assert {one for one, state in states.items() if state == ("held", "early")} == set(
        names(range(2, 2 + COUNT))
    )
    assert set(states.values()) == {("held", "early"), ("accepted", "line_full")}


class TestWhatIsClaimedIsInTime:
    """There was no room for an event, and no place in mind for it either: another process has it, and the next waits for it."""

    @pytest.fixture(params=[SKIP, STRICT], ids=["skip", "strict"])
    def house(self, houses, request):
        house = followed(houses, {**request.param, "wait_s": 30.0}, rules=Rules(batch=1))
        house.on()
        tell(house, 1, *range(3, FORGOTTEN + 1))
        house.work()
        house.clock.passes(2)
        return house

    def come(self, house):
        """Another process has the one that is forgotten; what came before it goes on, and the next one waits for it."""
        *others, forgotten = sorted(claimed(house, b"e" * 16), key=lambda run: run.event_id)
        assert forgotten.event_id == names([FORGOTTEN])[0]
        given_back(house, others, b"e" * 16)
        tell(house, 2)
        works(house, 5)
        assert house.effects() == names(range(1, FORGOTTEN))
        tell(house, FORGOTTEN + 1)
        house.work()
        return [forgotten]

    def test_as_long_as_its_lease_lasts(self, house):
        elsewhere = self.come(house)
        house.clock.passes(31)
        house.work()
        assert house.effects() == names(range(1, FORGOTTEN)), "it may come still"
        given_back(house, elsewhere, b"e" * 16)
        house.work()
        assert house.effects() == names(range(1, FORGOTTEN + 2)), lines(house)

    def test_from_the_first_moment_of_its_lease(self, house):
        """It came in time however long no worker was there, and somebody has it since."""
        given_back(house, self.come(house), b"e" * 16)
        house.clock.passes(40)
        again = claimed(house, b"s" * 16)
        assert [run.event_id for run in again] == names([FORGOTTEN])
        house.clock.passes(0.2)
        house.work()
        assert house.effects() == names(range(1, FORGOTTEN)), "it may come still"
        given_back(house, again, b"s" * 16)
        house.work()
        assert house.effects() == names(range(1, FORGOTTEN + 2)), lines(house)

    def test_and_it_keeps_its_place_as_it_is_given_back(self, house):
        forgotten = self.come(house)
        came = house.sql("select accepted_at from surehook_inbox_runs where error_code = 'line_full'")
        given_back(house, forgotten, b"e" * 16)
        assert house.sql("select due_at from surehook_inbox_runs where error_code = 'line_full'") == came

    @pytest.mark.parametrize("house", [SKIP], indirect=True)
    def test_and_other_documents_go_on_beside_it(self, house):
        """Where its document is slow, the waits of all others were held up."""
        self.come(house)
        house.receive("other_1", "steps.1", document="doc_2", n=1)
        house.receive("other_3", "steps.3", document="doc_2", n=3)
        house.work()
        house.clock.passes(31)
        house.work()
        assert house.effects() == [*names(range(1, FORGOTTEN)), "other_1", "other_3"]

    def test_when_its_lease_lapsed_long_ago_as_well(self, house):
        self.come(house)
        house.clock.passes(50)
        for number in range(4):
            house.receive(f"other_{number}", "plain", document="doc_2")
        house.clock.passes(3_600)
        house.work()
        assert [one for one in house.effects() if one.startswith("evt")] == names(range(1, FORGOTTEN + 2))

    @pytest.mark.parametrize("house", [SKIP], indirect=True)
    def test_but_a_look_at_those_for_which_there_is_no_room_holds_up_no_time_that_passes(self, house):
        """The place before them is given up, though each moment another worker has one of them in hand."""
        house.clock.passes(29)
        assert claimed(house, b"e" * 16)
        house.work()
        assert house.effects() == names([1, *range(3, 3 + COUNT)]), lines(house)


class TestMoreThanCanBeAskedAbout:
    @pytest.fixture(params=[("sqlite", "sync")], ids="-".join)
    def ground(self, request, ground_of):
        return ground_of(*request.param)

    def test_no_time_passes_beside_them(self, houses):
        """Each of them may be the one that a document waits for."""
        house = followed(houses, {**SKIP, "wait_s": 30.0})
        house.on()
        tell(house, 1, 3)
        for number in range(TRIED_MOST + COUNT + 1):
            house.receive(f"other_{number:04}", "steps.9", document="doc_2", n=number + 2)
        house.work()
        house.clock.passes(29)
        elsewhere = claimed(house, b"e" * 16, limit=TRIED_MOST + 1)
        house.work()
        house.clock.passes(2)
        house.work()
        assert house.effects() == names([1])
        given_back(house, elsewhere[:1], b"e" * 16)
        house.work()
        assert names([3])[0] in house.effects()
