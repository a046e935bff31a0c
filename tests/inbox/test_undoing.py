"""What a handler did for a move that is taken back is undone by who is there for that, with the document or not at all."""

from __future__ import annotations

import logging
import math
import os
from itertools import pairwise

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from surehook.core.errors import SettingsError
from tests.inbox.house import House
from tests.inbox.test_documents import STRICT, story, table
from tests.inbox.test_ways_out import followed, state, tell, warned


def undoes(house, effect=lambda event: None, pattern="*", **choices):
    """A function that writes a row of its own, and then does this; the events it was given."""
    seen = []

    def blocking(event, tx):
        seen.append(event)
        house.write(tx, f"{event.id} undone")
        effect(event)

    async def waiting(event, tx):
        seen.append(event)
        await house.write(tx, f"{event.id} undone")
        effect(event)

    house.inbox.on_undo("partner", pattern, **choices)(waiting if house.kind == "async" else blocking)
    return seen


def rejected(house, event_id="doc_1-4", code="compliance"):
    assert house.do(house.inbox.reject(house.events(id=event_id)[0].ref, code))


@pytest.fixture
def failing(caplog):
    caplog.set_level(logging.WARNING, "surehook.inbox")
    return lambda: warned(caplog, "undo_failed")


def test_a_move_that_is_taken_back_is_heard_once_with_where_the_document_goes(houses):
    house = followed(houses)
    house.on(final=False)
    seen = undoes(house)
    tell(house, 1, 2, 3, 4)
    rejected(house)
    assert seen == [], "a worker does it"
    house.work()
    house.work()
    (event,) = seen
    assert (event.id, event.replay, event.change.rule) == ("doc_1-4", 0, "undone")
    assert (event.change.before, event.change.after) == ("signed", "viewed")
    assert (state(house, "doc_1"), house.events(id="doc_1-4")[0].state) == ("viewed", "rejected")
    assert house.effects() == ["doc_1-1", "doc_1-2", "doc_1-4", "doc_1-4 undone"]


@pytest.mark.parametrize("is_heard", [True, False])
def test_observers_are_told_whose_move_is_taken_back(houses, is_heard):
    house = followed(houses)
    house.on(final=False)
    if is_heard:
        undoes(house)
    told = []
    house.inbox.observe(told.append)
    tell(house, 1, 2, 3, 4)
    rejected(house)
    house.work()
    (one,) = [one for one in told if one.rule == "undone"]
    (event,) = house.events(id="doc_1-4")
    assert (one.source, one.ref, one.event_id) == ("partner", event.ref, "doc_1-4")
    assert (one.attempt, one.received_at) == (None, None), "it is no turn of the event"


def test_a_way_that_the_table_declares_is_heard_before_whatever_comes_next(houses):
    house = followed(houses, rejected={"document.signed": {"signed": "sent"}})
    house.on(final=False)
    seen = undoes(house, pattern="document.signed")
    tell(house, 1, 2, 3, 4)
    rejected(house)
    tell(house, 5)
    assert [(event.change.before, event.change.after) for event in seen] == [("signed", "sent")]
    assert state(house, "doc_1") == "sent"


def test_a_move_that_stays_is_not_heard(houses, caplog):
    house = followed(houses)
    house.on(final=False)
    seen = undoes(house)
    tell(house, *range(1, 8))
    rejected(house)
    house.work()
    assert (seen, state(house, "doc_1")) == ([], "completed")
    assert len(warned(caplog, "not_undone")) == 1


def test_a_function_for_other_types_hears_nothing(houses):
    house = followed(houses)
    house.on(final=False)
    seen = undoes(house, pattern="document.declined")
    tell(house, 1, 2, 3, 4)
    rejected(house)
    house.work()
    assert (seen, state(house, "doc_1")) == ([], "viewed")


def test_until_it_is_undone_the_document_and_its_events_wait_and_nothing_is_counted(houses, failing):
    house = followed(houses)
    house.on(final=False)
    broken = [True]

    def effect(event):
        if broken:
            raise ValueError("the bank does not answer")

    seen = undoes(house, effect, name="shop.unsigned")
    tell(house, 1, 2, 3, 4)
    rejected(house)
    house.work()
    assert state(house, "doc_1") == "signed"
    assert house.effects() == ["doc_1-1", "doc_1-2", "doc_1-4"], "nothing of it stands"
    (line,) = failing()
    assert "doc_1-4" not in line.splitlines()[0] and "attempt 1 failed (undo_failed), again at" in line
    assert "the bank does not answer" in line
    tell(house, 5)
    (waits,) = house.events(id="doc_1-5")
    assert (waits.state, waits.code, waits.attempts) == ("accepted", "undo_failed", 0)
    assert explained(house).endswith("; 1 attempt failed, the log says why")
    house.clock.passes(2)
    house.work()
    assert explained(house).endswith("; 2 attempts failed, the log says why")
    assert "attempt 2 failed (undo_failed), again at" in failing()[-1]
    assert (len(seen), house.events(id="doc_1-5")[0].attempts) == (2, 0)
    broken.clear()
    house.clock.passes(10)
    house.work()
    assert house.effects() == ["doc_1-1", "doc_1-2", "doc_1-4", "doc_1-4 undone"]
    assert house.events(id="doc_1-5")[0].code == "conflict", "as if it had come after that"
    assert state(house, "doc_1") == "viewed"


def until_due(house, began):
    """Let whole seconds pass until a document is to go on: nothing is due before. How many have passed since it began."""
    due_at = house.sql("select min(wake_at) from surehook_inbox_documents")[0][0]
    house.clock.passes(max(0, math.ceil((due_at - house.clock.at) / 1_000)))
    return (house.clock.at - began) // 1_000


def explained(house):
    (word,) = [line for line in house.do(house.inbox.explain("doc_1")) if "undo was asked for" in line]
    return word


def test_it_is_tried_ever_more_seldom(houses, failing):
    house = followed(houses)
    house.on(final=False)
    seen = undoes(house, lambda event: 1 / 0)
    tell(house, 1, 2, 3, 4)
    rejected(house)
    began = house.clock.at
    tried = []
    while (second := until_due(house, began)) < 4 * 3_600:
        house.work()
        tried.append(second)
        house.clock.passes(1)
    waits = [after - before for before, after in pairwise(tried)]
    assert waits == [*(2**doubling for doubling in range(12)), 3_600, 3_600, 3_600][: len(waits)]
    assert len(waits) == 14, "in four hours"
    assert len(failing()) == len(seen)


def test_one_that_ends_the_transaction_is_called_again_after_an_hour(houses, caplog):
    """What it did stands, and was done once more after a second, two seconds, four …"""
    house = followed(houses)
    house.on(final=False)
    calls = []

    def blocking(event, tx):
        calls.append(house.clock.at)
        if hasattr(tx, "cursor"):  # Django's
            tx.cursor().execute("/* by hand */ commit")
        else:
            tx.execute(text("/* by hand */ commit"))

    async def waiting(event, tx):
        calls.append(house.clock.at)
        await tx.execute(text("/* by hand */ commit"))

    house.inbox.on_undo("partner", "*")(waiting if house.kind == "async" else blocking)
    tell(house, 1, 2, 3, 4)
    rejected(house)
    for _ in range(90):
        house.work()
        house.clock.passes(60)
    assert [after - before for before, after in pairwise(calls)] == [3_600_000]
    assert len(warned(caplog, "HandlerEndedIt")) == 2


def test_a_replay_moves_it_again_and_may_be_undone_again(houses):
    house = followed(houses)
    house.on(final=False)
    seen = undoes(house)
    tell(house, 1, 2, 3, 4)
    rejected(house)
    house.do(house.inbox.replay(reason="checked again", id="doc_1-4"))
    house.work()
    assert (len(seen), state(house, "doc_1")) == (1, "signed")
    rejected(house)
    house.work()
    assert [event.replay for event in seen] == [0, 1]
    assert state(house, "doc_1") == "viewed"


def test_what_is_past_its_retention_is_told_and_the_document_goes_back(houses, caplog):
    house = followed(houses)
    house.on(final=False)
    seen = undoes(house)
    tell(house, 1, 2, 3, 4)
    house.clock.passes(40 * 86_400)
    house.do(house.inbox.prune())
    rejected(house)
    house.work()
    assert (seen, state(house, "doc_1")) == ([], "viewed")
    assert "doc_1-4 is past its retention: what handlers did for it is not undone" in caplog.text


def test_documents_of_one_batch_wait_each_for_itself(houses, failing):
    house = followed(houses)
    house.on(final=False)

    def effect(event):
        if event.id.startswith("doc_1"):
            raise ValueError("no")

    undoes(house, effect)
    for document in ("doc_1", "doc_2"):
        tell(house, 1, 2, 3, 4, document=document)
        rejected(house, f"{document}-4")
    for document in ("doc_1", "doc_2"):
        tell(house, 5, document=document)
    assert (state(house, "doc_1"), state(house, "doc_2")) == ("signed", "viewed")
    assert house.events(id="doc_2-5")[0].code == "conflict"


def test_it_is_defined_as_handlers_are(house):
    with pytest.raises(SettingsError, match="partnr"):
        house.inbox.on_undo("partnr")
    with pytest.raises(SettingsError, match=r"\(event, tx\)"):
        house.inbox.on_undo("partner")(lambda event: None)


class TestOneThatEndsItsProcess:
    """It was called again each lease, for ever, uncounted and unsaid; and kept the documents behind it from being woken."""

    @pytest.fixture(params=[("sqlite", "sync"), ("postgresql", "sync"), ("mariadb", "sync")], ids="-".join)
    def ground(self, request, ground_of):
        return ground_of(*request.param)

    @pytest.fixture
    def house(self, houses):
        house = followed(houses)
        house.on(final=False)
        for document in ("doc_0", "doc_1", "doc_2"):
            tell(house, 1, 2, 3, 4, document=document)
        for document in ("doc_0", "doc_1", "doc_2"):
            rejected(house, f"{document}-4")
        return house

    def test_is_tried_less_and_less_often_and_keeps_no_other_document_waiting(self, house):
        deaths, began = [], house.clock.at
        while (second := until_due(house, began)) < 4_000:
            deaths += [second] * died(house)
            house.clock.passes(1)
        assert [state(house, f"doc_{one}") for one in range(3)] == ["viewed", "signed", "viewed"]
        between = [after - before for before, after in pairwise(deaths)]
        assert between == [60, 60, 60, 80, 160, 320, 640, 1_280], "10, 20, 40 s … and at least a lease"

    def test_nor_is_it_tried_at_each_start_where_the_table_was_changed(self, house):
        """A process that starts has documents of an older table looked at: a supervisor's processes ended one after the other."""
        for document in ("doc_0", "doc_1", "doc_2"):
            event_id, type, data = story(document)[5]
            assert house.receive(event_id, type, **data).status == 200
        assert died(house)
        deaths = 0
        for _ in range(12):
            house.clock.passes(60)
            deaths += died(house, replace(table(**STRICT), version="2"))
        assert 3 <= deaths <= 5

    def test_is_said_at_each_further_attempt(self, house, caplog):
        assert died(house)
        assert "; attempt 1 began " in explained(house)
        undoes(house)
        house.clock.passes(60)
        house.work()
        (line,) = warned(caplog, "had no outcome")
        assert "contract doc_1: what is to be undone is tried once more; the attempt of " in line
        assert state(house, "doc_1") == "viewed"

    def test_is_forgotten_once_one_fails_in_a_usual_way(self, house, caplog, failing):
        assert died(house)
        house.clock.passes(60)

        def fails(event):
            raise ValueError("not now")

        undoes(house, fails, pattern="document.signed")
        house.work()
        assert failing()
        caplog.clear()
        house.clock.passes(60)
        house.work()
        assert failing()
        assert not warned(caplog, "had no outcome")


def died(house, of=None) -> bool:
    """Work in a process of its own, which undoing something of the second document ends; whether it did."""
    pid = os.fork()
    if pid == 0:
        try:
            again = House(house.kind, house.url, house._runner, clock=house.clock)
            again.inbox.follow(of or table(**STRICT), "partner")
            again.on(final=False)
            undoes(again, lambda event: os._exit(9) if event.id == "doc_1-4" else None)
            again.work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
