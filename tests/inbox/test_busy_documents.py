"""A document that one worker has keeps no other event waiting, and goes on as soon as it is free."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from surehook.core import effects
from surehook.inbox.busy_documents import (
    CALLED_MOST,
    EACH_MS,
    PUT_OFF_MS,
    WAITING_MOST,
    BusyDocuments,
    WaitingRun,
)
from surehook.inbox.sql import engines
from surehook.inbox.worker_transactions import BUSY_S
from surehook.ports.inbox import StoreError, StoreUnavailable
from tests.inbox.house import known_as_quick
from tests.inbox.test_documents import BUFFER, STRICT, followed, state, story, table

ONE, TWO = (("contract", "", name) for name in ("doc_1", "doc_2"))
MINE, OTHER = b"m" * 16, b"o" * 16
MOST_MS = 60_000


class TestWhoHasADocument:
    def test_it_is_the_first_who_asks_until_it_leaves(self):
        busy = BusyDocuments(MOST_MS)
        assert busy.enter(MINE, [(ONE, b"1")]) == set()
        assert busy.enter(MINE, [(ONE, b"1")]) == set(), "once more, as its batch is done one by one"
        assert busy.enter(OTHER, [(ONE, b"2"), (TWO, b"3")]) == {b"2"}
        assert (busy.is_busy(ONE), busy.is_busy(TWO)) == (True, True)
        busy.leave(MINE, 1)
        assert busy.enter(OTHER, [(ONE, b"2")]) == set()
        assert busy.enter(MINE, [(ONE, b"1"), (TWO, b"4")]) == {b"1", b"4"}
        busy.leave(OTHER, 1)
        busy.leave(OTHER, 1)
        busy.leave(MINE, 1)
        assert not (busy._owners or busy._owned), "nothing is kept of who is gone"

    def test_as_many_are_called_back_as_a_worker_does_at_a_time_and_in_their_order(self):
        busy = BusyDocuments(MOST_MS)
        busy.enter(MINE, [(ONE, b"0"), (TWO, b"0")])
        busy.put_off([(ONE, b"4"), (ONE, b"1"), (TWO, b"3"), (ONE, b"2"), (ONE, b"4")])
        assert called_back(busy) == []
        busy.leave(MINE, 2)
        assert called_back(busy) == [b"1", b"2", b"3"]
        assert called_back(busy) == [], "once"
        assert busy.enter(OTHER, [(ONE, b"4")]) == {b"4"}, "they are older, and come"
        assert busy.enter(OTHER, [(ONE, b"1"), (ONE, b"2"), (TWO, b"3")]) == set()
        busy.put_off([(ONE, b"4")])
        busy.leave(OTHER, 2)
        assert called_back(busy) == [b"4"]
        assert busy.enter(OTHER, [(ONE, b"4")]) == set()
        busy.leave(OTHER, 2)
        assert not (busy._lines or busy._standing or busy._called or busy._late)

    def test_who_is_newer_than_those_that_wait_lines_up_behind_them(self):
        busy = BusyDocuments(MOST_MS)
        busy.enter(MINE, [(ONE, b"1")])
        busy.put_off([(ONE, b"3"), (ONE, b"5")])
        busy.leave(MINE, 0)
        assert busy.enter(MINE, [(ONE, b"4")]) == {b"4"}
        assert busy.enter(MINE, [(ONE, b"2"), (ONE, b"4")]) == {b"4"}
        assert busy.enter(MINE, [(ONE, b"4")]) == set(), "by itself, after its batch failed"

    def test_who_is_due_by_itself_waits_no_longer(self):
        """Its number would be called in vain as the document is left, and nobody else's."""
        busy = BusyDocuments(MOST_MS)
        busy.enter(MINE, [(ONE, b"1")])
        busy.put_off([(ONE, b"2"), (ONE, b"3")])
        busy.leave(MINE, 0)
        assert busy.enter(MINE, [(ONE, b"2")]) == set()
        busy.leave(MINE, 1)
        assert called_back(busy) == [b"3"]

    def test_whose_row_is_locked_is_called_back_by_the_next_claim(self):
        busy = BusyDocuments(MOST_MS)
        busy.put_off([(ONE, b"1"), (TWO, b"2")])
        busy.wait_still(OTHER, busy.calling(OTHER)[:1])
        assert not busy.is_calling
        busy.called(OTHER, is_done=True)
        assert busy.is_calling
        assert called_back(busy) == [b"1"]
        assert busy.enter(OTHER, [(ONE, b"1")]) == set()
        busy.leave(OTHER, 64)
        busy.put_off([(ONE, b"3")])
        busy.wait_still(OTHER, busy.calling(OTHER))
        busy.called(OTHER, is_done=False)
        assert called_back(busy) == [b"3"], "once"

    def test_what_is_put_off_as_the_document_becomes_free_is_called_back_at_once(self):
        busy = BusyDocuments(MOST_MS)
        busy.put_off([(ONE, b"2"), (ONE, b"1")])
        assert called_back(busy) == [b"1"], "the first: the next is called back as that is done"
        busy.enter(MINE, [(ONE, b"1")])
        busy.leave(MINE, 64)
        assert called_back(busy) == [b"2"]

    def test_what_a_claim_that_failed_was_to_call_back_is_called_back_by_the_next(self):
        busy = BusyDocuments(MOST_MS)
        busy.put_off([(ONE, b"1")])
        assert busy.calling(MINE) == [(ONE, b"1")]
        busy.called(MINE, is_done=False)
        assert called_back(busy) == [b"1"]

    def test_others_are_called_in_the_place_of_who_is_elsewhere(self):
        busy = BusyDocuments(MOST_MS)
        busy.put_off([(ONE, b"1"), (ONE, b"2")])
        busy.passed_over(busy.calling(MINE))
        assert called_back(busy) == [b"2"]

    def test_what_waits_is_bounded_and_waits_longer_the_more_there_is(self):
        busy = BusyDocuments(MOST_MS)
        busy.enter(MINE, [(ONE, b"0")])
        assert busy.put_off_ms({ONE}) == PUT_OFF_MS
        busy.put_off([(ONE, b"%06d" % n) for n in range(WAITING_MOST + 1)])
        assert busy.put_off_ms({ONE, TWO}) == EACH_MS * WAITING_MOST
        busy.leave(MINE, WAITING_MOST + 1)
        assert called_back(busy) == [b"%06d" % n for n in range(WAITING_MOST)], "the newest is due by itself"
        assert BusyDocuments(3_000).put_off_ms({ONE}) == 3_000, (
            "no longer than a lease, which waits of documents reckon with"
        )

    def test_lines_that_nobody_comes_back_to_are_forgotten_for_newer_ones(self):
        """Their runs were done elsewhere: nobody here would ever leave their documents."""
        busy = BusyDocuments(MOST_MS)
        for n in range(WAITING_MOST + 10):
            key = ("contract", "", f"doc_{n}")
            busy.enter(MINE, [(key, b"0")])
            busy.put_off([(key, b"%d" % n)])
        assert (len(busy._lines), len(busy._standing)) == (WAITING_MOST, WAITING_MOST)
        assert not busy.is_waited_for(("contract", "", "doc_9"))
        busy.leave(MINE, 1)
        assert (len(called_back(busy)), len(busy._called)) == (WAITING_MOST, WAITING_MOST)

    def test_others_line_up_behind_what_was_carried_over_until_it_comes(self):
        busy = BusyDocuments(MOST_MS)
        busy.enter(OTHER, [(ONE, b"0")])
        assert busy.enter(MINE, [(ONE, b"2"), (TWO, b"3")]) == {b"2"}
        busy.leave(MINE, 64, carried=[(ONE, b"2")])
        busy.put_off([(ONE, b"4"), (ONE, b"1")])
        assert (busy.was_carried(MINE, b"2"), busy.was_carried(OTHER, b"2")) == (True, False)
        busy.leave(OTHER, 64)
        assert called_back(busy) == [b"1"], "up to the one that comes by itself"
        assert busy.enter(OTHER, [(ONE, b"1"), (ONE, b"4")]) == {b"4"}
        busy.leave(OTHER, 64)
        busy.put_off([(ONE, b"4")])
        assert busy.enter(MINE, [(ONE, b"2")]) == set()
        busy.leave(MINE, 64)
        assert called_back(busy) == [b"4"]

    def test_what_was_carried_over_and_does_not_come_keeps_nobody_waiting(self):
        busy = BusyDocuments(MOST_MS)
        busy.leave(MINE, 64, carried=[(ONE, b"1"), (ONE, b"3")])
        busy.put_off([(ONE, b"2"), (ONE, b"4")])
        assert called_back(busy) == []
        busy.leave(MINE, 64)
        assert not busy._carried
        assert called_back(busy) == [b"1", b"2", b"3", b"4"], "whether they are done is looked at"
        busy.passed_over([WaitingRun(ONE, b"1"), WaitingRun(ONE, b"3")])
        assert busy.enter(MINE, [(ONE, b"2"), (ONE, b"4")]) == set()

    def test_what_was_carried_over_in_vain_is_put_off_as_any(self):
        busy = BusyDocuments(MOST_MS)
        busy.leave(MINE, 64, carried=[(ONE, b"1")])
        busy.enter(OTHER, [(ONE, b"0")])
        assert busy.enter(MINE, [(ONE, b"1")]) == {b"1"}
        busy.put_off([(ONE, b"1")])
        busy.leave(MINE, 64)
        assert called_back(busy) == []
        busy.leave(OTHER, 64)
        assert called_back(busy) == [b"1"]

    def test_who_is_late_in_a_batch_stands_in_its_line_until_that_is_over(self):
        """Newer ones went before it while the transaction that put it off was committed."""
        busy = BusyDocuments(MOST_MS)
        busy.enter(OTHER, [(ONE, b"1")])
        assert busy.enter(MINE, [(ONE, b"2")]) == {b"2"}
        busy.leave(OTHER, 64)
        assert called_back(busy) == [], "it comes by itself"
        assert busy.enter(OTHER, [(ONE, b"3")]) == {b"3"}
        busy.put_off([(ONE, b"2")])
        assert called_back(busy) == [b"2"]
        busy.leave(MINE, 64)
        assert busy.enter(MINE, [(ONE, b"2")]) == set()

    def test_who_is_late_keeps_its_place_if_nobody_hears_that_it_was_put_off(self):
        """Its worker was cancelled as that was committed, or it was given back."""
        busy = BusyDocuments(MOST_MS)
        busy.enter(OTHER, [(ONE, b"1")])
        busy.enter(MINE, [(ONE, b"2")])
        busy.put_off([(ONE, b"3")])
        busy.leave(OTHER, 64)
        busy.leave(MINE, 64)
        assert called_back(busy) == [b"2", b"3"]
        assert busy.enter(MINE, [(ONE, b"3")]) == {b"3"}

    def test_who_was_tried_before_waits_for_nobody(self):
        busy = BusyDocuments(MOST_MS)
        busy.enter(OTHER, [(ONE, b"1")])
        assert busy.enter(MINE, [(ONE, b"2"), (ONE, b"3")], tried={b"2"}) == {b"3"}
        assert list(busy._standing) == [b"3"]
        assert busy.is_anothers(ONE, MINE)

    def test_who_is_claimed_stands_in_its_line_until_it_takes_its_document(self):
        """It looked like another process's as its claim was committed, and newer ones went before it."""
        busy = BusyDocuments(MOST_MS)
        busy.put_off([(ONE, b"1"), (ONE, b"2")])
        assert called_back(busy) == [b"1"]
        found = [WaitingRun(ONE, b"1")]
        busy.claimed(MINE, [b"1", b"9"])
        assert busy.enter(OTHER, [(ONE, b"3")]) == {b"3"}
        busy.put_off([(ONE, b"3")])
        assert called_back(busy) == []
        busy.passed_over(found)
        busy.look_again()
        assert called_back(busy) == [], "somebody looked at it before"
        assert busy.enter(MINE, [(ONE, b"1")]) == set()
        busy.leave(MINE, 64)
        assert called_back(busy) == [b"2", b"3"]

    def test_a_claim_that_does_not_stand_has_nothing(self):
        busy = BusyDocuments(MOST_MS)
        busy.put_off([(ONE, b"1")])
        assert called_back(busy) == [b"1"]
        busy.claimed(MINE, [b"1"])
        busy.called(MINE, is_done=False)
        assert not busy._late
        assert called_back(busy) == [b"1"], "unless it does: that is not known"
        assert busy.enter(OTHER, [(ONE, b"1")]) == set()

    def test_heads_that_were_called_and_did_not_come_are_looked_at_again(self):
        busy = BusyDocuments(MOST_MS)
        busy.put_off([(ONE, b"1"), (ONE, b"2"), (TWO, b"3")])
        assert called_back(busy) == [b"1", b"3"]
        busy.enter(OTHER, [(TWO, b"3")])
        busy.look_again()
        assert called_back(busy) == [b"1"]
        busy.passed_over([WaitingRun(ONE, b"1")])
        assert called_back(busy) == [b"2"]

    def test_no_more_heads_are_looked_at_than_in_one_statement(self):
        busy = BusyDocuments(MOST_MS)
        busy.put_off([(("contract", "", f"doc_{n}"), b"%05d" % n) for n in range(2 * CALLED_MOST)])
        assert len(called_back(busy)) == 2 * CALLED_MOST
        busy.look_again()
        assert len(called_back(busy)) == CALLED_MOST

    def test_who_was_called_back_and_is_put_off_again_is_called_again(self):
        busy = BusyDocuments(MOST_MS)
        busy.put_off([(ONE, b"2")])
        assert called_back(busy) == [b"2"]
        busy.enter(OTHER, [(ONE, b"1")])
        assert busy.enter(MINE, [(ONE, b"2")]) == {b"2"}
        busy.put_off([(ONE, b"2")])
        busy.leave(OTHER, 64)
        assert called_back(busy) == [b"2"]

    def test_who_was_called_back_and_is_another_processes_keeps_nobody_waiting(self):
        busy = BusyDocuments(MOST_MS)
        busy.put_off([(ONE, b"1")])
        assert called_back(busy) == [b"1"]
        assert busy.enter(MINE, [(ONE, b"2")]) == {b"2"}
        busy.put_off([(ONE, b"2")])
        busy.passed_over(busy.calling(MINE))
        assert called_back(busy) == [b"2"]
        assert busy.enter(MINE, [(ONE, b"2")]) == set()

    def test_all_that_others_have_by_now_are_passed_over_in_a_few_rounds(self):
        """Each of them cost the document five seconds: the next was called already, and not looked at again."""
        busy = BusyDocuments(MOST_MS)
        busy.enter(MINE, [(ONE, b"0")])
        busy.put_off([(ONE, b"%03d" % n) for n in range(1, 401)])
        busy.leave(MINE, 64)
        assert len(called_back(busy)) == 64
        assert busy.enter(MINE, [(ONE, b"999")]) == {b"999"}
        busy.put_off([(ONE, b"999")])
        rounds = 0
        while (found := busy.calling(MINE)) and found != [(ONE, b"999")]:
            rounds += 1
            busy.passed_over(one for one in found if one.run != b"999")
        busy.called(MINE, is_done=True)
        assert rounds <= 9
        assert busy.enter(MINE, [(ONE, b"999")]) == set()

    def test_a_head_that_is_called_again_and_again_is_called_once(self):
        busy = BusyDocuments(MOST_MS)
        for n in range(100):
            busy.put_off([(ONE, b"1"), (ONE, b"%03d" % (200 + n))])
        assert called_back(busy) == [b"1"]

    def test_what_was_carried_over_and_is_given_back_keeps_nobody_waiting(self):
        busy = BusyDocuments(MOST_MS)
        busy.leave(MINE, 64, carried=[(ONE, b"1")])
        busy.put_off([(ONE, b"2")])
        assert called_back(busy) == []
        busy.given_back(MINE, [b"1"])
        assert called_back(busy) == [b"1"], "somebody comes with it, or it is done"
        busy.passed_over([WaitingRun(ONE, b"1")])
        assert called_back(busy) == [b"2"]

    def test_whoever_ends_calls_back_all_that_nobody_has(self):
        busy = BusyDocuments(MOST_MS)
        busy.enter(MINE, [(ONE, b"0")])
        busy.enter(OTHER, [(TWO, b"0")])
        busy.put_off([(ONE, b"1"), (ONE, b"2"), (TWO, b"3")])
        busy.leave(MINE, 1)
        assert busy.strands()
        assert called_back(busy) == [b"1", b"2"]
        assert not busy.strands()

    def test_a_child_process_has_none_of_its_parents_workers(self):
        busy = BusyDocuments(MOST_MS)
        busy.enter(MINE, [(ONE, b"1")])
        busy.forked()
        assert busy.enter(OTHER, [(ONE, b"1")]) == set()


def called_back(busy):
    runs = []
    while found := busy.calling(OTHER):
        assert len(found) <= CALLED_MOST
        runs += [one.run for one in found]
    busy.called(OTHER, is_done=True)
    return runs


def received(house, *numbers, document="doc_1"):
    for number in numbers:
        event_id, type, data = story(document)[number - 1]
        assert house.receive(event_id, type, **data).status == 200


def had_by_another(house, key=ONE):
    assert house.inbox.transactions.busy.enter(OTHER, [(key, b"")]) == set()


def is_free(house, most=64):
    house.inbox.transactions.busy.leave(OTHER, most)


def test_another_worker_has_it_and_the_others_events_are_handled_meanwhile(houses):
    house = followed(houses)
    house.on()
    had_by_another(house)
    received(house, 1, 2)
    received(house, 1, document="doc_2")
    house.work()
    assert house.effects() == ["doc_2-1"]
    assert {one.id: (one.state, one.attempts) for one in house.events(type="document.viewed")} == {
        "doc_1-2": ("accepted", 0)
    }
    is_free(house)
    house.work()
    assert house.effects() == ["doc_1-1", "doc_1-2", "doc_2-1"], "at once: no time has passed"
    assert {one.attempts for one in house.events()} == {1}


def test_if_nobody_calls_them_back_they_are_due_by_themselves(houses):
    """The worker was another process's, or its process has ended."""
    house = followed(houses)
    house.on()
    had_by_another(house)
    received(house, 1)
    house.work()
    house.inbox.transactions.busy = house.inbox.transactions.processor.busy = BusyDocuments(MOST_MS)
    house.clock.passes(PUT_OFF_MS / 1000 - 1)
    house.work()
    assert house.effects() == []
    house.clock.passes(1)
    house.work()
    assert house.effects() == ["doc_1-1"]


def test_what_its_worker_did_not_come_to_lines_up_with_the_others(houses):
    house = followed(houses)
    heard = house.on(lambda event: house.clock.passes(4))
    received(house, 1, 2, 4)
    known_as_quick(house.inbox)
    busy, steps = house.inbox.transactions.busy, house.inbox.transactions

    claimed = house.do(house.inbox.store.run(steps.claim_work(MINE)))
    assert len(claimed.runs) == 3
    *_, last = claimed.runs
    assert busy.enter(MINE, [(ONE, run.id) for run in claimed.runs[:2]]) == set()
    busy.put_off([(ONE, last.id)])
    done = house.do(house.inbox.store.run(steps.process_work(claimed.runs[:2], MINE)))
    assert (done.left, [event.id for event in heard]) == (1, ["doc_1-1"])
    assert done.put_off == [(ONE, claimed.runs[1].id)], (
        "and is not due at once, beside those that are in its line"
    )
    steps.report(done)
    busy.leave(MINE, 1)
    assert called_back(busy) == [claimed.runs[1].id]


def test_slow_ones_are_passed_by_in_a_few_turns_and_come_one_after_the_other(houses):
    house = followed(houses)
    heard = house.on()
    (handler,) = house.inbox.handlers._all
    house.inbox.transactions.handler_times.took(handler, 1.0)
    had_by_another(house)
    for n in range(40):
        house.receive(f"note_{n}", "identity.verified", document="doc_1")
    received(house, 1, 2)
    received(house, 1, document="doc_2")
    worker, turns = house.inbox.worker(), 0
    while not heard:
        turns += 1
        assert turns <= 5, "four claims: of 1, 4, 16 and 64"
        house.turn(worker)
    assert [event.id for event in heard] == ["doc_2-1"]
    is_free(house, 1)
    while house.turn(worker) is None:
        pass
    assert [event.id for event in heard[1:]] == ["doc_1-1", "doc_1-2"]
    assert state(house, "doc_1") == "viewed"


def test_what_is_put_off_is_in_time_for_the_waits_of_its_document(houses):
    house = followed(houses, BUFFER)
    house.on()
    received(house, 2)
    house.work()
    had_by_another(house)
    received(house, 1)
    house.work()
    for _ in range(13):  # past the wait, and past the time for which it was put off
        house.clock.passes(PUT_OFF_MS / 1000)
        house.work()
    assert house.states() == {"doc_1-1": "accepted", "doc_1-2": "held"}, "nobody has let the time pass"
    is_free(house)
    house.work()
    assert house.states() == {"doc_1-1": "finalized", "doc_1-2": "finalized"}
    assert state(house, "doc_1") == "viewed"


def leased(house):
    return house.sql("select count(*) from surehook_inbox_runs where lease is not null and attempts = 1")[0][
        0
    ]


def with_one_carried(houses):
    """A worker that has carried over the event of a document which another one has."""
    house = followed(houses)
    house.on()
    known_as_quick(house.inbox)
    worker = house.inbox.worker()
    had_by_another(house)
    received(house, 1)
    received(house, 1, document="doc_2")
    assert house.turn(worker) is None
    assert (house.effects(), leased(house)) == (["doc_2-1"], 1)
    return house, worker


def test_quick_ones_are_carried_over_to_the_next_batch(houses):
    house, worker = with_one_carried(houses)
    received(house, 2)
    is_free(house)
    house.turn(house.inbox.worker())
    assert house.effects() == ["doc_2-1"], "what is newer lines up behind"
    while house.turn(worker) is None:
        pass
    assert house.effects() == ["doc_1-1", "doc_1-2", "doc_2-1"]
    assert ({one.attempts for one in house.events()}, leased(house)) == ({1}, 0)


def test_what_is_busy_still_is_carried_over_once(houses):
    house, worker = with_one_carried(houses)
    received(house, 1, document="doc_3")
    assert house.turn(worker) is None
    assert (house.effects(), leased(house)) == (["doc_2-1", "doc_3-1"], 0), "it was put off"
    assert house.turn(worker) is not None
    is_free(house)
    house.turn(worker)
    assert house.effects() == ["doc_1-1", "doc_2-1", "doc_3-1"]


def test_a_batch_that_would_carry_over_the_most_of_it_puts_off(houses):
    house = followed(houses)
    house.on()
    known_as_quick(house.inbox)
    had_by_another(house)
    received(house, 1, 2)
    received(house, 1, document="doc_2")
    house.turn(house.inbox.worker())
    assert (house.effects(), leased(house)) == (["doc_2-1"], 0)


def test_a_worker_that_stops_gives_back_what_it_carries_over(houses):
    house, worker = with_one_carried(houses)
    ended(house, worker)
    assert leased(house) == 0
    another_process_works(house)
    assert house.effects() == ["doc_1-1", "doc_2-1"]


def test_a_claim_that_fails_does_not_forget_what_was_carried_over(houses, monkeypatch):
    house, worker = with_one_carried(houses)

    def away(transaction, **bounds):
        raise StoreUnavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(house.inbox.transactions, "claim_work", lambda token, limit: away)
        with pytest.raises(StoreUnavailable):
            house.turn(worker)
    is_free(house)
    assert house.turn(worker) is None
    assert ({one.attempts for one in house.events()}, leased(house)) == ({1}, 0)
    assert house.effects() == ["doc_1-1", "doc_2-1"]


def test_work_that_ends_by_an_error_leaves_nothing_claimed(houses, monkeypatch):
    """Others would line up behind that for as long as its lease lasts."""
    house = followed(houses)
    house.on()
    had_by_another(house)
    received(house, 1)
    received(house, 1, document="doc_2")
    claim_work, claims = house.inbox.transactions.claim_work, []

    def away(transaction):
        raise StoreUnavailable("away")

    def once(token, limit):
        claims.append(token)
        return claim_work(token, limit) if len(claims) != 2 else away

    monkeypatch.setattr(house.inbox.transactions, "claim_work", once)
    with pytest.raises(StoreUnavailable):
        house.work()
    assert (house.effects(), leased(house)) == (["doc_2-1"], 0)
    assert not house.inbox.transactions.busy._carried
    is_free(house)
    house.work()
    assert house.effects() == ["doc_1-1", "doc_2-1"]


@pytest.mark.parametrize("ground", [("postgresql", "sync"), ("mariadb", "sync")], ids="-".join, indirect=True)
def test_a_run_whose_row_is_locked_stays_in_its_line(houses):
    """InnoDB locks rows that a claim only looks at: a hot document stood still for five seconds each time."""
    house = followed(houses)
    house.on()
    had_by_another(house)
    received(house, 1)
    house.work()
    engine = engines.engine(house.url)
    with engine.begin() as locking:
        locking.execute(text("select id from surehook_inbox_runs for update"))
        is_free(house)
        assert house.turn(house.inbox.worker()) == pytest.approx(BUSY_S)
    engine.dispose()
    house.work()
    assert house.effects() == ["doc_1-1"]


def test_newer_ones_stay_behind_what_a_worker_has_claimed_and_not_begun(houses):
    """Whoever was put off behind it had it looked at, and it had left its line for that."""
    house = followed(houses, {"mode": "free"})
    heard = house.on()
    busy, steps = house.inbox.transactions.busy, house.inbox.transactions
    had_by_another(house)
    received(house, 1, 2)
    house.work()
    is_free(house, 1)
    claimed = house.do(house.inbox.store.run(steps.claim_work(MINE)))
    busy.called(MINE, is_done=True)
    received(house, 4)
    house.work()
    assert heard == []
    steps.report(house.do(house.inbox.store.run(steps.process_work(claimed.runs, MINE))))
    busy.leave(MINE, 64)
    house.work()
    assert [event.id for event in heard] == ["doc_1-1", "doc_1-2", "doc_1-4"]


def with_the_first_called(houses):
    """Two events of a line, of which a worker that does one at a time has called the first."""
    house = followed(houses)
    house.on()
    had_by_another(house)
    received(house, 1, 2)
    house.work()
    is_free(house, 1)
    return house


def test_what_another_process_has_done_keeps_the_others_of_its_line_for_a_moment(houses):
    """They stood until they were due by themselves: nobody was told that the first one was done."""
    house = with_the_first_called(houses)
    house.do(house.inbox.store.run(house.inbox.transactions.call_back_work(OTHER)))
    house.inbox.transactions.busy.called(OTHER, is_done=True)
    another_process_works(house)
    assert house.effects() == ["doc_1-1"]
    assert house.turn(house.inbox.worker()) == pytest.approx(BUSY_S)
    house.work()
    assert house.effects() == ["doc_1-1", "doc_1-2"], "no time has passed"


def test_what_cannot_be_given_back_beside_a_slow_one_is_given_back_with_it(houses, monkeypatch):
    house = followed(houses)
    house.on()
    (handler,) = house.inbox.handlers._all
    house.inbox.transactions.handler_times.took(handler, 1.0)
    for n in (1, 2, 3, 4):
        received(house, 1, document=f"doc_{n}")
    had_by_another(house)
    worker = house.inbox.worker()
    worker._portion.shared(64, 0, 64)

    def refused(split, token):
        def work(transaction):
            raise StoreError("refused")

        return work

    with monkeypatch.context() as patched:
        patched.setattr(house.inbox.transactions, "give_back_work", refused)
        with pytest.raises(StoreError, match="refused"):
            house.turn(worker)
    assert (house.effects(), leased(house)) == ([], 0)
    is_free(house)
    house.work()
    assert len(house.effects()) == 4
    assert {one.attempts for one in house.events()} == {1}


def test_the_last_worker_leaves_no_line_behind(houses):
    house = with_the_first_called(houses)
    ended(house, house.inbox.worker())
    another_process_works(house)
    assert house.effects() == ["doc_1-1", "doc_1-2"]


def test_one_that_ended_its_process_is_not_put_off(houses):
    """It is claimed by itself until it has ended: called back, it would be claimed with others, and end them as well."""
    house = followed(houses)
    house.on()
    received(house, 1)
    house.do(house.inbox.store.run(house.inbox.transactions.claim_work(OTHER)))
    house.clock.passes(house.inbox.rules.lease_ms / 1000 + 1)
    had_by_another(house)
    house.work()
    assert house.effects() == ["doc_1-1"]


def ended(house, worker):
    worker.stop()
    script = worker.until_stopped()
    if house.kind == "sync":
        effects.run(script)
    else:
        house.do(effects.run_async(script))


def another_process_works(house):
    other = house.twin()
    other.inbox.follow(table(**STRICT), "partner")
    other.on()
    other.work()
