"""What an inbox counts and tells: the cause of a repeat, decisions and their gaps, depth, transitions after their commit."""

from __future__ import annotations

import logging
import re

import pytest
from sqlalchemy import text

from surehook.inbox import Later, sources
from surehook.inbox.receive import IncomingRequest
from surehook.inbox.transitions import Transition, line
from surehook.inbox.watch import is_replay, retry_of
from surehook.inbox.workflow import SIGNING
from surehook.verify import sign
from tests.inbox.conftest import DATABASES
from tests.inbox.house import SECRET, call, message, partner

every_database = pytest.mark.parametrize("ground", [(name, "sync") for name in DATABASES], indirect=True)


@pytest.fixture(params=["sync", "async"])
def ground(request, ground_of):
    """Counting asks no database anything: only a look at depth does."""
    if isinstance(request.param, tuple):
        return ground_of(*request.param)
    return ground_of("sqlite", request.param)


def repeat(house, event_id, **headers):
    """The same event as it was sent, with further headers of its sender's."""
    asked = call(*message(event_id), at=house.clock.at)
    more = [(name.replace("_", "-"), value) for name, value in headers.items()]
    again = IncomingRequest(
        **{name: getattr(asked, name) for name in IncomingRequest.__struct_fields__}
        | {"headers": [*asked.headers, *more]}
    )
    return house.do(house.inbox.receive(again))


@pytest.mark.parametrize(
    ("value", "label"),
    [("0", "0"), ("1", "1"), ("2", "2"), ("3", "3-5"), ("5", "3-5"), ("6", "6+"), ("900", "6+"),
     ("", "unknown"), ("-1", "unknown"), ("²", "unknown"), ("9" * 5_000, "unknown")],
)  # fmt: skip
def test_a_retry_count_becomes_one_of_few_labels_whatever_a_sender_writes(value, label):
    assert retry_of([("x-other", "1"), ("Webhook-Retry-Count", value)]) == label
    assert retry_of([]) == "unknown"


def test_a_replay_is_what_says_so():
    assert is_replay([("webhook-replay", "1")])
    assert not is_replay([("webhook-replay", "0"), ("x", "1")])


def test_repeats_are_counted_by_what_tells_their_cause(house):
    house.on(version="v7")
    house.receive("evt_1")
    for headers in ({"webhook_retry_count": "0"}, {"webhook_retry_count": "4"}, {"webhook_replay": "1"}):
        repeat(house, "evt_1", **headers)
    repeat(house, "evt_1", webhook_retry_count="3")
    assert house.inbox.watch.duplicates == {
        ("partner", "0", "no", "v7"): 1,
        ("partner", "3-5", "no", "v7"): 2,
        ("partner", "unknown", "yes", "v7"): 1,
    }
    assert house.inbox.watch.events == {("partner", "new"): 1, ("partner", "duplicate"): 4}


def test_what_is_refused_is_counted_by_code_wherever_it_was_refused(house):
    house.send(*message("evt_1"), secret="whsec_" + "A" * 43 + "=")
    house.sql("alter table surehook_inbox_requests rename to elsewhere")
    house.receive("evt_2")
    asked = call(*message("evt_3"), at=house.clock.at)
    assert house.inbox.receiver.before_body(asked, 2**40).status == 413
    elsewhere = IncomingRequest(
        **{name: getattr(asked, name) for name in IncomingRequest.__struct_fields__} | {"source": "made up"}
    )
    assert house.inbox.receiver.before_body(elsewhere, 2).status == 404
    assert house.inbox.receiver.refusals.counted() == {
        ("partner", "bad_signature"): 1,
        ("partner", "storage_unavailable"): 1,
        ("partner", "too_large"): 1,
        ("", "unknown_source"): 1,
    }
    assert house.inbox.watch.events == {}


def test_runs_are_counted_by_how_they_end_and_timed_from_their_arrival(houses):
    house = houses()
    said = {"evt_1": None, "evt_2": Later("30s"), "evt_3": ValueError("no")}
    house.on(lambda event: fail(said[event.id]), version="v7")
    for event_id in said:
        house.receive(event_id)
    house.clock.passes(0.2)
    house.work()
    watch = house.inbox.watch
    assert watch.runs == {("partner", "finalized", "no"): 1}
    assert watch.retries == {("partner", "later", "v7"): 1, ("partner", "handler_failed", "v7"): 1}
    took = watch.latency["partner"]
    assert (sum(took.buckets), took.total) == (1, 200)
    house.do(house.inbox.replay(reason="again", id="evt_1"))
    house.clock.passes(86_400)
    house.work()
    assert watch.runs["partner", "finalized", "yes"] == 1
    assert sum(took.buckets) == 1  # the age of a replay is no latency


def fail(said):
    if isinstance(said, Exception):
        raise said


def test_dead_letters_are_counted_by_why(houses):
    from surehook.inbox import Backoff

    house = houses(backoff=Backoff(attempts=1))
    house.on(lambda event: 1 / 0, version="v7")
    house.receive("evt_1")
    house.work()
    assert house.inbox.watch.dead == {("partner", "handler_failed", "v7"): 1}


@pytest.fixture
def documents(houses):
    """An inbox whose documents follow the ready table."""
    house = houses(sources=[sources.named("surehook", secret=SECRET)])
    house.inbox.follow(SIGNING, "surehook", "document.*")
    house.on(source="surehook")
    return house


def moves(house, number, type, **more):
    event_id, body = message(f"evt_{number}", type, subject="doc 1", sequence=number, data={}, **more)
    headers = list(sign(SECRET, event_id, body, timestamp=house.clock.at // 1000).items())
    asked = IncomingRequest(method="POST", source="surehook", query="", url="http://receiver/surehook", headers=headers, peer="",
                 body=body)  # fmt: skip
    assert house.do(house.inbox.receive(asked)).status == 200
    house.work()


def test_decisions_are_counted_so_that_gaps_and_no_ops_are_told_from_moves(documents):
    moves(documents, 1, "document.sent")
    moves(documents, 3, "document.signed")
    moves(documents, 2, "document.viewed")
    decisions = documents.inbox.watch.decisions
    assert decisions["surehook", "signing", "early", "gap"] == 1
    assert decisions["surehook", "signing", "applied", "move"] == 3


def test_each_transition_is_told_after_its_commit_with_both_states_and_its_correlation_id(documents):
    seen: list[Transition] = []
    documents.inbox.observe(seen.append)
    documents.inbox.observe(lambda one: 1 / 0)  # one that fails keeps nobody from hearing
    moves(documents, 1, "document.sent", correlation_id="session 7")
    moves(documents, 3, "document.signed", correlation_id="session 7")
    moves(documents, 2, "document.viewed", correlation_id="session 7")
    told = [(one.kind, one.event_id, one.before, one.after, one.verdict) for one in seen]
    assert told == [
        ("document.moved", "evt_1", "draft", "sent", "applied"),
        ("event.ended", "evt_1", "accepted", "finalized", None),
        ("document.moved", "evt_3", "sent", "sent", "early"),
        ("event.ended", "evt_3", "accepted", "held", None),
        ("document.moved", "evt_2", "sent", "viewed", "applied"),
        ("document.moved", "evt_3", "viewed", "signed", "applied"),
        ("event.ended", "evt_2", "accepted", "finalized", None),
        ("event.ended", "evt_3", "held", "finalized", None),
    ]
    assert {one.correlation_id for one in seen} == {"session 7"}
    assert all(one.ref.startswith("inb_") for one in seen)
    assert [one.is_move for one in seen[:4]] == [True, True, False, True]


@every_database
def test_a_word_of_somebody_is_a_transition_with_the_event_s_correlation_id(houses):
    house = houses(sources=[partner(correlation_id=sources.Field("session"))])
    house.on(final=False)
    for number in (1, 2):
        house.receive(f"evt_{number}", session=f"s{number}")
    house.work()
    seen: list[Transition] = []
    house.inbox.observe(seen.append)
    (first,) = house.events(correlation_id="s1")
    (second,) = house.events(id="evt_2")
    assert (first.id, first.correlation_id) == ("evt_1", "s1")
    assert house.do(house.inbox.finalize(first.ref)) and not house.do(house.inbox.finalize(first.ref))
    assert house.do(house.inbox.reject(second.ref, "identity_not_proven"))
    told = [(one.kind, one.before, one.after, one.correlation_id, one.code) for one in seen]
    assert told == [
        ("event.decided", "processed", "finalized", "s1", None),
        ("event.decided", "processed", "rejected", "s2", "identity_not_proven"),
    ]
    assert [one.state for one in house.events(ref=first.ref)] == ["finalized"]


def test_nothing_is_told_of_what_was_not_committed(house):
    seen: list[Transition] = []
    house.inbox.observe(seen.append)
    house.on()
    house.receive("evt_1")
    house.sql("alter table surehook_inbox_events rename to elsewhere")
    with pytest.raises(Exception, match="surehook_inbox_events"):
        house.work()
    house.sql("alter table elsewhere rename to surehook_inbox_events")
    assert (seen, house.inbox.watch.runs) == ([], {})


def test_a_transition_is_one_structured_line_however_a_sender_chose_its_ids(documents, caplog):
    with caplog.at_level(logging.INFO, logger="surehook.inbox.transitions"):
        moves(documents, 1, "document.sent", correlation_id="7")
    (record,) = caplog.records  # the event's own end is at debug
    assert re.match(r"document\.moved before=draft after=sent source=surehook ", record.getMessage())
    assert 'document="doc 1"' in record.getMessage() and "correlation_id=7" in record.getMessage()
    assert (record.after, record.correlation_id, record.document) == ("sent", "7", "doc 1")
    forged = Transition(kind="event.ended", before="a\nERROR forged", after="b", source="s", tenant="", event_id="e=1",
                        ref="inb_1")  # fmt: skip
    assert "\n" not in line(forged) and 'event_id="e=1"' in line(forged)


@every_database
def test_depth_counts_what_waits_by_source_and_forgets_what_was_replayed(houses):
    from surehook.inbox import Backoff

    version = sources.Field("schema_version")
    house = houses(
        sources=[partner(schema_version=version, schema_versions=["1"], unknown_schema="park")],
        backoff=Backoff(attempts=1),
    )
    good = []
    house.on(lambda event: None if good else 1 / 0)
    house.receive("evt_1", schema_version="1")
    house.work()
    house.receive("evt_2", schema_version="2")
    house.receive("evt_3", schema_version="1")
    house.clock.passes(5)
    (depth,) = house.do(house.inbox.depth())
    assert (depth.source, depth.ready, depth.scheduled, depth.parked, depth.dead) == ("partner", 1, 0, 1, 1)
    assert house.clock.at - depth.oldest_due_at == 5_000
    good.append(True)
    house.do(house.inbox.replay(reason="mended", state="dead"))
    house.work()
    (depth,) = house.do(house.inbox.depth())
    assert (depth.ready, depth.parked, depth.dead, depth.oldest_due_at) == (0, 1, 0, None)


def test_depth_tells_what_is_put_off_from_what_is_due(house):
    house.on(lambda event: Later("30s"))
    house.receive("evt_1")
    house.work()
    (depth,) = house.do(house.inbox.depth())
    assert (depth.ready, depth.scheduled, depth.oldest_due_at) == (0, 1, None)


@every_database
def test_depth_is_counted_up_to_a_bound(house):
    for n in range(5):
        house.receive(f"evt_{n}")
    (depth,) = house.do(
        house.inbox.store.run(lambda transaction: transaction.depth(now=house.clock.at, limit=3))
    )
    assert depth.ready == 3


def test_metrics_are_text_with_depth_as_of_now(house):
    house.receive("evt_1")
    scraped = house.do(house.inbox.metrics()).decode()
    assert 'surehook_inbox_events_total{kind="new",source="partner"} 1.0' in scraped
    assert 'surehook_inbox_depth{source="partner",state="ready"} 1.0' in scraped


def test_a_scrape_answers_without_depth_while_the_database_is_away(house):
    house.receive("evt_1")
    assert b'state="ready"' in house.do(house.inbox.metrics())
    house.sql("alter table surehook_inbox_runs rename to elsewhere")
    house.receive("evt_2")
    scraped = house.do(house.inbox.metrics()).decode()
    assert 'surehook_inbox_refusals_total{code="storage_unavailable",source="partner"} 1.0' in scraped
    assert 'state="ready"' not in scraped
    house.sql("alter table elsewhere rename to surehook_inbox_runs")


def test_workers_look_at_depth_for_those_who_scrape_and_for_nobody_else(house):
    house.receive("evt_1")
    house.work()
    assert house.inbox.watch.looked_at is None
    collector = house.inbox.collector()
    house.work()
    first = house.inbox.watch.looked_at
    house.clock.passes(9)
    house.work()
    assert house.inbox.watch.looked_at == first == house.clock.at - 9_000
    house.clock.passes(1)
    house.work()
    assert house.inbox.watch.looked_at == house.clock.at
    assert b"surehook_inbox_looked_timestamp_seconds" in collector.render()


@every_database
def test_a_look_that_fails_keeps_nobody_from_working(house):
    seen = house.on()
    house.inbox.collector()
    broken = text("select nothing from nowhere")
    house.inbox.depth_work = lambda: lambda transaction: transaction.connection.execute(broken)
    house.receive("evt_1")
    house.work()
    assert [event.id for event in seen] == ["evt_1"]
    assert house.inbox.watch.looked_at is None
