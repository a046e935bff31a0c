"""No document is stuck without a way out: what counts for its order, who hears of it, how long it waits, what people may say."""

from __future__ import annotations

import logging

import pytest
from msgspec.structs import replace

from surehook.core.errors import SettingsError
from surehook.inbox import Ignore, Later, Refuse
from surehook.inbox.workflow import Fields, WorkflowError
from tests.inbox.house import message, partner_named
from tests.inbox.test_documents import FIELDS, MOVES, QUICK, STRICT, state, story, table

SHORT = {"mode": "strict", "wait_s": 60.0}


def followed(houses, pattern="*", order=STRICT, rejected=None, fields=FIELDS, **options):
    house = houses(**options)
    made = replace(table(**order), rejected=rejected or {}, fields=fields)
    house.inbox.follow(made, "partner", pattern)
    return house


def tell(house, *numbers, document="doc_1"):
    """Hand in events of the story by number, and work."""
    for number in numbers:
        event_id, type, data = story(document)[number - 1]
        assert house.receive(event_id, type, **data).status == 200
    house.work()


def warned(caplog, *words):
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == logging.WARNING and all(word in record.getMessage() for word in words)
    ]


# -- informational events


@pytest.mark.parametrize("pattern", ["document.*", "*"])
def test_an_informational_event_counts_for_the_order_and_reaches_the_handler_that_asks(houses, pattern):
    house = followed(houses, pattern)
    moves = house.on(pattern="document.*")
    asks = house.on(pattern="identity.*")
    tell(house, 1, 2, 4, 5, 6, 7)
    assert state(house, "doc_1") == "viewed"
    assert asks == []
    tell(house, 3)
    assert state(house, "doc_1") == "completed"
    assert [event.type for event in moves] == MOVES
    ((asked, change),) = [(event.id, event.change) for event in asks]
    assert (asked, change.verdict, change.is_move, change.after) == (
        "doc_1-3",
        "informational",
        False,
        "viewed",
    )
    assert house.states() == dict.fromkeys(house.states(), "finalized") | {"doc_1-6": "ignored"}


def test_a_handler_of_moves_hears_of_information_only_by_its_word(houses):
    house = followed(houses)
    deaf = house.on(name="deaf")
    hears = house.on(name="hears", informational=True)
    tell(house, *range(1, 8))
    assert [event.type for event in deaf] == MOVES
    assert [event.id for event in hears] == [f"doc_1-{number}" for number in range(1, 8)]


def test_where_the_pattern_leaves_information_out_every_handler_hears_it_as_before(houses):
    house = followed(houses, "document.*")
    every = house.on()
    tell(house, *range(1, 8))
    house.receive("free", "identity.verified", user="ana")
    house.work()
    assert [event.id for event in every] == [*(f"doc_1-{number}" for number in range(1, 8)), "free"]
    assert every[-1].change is None


def test_information_whose_handler_fails_is_tried_again_and_its_successors_wait(houses):
    house = followed(houses, "document.*", backoff=QUICK)
    failing = [True]

    def effect(event):
        if failing:
            raise ValueError("not now")

    house.on(pattern="document.*")
    house.on(effect, pattern="identity.*")
    tell(house, 1, 2, 3, 4)
    assert (state(house, "doc_1"), house.states()["doc_1-4"]) == ("viewed", "held")
    failing.clear()
    house.clock.passes(2)
    house.work()
    assert (state(house, "doc_1"), house.effects()) == (
        "signed",
        ["doc_1-1", "doc_1-2", "doc_1-3", "doc_1-4"],
    )


def test_a_replay_of_information_calls_the_handler_that_asked(houses):
    house = followed(houses)
    asks = house.on(pattern="identity.verified")
    tell(house, 1, 2, 3)
    assert house.do(house.inbox.replay(reason="mended", id="doc_1-3")) == 1
    house.work()
    assert [(event.replay, event.change.verdict) for event in asks] == [
        (0, "informational"),
        (1, "informational"),
    ]


@pytest.mark.parametrize("type", ["document.viewed", "payment.made"])
def test_numbers_of_events_that_nobody_follows_are_told(houses, caplog, type):
    house = followed(houses, "document.sent")
    house.on()
    tell(house, 1)
    for n, document in ((2, "doc_1"), (3, "doc_1"), (1, "inv_9")):
        house.receive(f"{document}-{n}", type, document=document, n=n)
    house.work()
    (line,) = warned(caplog, "no workflow follows", type, "doc_1")
    assert "number 2 of contract doc_1" in line
    assert house.effects() == ["doc_1-1", "doc_1-2", "doc_1-3", "inv_9-1"]


def test_a_number_of_what_is_no_document_is_nobodys_business(houses, caplog):
    house = followed(houses, "document.*")
    house.on()
    house.receive("inv_9-1", "payment.made", document="inv_9", n=1)
    house.work()
    assert warned(caplog, "no workflow follows") == []


# -- the bounded wait


def test_what_waited_too_long_is_rejected_told_and_can_be_replayed(houses, caplog):
    house = followed(houses, order=SHORT)
    house.on()
    tell(house, 1, 4)
    house.clock.passes(61)
    house.work()
    (late,) = house.events(id="doc_1-4")
    assert (late.state, late.code) == ("rejected", "waited_too_long")
    (line,) = warned(caplog, "waited_too_long")
    assert line.startswith("contract doc_1: doc_1-4 waited 60 s for number 2; it can be handed in again")
    tell(house, 2, 3)
    house.do(house.inbox.replay(reason="all there", code="waited_too_long"))
    house.work()
    assert state(house, "doc_1") == "signed"


def test_numbers_that_are_given_up_are_told(houses, caplog):
    house = followed(houses, order={"mode": "buffer", "wait_s": 60.0, "then": "skip"})
    house.on()
    tell(house, 1, 4)
    house.clock.passes(61)
    house.work()
    assert len(warned(caplog, "numbers 2 to 3 given up after 60 s", "gave_up")) == 1


# -- release


def test_a_release_lets_what_is_held_go_on_and_the_journal_says_who_and_why(houses):
    house = followed(houses)
    heard = house.on()
    tell(house, 1, 4, 7)
    assert house.do(house.inbox.release("doc_1", by="ana", reason="seen on paper")) is True
    house.work()
    assert (state(house, "doc_1"), house.states()["doc_1-7"]) == ("signed", "held")
    assert [event.id for event in heard] == ["doc_1-1", "doc_1-4"]
    assert any("numbers 2 to 3 given up by ana: seen on paper" in line for line in lines(house))
    house.do(house.inbox.release("doc_1", by="ana", reason="again"))
    house.work()
    assert state(house, "doc_1") == "completed"
    assert house.do(house.inbox.release("doc_1", by="ana", reason="once more")) is False
    assert house.do(house.inbox.release("nowhere", by="ana", reason="typo")) is False


def test_a_release_may_be_said_where_nothing_is_followed_and_no_handler_is(houses):
    house = followed(houses)
    house.on()
    tell(house, 1, 4)
    twin = house.twin()
    assert twin.do(twin.inbox.release("doc_1", by="ana", reason="seen on paper"))
    assert "release was asked for by ana: seen on paper" in "".join(lines(house))
    house.work()
    assert state(house, "doc_1") == "signed"
    twin.close()


def test_workers_that_do_not_follow_a_document_leave_it_alone(houses):
    house = followed(houses)
    house.on()
    tell(house, 1, 4)
    twin = house.twin()
    twin.do(twin.inbox.release("doc_1", by="ana", reason="seen on paper"))
    assert twin.work() == 0
    house.work()
    assert state(house, "doc_1") == "signed"
    twin.close()


@pytest.mark.parametrize("word", [Ignore("not mine"), Refuse("not_mine")])
def test_information_that_a_handler_does_not_want_has_its_number_nevertheless(houses, word):
    house = followed(houses, "document.*")

    def effect(event):
        raise word

    house.on(pattern="document.*")
    house.on(effect, pattern="identity.*")
    tell(house, 1, 4, 3, 2)
    assert (state(house, "doc_1"), house.effects()) == ("signed", ["doc_1-1", "doc_1-2", "doc_1-4"])
    assert house.states()["doc_1-3"] == ("ignored" if isinstance(word, Ignore) else "rejected")
    tell(house, 5, 6, 7)
    assert state(house, "doc_1") == "completed"


def test_a_release_whose_handler_fails_is_carried_out_and_the_event_tried_again(houses):
    house = followed(houses, backoff=QUICK)
    failing = [True]

    def effect(event):
        if failing and event.type == "document.signed":
            raise ValueError("not now")

    house.on(effect)
    tell(house, 1, 4, 5, 7)
    house.do(house.inbox.release("doc_1", by="ana", reason="seen on paper"))
    house.work()
    assert (state(house, "doc_1"), house.effects()) == ("sent", ["doc_1-1"])
    assert house.states()["doc_1-4"] == "accepted"
    failing.clear()
    house.clock.passes(2)
    house.work()
    assert state(house, "doc_1") == "countersigned"
    assert house.effects() == ["doc_1-1", "doc_1-4", "doc_1-5"]


def test_words_need_a_name_and_a_reason(houses):
    house = followed(houses)
    for words in ({"by": "", "reason": "x"}, {"by": "ana", "reason": ""}):
        for say in (house.inbox.release, house.inbox.grant):
            with pytest.raises(SettingsError):
                house.do(say("doc_1", **words))


# -- grant


def test_a_granted_token_lets_one_event_pass_the_gap(houses):
    house = followed(houses, fields=Fields(document="document", sequence="n", token="token"))
    house.on()
    tell(house, 1)
    token = house.do(house.inbox.grant("doc_1", by="ana", reason="the rest is lost"))
    assert token.startswith("rmt_")
    house.receive("doc_1-4", "document.signed", document="doc_1", n=4, token=token)
    house.work()
    assert state(house, "doc_1") == "signed"
    told = "\n".join(lines(house))
    assert "a remediation token was granted by ana: the rest is lost" in told
    assert token not in told


def test_a_document_holds_eight_unused_tokens_and_an_unknown_one_none(houses):
    house = followed(houses)
    with pytest.raises(SettingsError, match="knows no document"):
        house.do(house.inbox.grant("doc_1", by="ana", reason="typo"))
    tell(house, 1)
    for number in range(8):
        assert house.do(house.inbox.grant("doc_1", f"t{number}", by="ana", reason="x")) == f"t{number}"
    with pytest.raises(WorkflowError):
        house.do(house.inbox.grant("doc_1", by="ana", reason="x"))


# -- an event that does not stand after all


def test_a_document_does_not_stay_advanced_after_its_event_was_rejected(houses):
    house = followed(houses)
    moved = house.on(final=False)
    tell(house, 1, 2, 3, 4)
    (signed,) = house.events(id="doc_1-4")
    assert (state(house, "doc_1"), signed.state) == ("signed", "processed")
    assert house.do(house.inbox.reject(signed.ref, "compliance"))
    house.work()
    assert state(house, "doc_1") == "viewed"
    assert any("doc_1-4 was rejected (compliance): signed → viewed [undone]" in line for line in lines(house))
    assert house.do(house.inbox.replay(reason="checked again", id="doc_1-4")) == 1
    house.work()
    assert (state(house, "doc_1"), house.events(id="doc_1-4")[0].state) == ("signed", "processed")
    assert (moved[-1].replay, moved[-1].change.before, moved[-1].change.after) == (1, "viewed", "signed")
    tell(house, 5)
    assert state(house, "doc_1") == "countersigned"


def test_a_rejection_goes_where_the_table_says_and_before_whatever_comes_next(houses):
    house = followed(houses, rejected={"document.signed": {"signed": "sent"}})
    house.on(final=False)
    tell(house, 1, 2, 3, 4)
    house.do(house.inbox.reject(house.events(id="doc_1-4")[0].ref, "compliance"))
    tell(house, 5)
    assert state(house, "doc_1") == "sent"
    assert house.events(id="doc_1-5")[0].code == "conflict"


def test_what_later_events_were_built_on_is_told_and_stays(houses, caplog):
    house = followed(houses)
    house.on(final=False)
    tell(house, *range(1, 8))
    house.do(house.inbox.reject(house.events(id="doc_1-4")[0].ref, "compliance"))
    house.work()
    assert state(house, "doc_1") == "completed"
    assert len(warned(caplog, "doc_1-4 was rejected (compliance)", "not_undone")) == 1


def test_a_rejection_of_what_moved_nothing_touches_no_document(houses):
    house = followed(houses)
    house.on(final=False, pattern="identity.*")
    tell(house, 1, 2, 3)
    before = house.sql("select body from surehook_inbox_documents")
    house.do(house.inbox.reject(house.events(id="doc_1-3")[0].ref, "compliance"))
    house.work()
    assert house.sql("select body from surehook_inbox_documents") == before


# -- the time of a transition


@pytest.mark.parametrize("said", [Later("30s"), Refuse("not_here"), Ignore("nothing"), ValueError("broken")])
def test_what_is_put_off_or_rejected_says_when(house, said):
    def effect(event):
        raise said

    seen = []
    house.inbox.observe(seen.append)
    house.on(effect)
    house.receive("evt_1")
    house.clock.passes(5)
    house.work()
    assert [one.at for one in seen if one.kind == "event.ended"] == [house.clock.at]


def lines(house, document="doc_1"):
    return house.do(house.inbox.explain(document))


# -- an event that waits, and cannot be read any more


@pytest.mark.parametrize("fails", [False, True], ids=["the predecessor is handled", "its handler fails"])
def test_one_that_waits_and_whose_source_is_gone_is_parked_and_its_predecessor_goes_on(houses, fails):
    before = followed(houses)
    before.on(source="partner")
    tell(before, 1, 3)
    after = before.twin(sources=[partner_named("renamed")], backoff=QUICK)
    after.inbox.follow(table(**STRICT), "renamed", "*")
    failing = [fails]

    def failed_once(event):
        if failing[0]:
            failing[0] = False
            raise ValueError("not yet")

    handled = after.on(failed_once, source="renamed")
    event_id, type, data = story("doc_1")[1]
    assert after.send(*message(event_id, type, **data), source="renamed").status == 200
    after.work()
    after.clock.passes(2)
    after.work()
    assert [event.id for event in handled] == ["doc_1-2"] * (1 + fails)
    assert after.states() == {"doc_1-1": "finalized", "doc_1-2": "finalized", "doc_1-3": "parked"}
    assert [one.code for one in after.events(id="doc_1-3")] == ["unknown_source"]
    before.work()
    before.clock.passes(11)
    before.work()
    told = before.events(id="doc_1-3")[0]
    assert (told.state, told.code) == ("ignored", "informational"), "it goes on where its source is known"
    after.close()


def test_a_release_lets_a_document_go_on_past_one_that_cannot_be_read(houses, monkeypatch):
    house = followed(houses, backoff=QUICK)
    house.on()
    tell(house, 1, 3)

    def unread(run):
        raise ValueError("of another form")

    monkeypatch.setattr(house.inbox.transactions.processor, "read", unread)
    assert house.do(house.inbox.release("doc_1", by="ana", reason="seen on paper")) is True
    house.work()
    ended = house.events(id="doc_1-3")[0]
    assert (ended.state, ended.code, ended.error) == ("accepted", "unreadable", "ValueError: of another form")


def test_a_document_with_spaces_around_its_id_is_none(houses):
    """MariaDB takes it for the one without those at its end."""
    house = followed(houses)
    house.on()
    house.receive("evt_1", "document.sent", document="doc_1 ", n=1)
    house.work()
    assert [(one.state, one.code) for one in house.events()] == [("rejected", "no_document")]


# -- a document that nobody follows any more


def test_held_events_that_nobody_follows_are_told_of_once_a_minute_for_each_type(houses, caplog):
    before = followed(houses)
    before.on()
    tell(before, 1, 3)
    after = before.twin()
    after.on()
    after.work()
    assert warned(caplog, "not followed here") == []
    days = 4 * 86_400
    for passed in (days, 30, 40):
        after.clock.passes(passed)
        after.work()
    told = warned(caplog, "not followed here", "contract", "doc_1")
    assert len(told) == 2, "after four days, and a minute later"
    before.work()
    after.clock.passes(70)
    after.work()
    assert len(warned(caplog, "not followed here")) == 2
    after.close()


def test_a_release_says_so_where_nobody_follows_the_document(houses, caplog):
    before = followed(houses)
    before.on()
    tell(before, 1, 3)
    after = before.twin()
    assert after.do(after.inbox.release("doc_1", by="ana", reason="seen")) is True
    assert len(warned(caplog, "no workflow here follows documents of type contract")) == 1
    assert before.do(before.inbox.release("doc_1", by="ana", reason="seen")) is True
    assert len(warned(caplog, "no workflow here follows")) == 1
    after.close()
