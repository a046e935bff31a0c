"""Documents in the inbox: the table decides, handlers hear of moves, whatever the order and whichever worker."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from surehook.inbox import Backoff, Later
from surehook.inbox.sql import documenting
from surehook.inbox.workflow import Fields, Order, Table
from tests.inbox.house import call, message

FIELDS = Fields(document="document", sequence="n")
STORY = (
    "document.sent", "document.viewed", "identity.verified", "document.signed", "document.countersigned",
    "certificate.attached", "document.completed",
)  # fmt: skip
MOVES = [
    "document.sent",
    "document.viewed",
    "document.signed",
    "document.countersigned",
    "document.completed",
]
QUICK = Backoff(first_s=1, factor=2, max_s=60, attempts=3, jitter=0)


def table(fields=FIELDS, memory=64, **order):
    return Table(
        document_type="contract",
        states=("draft", "sent", "viewed", "signed", "countersigned", "completed"),
        initial="draft",
        terminal=("completed",),
        moves={
            "document.sent": {"draft": "sent"},
            "document.viewed": {"sent": "viewed"},
            "document.signed": {"sent": "signed", "viewed": "signed"},
            "document.countersigned": {"signed": "countersigned"},
            "document.completed": {"signed": "completed", "countersigned": "completed"},
        },
        informational=("certificate.attached", "identity.verified"),
        order=Order(**order),
        fields=fields,
        memory=memory,
    )


STRICT = {"mode": "strict"}
BUFFER = {"mode": "buffer", "wait_s": 60.0, "then": "skip"}


def followed(houses, order=STRICT, **options):
    house = houses(**options)
    house.inbox.follow(table(**order), "partner")
    return house


def story(document):
    """The events of a document, as (event id, type, data)."""
    return [(f"{document}-{n}", type, {"document": document, "n": n}) for n, type in enumerate(STORY, 1)]


def state(house, document):
    return house.sql("select state from surehook_inbox_documents where document = :one", one=document)[0][0]


@pytest.mark.parametrize("order", [STRICT, BUFFER], ids=["strict", "buffer"])
def test_any_order_with_repeats_gives_the_same_document_and_calls_handlers_once_in_order(houses, order):
    house = followed(houses, order)
    heard = []
    house.on(lambda event: heard.append((event.change.after, event.body["document"], event.type)))
    dice = random.Random(7)
    arrivals = []
    for n in range(6):
        events = story(f"doc_{n}")
        events += dice.sample(events, 3)
        dice.shuffle(events)
        arrivals += events
    dice.shuffle(arrivals)
    while arrivals:
        for _ in range(dice.randrange(1, 9)):
            if arrivals:
                event_id, type, data = arrivals.pop()
                assert house.receive(event_id, type, **data).status == 200
        house.work()
    for n in range(6):
        assert state(house, f"doc_{n}") == "completed"
        assert [type for _, document, type in heard if document == f"doc_{n}"] == MOVES
    assert set(house.states().values()) == {"finalized", "ignored"}
    assert len(house.effects()) == 6 * len(MOVES)


def test_an_early_event_is_held_and_leaves_the_line_with_its_predecessor(houses):
    house = followed(houses)
    house.on()
    sent, viewed = story("doc_1")[:2]
    house.receive(viewed[0], viewed[1], **viewed[2])
    house.work()
    assert (house.states(), house.effects()) == ({"doc_1-2": "held"}, [])
    house.receive(sent[0], sent[1], **sent[2])
    house.work()
    assert house.states() == {"doc_1-1": "finalized", "doc_1-2": "finalized"}
    assert house.effects() == ["doc_1-1", "doc_1-2"]


def test_a_gap_is_waited_for_no_longer_than_the_table_says(houses):
    house = followed(houses, BUFFER)
    house.on()
    first, _, third = story("doc_1")[:3]
    for event_id, type, data in (first, (third[0], "document.signed", third[2])):
        house.receive(event_id, type, **data)
    house.work()
    assert state(house, "doc_1") == "sent"
    house.clock.passes(59)
    house.work()
    assert house.states()["doc_1-3"] == "held"
    house.clock.passes(2)
    house.work()
    assert (state(house, "doc_1"), house.states()["doc_1-3"]) == ("signed", "finalized")


def test_a_stale_replay_after_a_terminal_state_moves_nothing_and_is_recorded(houses):
    house = followed(houses, {"mode": "free"})
    heard = house.on()
    for event_id, type, data in story("doc_1"):
        house.receive(event_id, type, **{**data, "n": None})
    house.work()
    assert len(heard) == len(MOVES)
    house.receive("late", "document.viewed", document="doc_1")
    house.work()
    assert (state(house, "doc_1"), house.states()["late"]) == ("completed", "ignored")
    assert house.events(id="late")[0].code == "stale"
    assert len(heard) == len(MOVES)


def test_a_handler_that_fails_moves_nothing_and_its_successors_wait(houses):
    house = followed(houses, backoff=QUICK)
    failing = [True]

    def effect(event):
        if event.type == "document.viewed" and failing:
            raise ValueError("not now")

    house.on(effect)
    for event_id, type, data in story("doc_1"):
        house.receive(event_id, type, **data)
    house.work()
    assert state(house, "doc_1") == "sent"
    assert house.states()["doc_1-2"] == "accepted"
    assert house.states()["doc_1-3"] == "held"
    failing.clear()
    house.clock.passes(2)
    house.work()
    assert state(house, "doc_1") == "completed"
    assert len(house.effects()) == len(MOVES)


def second_before_first(house, together):
    sent, viewed = story("doc_1")[:2]
    house.receive(viewed[0], viewed[1], **viewed[2])
    if not together:
        house.work()
    house.receive(sent[0], sent[1], **sent[2])


@pytest.mark.parametrize("together", [True, False], ids=["one batch", "two batches"])
def test_one_that_waited_and_fails_does_not_hold_back_what_let_it_go_on(houses, together):
    house = followed(houses, backoff=QUICK)
    failing = [True]

    def effect(event):
        if event.type == "document.viewed" and failing:
            raise ValueError("not now")

    house.on(effect)
    second_before_first(house, together)
    house.work()
    assert (state(house, "doc_1"), house.effects()) == ("sent", ["doc_1-1"])
    assert house.states()["doc_1-2"] == "accepted"
    failing.clear()
    house.clock.passes(2)
    house.work()
    assert (state(house, "doc_1"), house.effects()) == ("viewed", ["doc_1-1", "doc_1-2"])


@pytest.mark.parametrize("first", [ValueError("once"), Later("1s")], ids=["fails", "later"])
@pytest.mark.parametrize("second", [ValueError("again"), Later("5s")], ids=["fails", "later"])
@pytest.mark.parametrize("together", [True, False], ids=["one batch", "two batches"])
def test_one_that_waited_and_fails_is_not_lost_if_what_let_it_go_on_fails_as_it_is_called_again(
    houses, together, first, second
):
    """It had left the queue by its run's end, and stood in it still: handed in again it was a repeat of itself."""
    house = followed(houses, backoff=Backoff(first_s=1, factor=1, max_s=1, attempts=9, jitter=0))
    said = {("document.viewed", 1): first, ("document.sent", 2): second}
    called = Counter()

    def effect(event):
        called[event.type] += 1
        if (error := said.get((event.type, called[event.type]))) is not None:
            raise error

    house.on(effect)
    second_before_first(house, together)
    for _ in range(9):
        house.work()
        house.clock.passes(2)
    assert (state(house, "doc_1"), house.effects()) == ("viewed", ["doc_1-1", "doc_1-2"])
    assert set(house.states().values()) == {"finalized"}


def test_a_replay_of_a_move_calls_its_handlers_with_that_move_and_leaves_the_document(houses):
    house = followed(houses)
    heard = house.on()
    for event_id, type, data in story("doc_1"):
        house.receive(event_id, type, **data)
    house.work()
    before = house.sql("select body from surehook_inbox_documents")
    assert house.do(house.inbox.replay(reason="mended", document="doc_1", type="document.signed")) == 1
    house.work()
    assert house.sql("select body from surehook_inbox_documents") == before
    assert (heard[-1].replay, heard[-1].change.before, heard[-1].change.after) == (1, "viewed", "signed")


def test_every_decision_can_be_explained(houses):
    house = followed(houses)
    for event_id, type, data in (
        *story("doc_1")[:2],
        ("odd", "document.unheard_of", {"document": "doc_1", "n": 3}),
    ):
        house.receive(event_id, type, **data)
    house.work()
    lines = house.do(house.inbox.explain("doc_1"))
    assert any("draft → sent" in line for line in lines)
    assert any("odd" in line and "conflict" in line for line in lines)
    assert lines[-1].startswith("now viewed")
    assert house.states()["odd"] == "rejected"


def test_of_a_long_history_the_last_decisions_are_explained_and_a_release_reads_none(houses, monkeypatch):
    house = followed(houses)
    house.on()
    for event_id, type, data in story("doc_1")[:5]:
        house.receive(event_id, type, **data)
    house.work()
    told = house.do(house.inbox.explain("doc_1", limit=2))
    assert told[0] == "the last 2 decisions; earlier ones are not shown (limit=)"
    assert [line for line in told if " doc_1-" in line] == house.do(house.inbox.explain("doc_1"))[4:6]
    read = []
    monkeypatch.setattr(documenting, "_last_steps", lambda *given: read.append(given[-1]) or [])
    house.do(house.inbox.release("doc_1", by="ana", reason="seen"))
    assert read == [0]


def test_an_event_without_a_document_is_rejected(houses):
    house = followed(houses)
    house.receive("evt_1", "document.sent", n=1)
    house.work()
    assert house.events()[0].code == "no_document"


@pytest.mark.slow
def test_workers_on_the_same_documents_apply_each_event_once(houses):
    house = followed(houses)
    if house.kind != "sync":
        pytest.skip("threads are of the blocking inbox")
    house.on()
    calls = [
        call(*message(event_id, type, **data), at=house.clock.at)
        for n in range(20)
        for event_id, type, data in story(f"doc_{n}")
    ]
    random.Random(3).shuffle(calls)
    house.inbox.start(workers=4)
    calls += calls[::5]
    for _ in range(
        5
    ):  # a sender sends again what could not be stored: the writer may lose to the workers for a while
        answers = house.at_once(calls)
        calls = [sent for sent, answer in zip(calls, answers, strict=True) if answer.status == 503]
    house.inbox.stop()
    assert not calls
    for _ in range(20):  # what a deadlock or a lock gave back is due a moment later
        house.clock.passes(61)
        house.work()
    assert sorted(house.effects()) == sorted(
        event_id for n in range(20) for event_id, type, _ in story(f"doc_{n}") if type in MOVES
    )
    assert {state(house, f"doc_{n}") for n in range(20)} == {"completed"}
