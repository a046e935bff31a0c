"""What an inbox promises, on every database and for both kinds of callers."""

from __future__ import annotations

import gc
import hashlib
import json
import weakref
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from surehook.inbox import Backoff, Ignore, Later, Refuse, Rules, sources
from surehook.inbox.sources import Field, SourceError
from tests.inbox.house import SECRET, House, call, message, partner

QUICK = Backoff(first_s=1, factor=2, max_s=60, attempts=3, jitter=0)


def code(reply):
    return json.loads(reply.body)["code"]


# -- in ---------------------------------------------------------------------------------------------------------


def test_what_was_answered_2xx_is_in_the_database_byte_for_byte(house):
    body = b'{"type" : "document.signed",  "n": 1.0}'
    assert house.send("evt_1", body).status == 200
    rows = house.sql("select body, headers from surehook_inbox_requests")
    assert [bytes(row[0]) for row in rows] == [body]
    assert "webhook-signature" in dict(json.loads(rows[0][1]))
    sha256 = house.sql("select body_sha256 from surehook_inbox_events")[0][0]
    assert bytes(sha256) == hashlib.sha256(body).digest()


def test_a_duplicate_gets_the_same_answer_and_no_handler_hears_of_it(house):
    seen = house.on()
    first = house.receive("evt_1")
    house.work()
    house.clock.passes(3 * 86_400)  # days later, signed anew
    assert house.receive("evt_1") == first
    assert house.work() == 0
    assert [event.id for event in seen] == ["evt_1"]
    assert house.inbox.watch.events["partner", "duplicate"] == 1


def test_another_body_under_a_known_id_is_kept_answered_409_and_changes_nothing(house):
    house.on()
    house.receive("evt_1", word="first")
    refused = house.receive("evt_1", word="second")
    assert (refused.status, code(refused)) == (409, "event_conflict")
    assert json.loads(refused.body)["retryable"] is False
    house.work()
    assert house.sql("select event_id, word from effects") == [("evt_1", "first")]
    (kept,) = house.do(house.inbox.conflicts())
    (other,) = house.do(house.inbox.show(kept.ref)).others
    assert (kept.id, json.loads(other.body)["word"]) == ("evt_1", "second")
    assert (kept.body_bytes, kept.body_sha256) == (len(other.body), other.body_sha256)
    house.receive("evt_1", word="second")  # the same again is no second conflict
    assert len(house.do(house.inbox.conflicts())) == 1


def test_a_source_may_answer_conflicts_as_if_they_were_new(houses):
    house = houses(sources=[partner(on_conflict="accept")])
    house.receive("evt_1", n=1)
    assert house.receive("evt_1", n=2).status == 200
    assert len(house.do(house.inbox.conflicts())) == 1


def test_conflicts_of_one_event_are_bounded(house):
    for n in range(15):
        house.receive("evt_1", n=n)
    assert len(house.do(house.inbox.conflicts())) == 10


def test_ids_are_unique_within_source_and_tenant_and_are_told_apart_by_case(houses):
    two = [
        partner(tenant=sources.Field("tenant")),
        sources.named("standard", name="other", secret=SECRET),
    ]
    house = houses(sources=two)
    house.on(source="*")
    for tenant in ("acme", "globex"):
        house.receive("evt_1", tenant=tenant)
    house.receive("EVT_1", tenant="acme")
    house.send(*message("evt_1"), source="other")
    house.work()
    assert house.effects() == ["EVT_1", "evt_1", "evt_1", "evt_1"]


def test_requests_of_one_moment_share_transactions_and_none_is_lost(house):
    house.on()
    calls = [call(*message(f"evt_{n}"), at=house.clock.at) for n in range(100)]
    calls += [call(*message(f"evt_{n}"), at=house.clock.at) for n in range(0, 100, 3)]
    calls.append(call(*message("evt_5", word="other"), at=house.clock.at))
    answers = house.at_once(calls)
    assert [one.status for one in answers[:-1]].count(200) >= 133  # the forged one may have come first
    assert sorted(one.status for one in answers).count(409) in (1, 2)
    house.work()
    assert house.effects() == sorted(f"evt_{n}" for n in range(100))


def test_what_is_not_believed_leaves_a_sample_and_no_row(house):
    reply = house.do(house.inbox.receive(call("evt_1", b"{}", at=house.clock.at - 3_600_000)))
    assert (reply.status, code(reply)) == (401, "bad_signature")
    assert house.sql("select count(*) from surehook_inbox_requests") == [(0,)]
    (sample,) = house.inbox.samples("partner")
    assert sample.code == "too_old"
    assert "webhook-signature" in sample.headers
    assert "v1" not in sample.headers["webhook-signature"]


def test_samples_are_bounded_in_number_and_in_time(house):
    for n in range(50):
        house.send(f"evt_{n}", b"{}", secret="whsec_" + "A" * 43 + "=")
    assert len(house.inbox.samples("partner")) == 1
    assert house.inbox.receiver.refusals.counts["partner", "bad_signature"] == 50
    for n in range(50):
        house.clock.passes(2)
        house.send(f"evt_{n}", b"{}", secret="whsec_" + "A" * 43 + "=")
    assert len(house.inbox.samples("partner")) == 20


def test_an_unknown_schema_version_is_terminal(houses):
    house = houses(sources=[partner(schema_version=sources.Field("schema_version"), schema_versions=["1"])])
    reply = house.receive("evt_1", schema_version="2")
    assert (reply.status, code(reply), json.loads(reply.body)["retryable"]) == (422, "unknown_schema", False)
    assert house.receive("evt_2", schema_version="1").status == 200
    assert set(house.states()) == {"evt_2"}


def test_a_parked_schema_version_is_answered_2xx_and_processed_once_it_is_known(houses):
    version = sources.Field("schema_version")
    house = houses(sources=[partner(schema_version=version, schema_versions=["1"], unknown_schema="park")])
    house.on()
    assert house.receive("evt_1", schema_version=2).status == 200
    house.work()
    assert house.states() == {"evt_1": "parked"}
    knows = house.twin(sources=[partner(schema_version=version, schema_versions=["1", "2"])])
    knows.on()
    assert knows.do(knows.inbox.unpark("partner")) == 1
    knows.work()
    assert (knows.states(), knows.effects()) == ({"evt_1": "finalized"}, ["evt_1"])
    knows.close()


def test_a_database_that_is_away_is_503_with_retry_after_and_nothing_is_kept(house):
    house.sql("alter table surehook_inbox_requests rename to elsewhere")
    reply = house.receive("evt_1")
    assert (reply.status, code(reply), json.loads(reply.body)["retryable"]) == (
        503,
        "storage_unavailable",
        True,
    )
    assert int(dict(reply.headers)["retry-after"]) > 0
    house.sql("alter table elsewhere rename to surehook_inbox_requests")
    assert house.states() == {}
    assert house.receive("evt_1").status == 200


def test_each_event_of_a_batch_is_an_event(houses):
    from tests.inbox.batches import EVENTS, batch

    house = houses(sources=[batch.source])
    house.on(source="batch")
    assert house.do(house.inbox.receive(batch.call(EVENTS, at=house.clock.at))).status == 200
    regrouped = [EVENTS[1], {"id": "evt_3", "type": "c", "word": "new"}]
    assert house.do(house.inbox.receive(batch.call(regrouped, at=house.clock.at))).status == 200
    house.work()
    assert sorted(house.sql("select event_id, word from effects")) == [
        ("evt_1", "one"),
        ("evt_2", "two"),
        ("evt_3", "new"),
    ]


# -- processing -------------------------------------------------------------------------------------------------


def test_effects_and_the_mark_are_one_commit(house):
    house.on()
    house.receive("evt_1", word="hello")
    house.work()
    (event,) = house.events()
    assert (event.state, event.attempts, event.handler_version) == ("finalized", 1, "1")
    assert event.processed_at == event.finalized_at is not None
    assert house.effects() == ["evt_1"]


def test_a_handler_sees_the_event_as_it_came(houses):
    house = houses(sources=[partner(correlation_id=sources.Field("correlation_id"))])
    seen = house.on()
    house.receive("evt_1", "document.signed", correlation_id="doc_7", n=1)
    house.work()
    (event,) = seen
    assert event.raw == b'{"type": "document.signed", "correlation_id": "doc_7", "n": 1}'
    assert (event.id, event.source, event.type, event.attempt, event.replay) == (
        "evt_1",
        "partner",
        "document.signed",
        1,
        0,
    )
    assert event.correlation_id == "doc_7"
    assert event.proven == {"body", "id", "time", "type"} - ({"time"} if event.occurred_at is None else set())
    assert dict(event.headers)["webhook-id"] == "evt_1"
    assert event.ref.startswith("inb_")


def test_patterns_choose_handlers_and_all_that_fit_are_called(house):
    exact, prefix, every = house.on(pattern="document.signed"), house.on(pattern="document.*"), house.on()
    for n, type in enumerate(("document.signed", "document.viewed", "documents.x", "invoice.paid")):
        house.receive(f"evt_{n}", type)
    house.work()
    assert [len(seen) for seen in (exact, prefix, every)] == [1, 2, 4]


def test_a_failing_handler_is_undone_tried_again_with_backoff_and_dead_in_the_end(houses):
    house = houses(backoff=QUICK)
    seen = house.on(lambda event: 1 / 0)
    house.receive("evt_1")
    waits = []
    for _ in range(10):
        house.work()
        (event,) = house.events()
        if event.state == "dead":
            break
        due = house.sql("select due_at from surehook_inbox_runs")[0][0]
        waits.append(due - house.clock.at)
        house.clock.passes(waits[-1] / 1000 - 0.001)
        assert house.work() == 0  # not before its time
        house.clock.passes(0.001)
    assert waits == [1_000, 2_000]
    assert (len(seen), event.attempts, event.code) == (3, 3, "handler_failed")
    assert "ZeroDivisionError" in event.error
    assert house.effects() == []


def test_one_that_fails_spoils_nothing_for_those_beside_it(house):
    house.on(lambda event: 1 / 0 if event.id == "evt_3" else None)
    for n in range(6):
        house.receive(f"evt_{n}")
    house.work()
    assert house.effects() == [f"evt_{n}" for n in range(6) if n != 3]
    assert house.states()["evt_3"] == "accepted"


@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_an_error_that_a_handler_swallowed_undoes_its_work_and_nobody_elses(
    ground_of, runner, kind, count, place
):
    """On PostgreSQL the transaction is lost with the first error."""
    house = House(*ground_of("postgresql", kind), runner).prepare()
    bad = f"evt_{min(place, count - 1)}"
    wrong = text("insert into nowhere values (1)")

    def blocking(event: Any, tx: Any) -> None:
        house.write(tx, event.id)
        if event.id == bad:
            with suppress(DBAPIError):
                tx.execute(wrong)

    async def waiting(event: Any, tx: Any) -> None:
        await house.write(tx, event.id)
        if event.id == bad:
            with suppress(DBAPIError):
                await tx.execute(wrong)

    house.inbox.on("partner")(blocking if kind == "sync" else waiting)
    for n in range(count):
        house.receive(f"evt_{n}")
    house.work()
    assert house.effects() == [f"evt_{n}" for n in range(count) if f"evt_{n}" != bad]
    assert [id for id, state in house.states().items() if state != "finalized"] == [bad]
    assert "aborted" in house.events(state="accepted")[0].error
    house.close()


@pytest.mark.parametrize("how", ["returned", "raised"])
def test_later_undoes_waits_and_does_not_count(house, how):
    ready = []

    def effect(event):
        if not ready:
            said = Later("30s", "the file is not there yet")
            if how == "raised":
                raise said
            return said
        return None

    house.on(effect)
    house.receive("evt_1")
    for _ in range(20):  # more often than any number of attempts
        house.work()
        house.clock.passes(30)
    assert (house.effects(), house.events()[0].code) == ([], "later")
    ready.append(True)
    house.work()
    assert (house.effects(), house.events()[0].attempts) == (["evt_1"], 1)


def test_ignore_and_refuse_are_recorded_as_what_they_are(house):
    said = {"evt_1": Ignore("not ours"), "evt_2": Refuse("bad_amount", "negative")}
    house.on(lambda event: said[event.id])
    for event_id in said:
        house.receive(event_id)
    house.work()
    found = {one.id: (one.state, one.code, one.error) for one in house.events()}
    assert found == {
        "evt_1": ("ignored", "ignored", "not ours"),
        "evt_2": ("rejected", "bad_amount", "negative"),
    }
    assert house.effects() == []


def test_a_handler_that_commits_is_refused_before_its_effects_stand(house):
    committed = []

    def blocking(event, tx):
        house.write(tx, "evt_1")
        committed.append(event)
        tx.commit()

    async def waiting(event, tx):
        await house.write(tx, "evt_1")
        committed.append(event)
        await tx.commit()

    house.inbox.on("partner", "document.*")(blocking if house.kind == "sync" else waiting)
    house.on(pattern="invoice.*")
    house.receive("evt_1")
    house.receive("evt_2", "invoice.paid")
    house.work()
    assert committed
    assert house.effects() == ["evt_2"]
    assert house.states() == {"evt_1": "accepted", "evt_2": "finalized"}


# -- leases -----------------------------------------------------------------------------------------------------


def claimed(house, limit=64, token=b"t" * 16, lease_ms=60_000):
    return house.do(
        house.inbox.store.run(
            lambda transaction: transaction.claim(
                now=house.clock.at, lease_ms=lease_ms, token=token, limit=limit
            )
        )
    )


def test_what_is_leased_is_nobody_elses_until_the_lease_lapses(house):
    house.on()
    house.receive("evt_1")
    assert [run.event_id for run in claimed(house)] == ["evt_1"]
    assert house.work() == 0
    house.clock.passes(61)
    house.work()
    assert house.effects() == ["evt_1"]
    assert house.events()[0].attempts == 2


def test_a_worker_that_lost_its_lease_does_nothing(house):
    house.on()
    house.receive("evt_1")
    runs = claimed(house)
    house.clock.passes(61)
    house.work()  # another one has it and finishes it
    done = house.do(house.inbox.store.run(house.inbox.transactions.process_work(runs, b"t" * 16)))
    assert (done.settlements, done.lost) == ([], 1)
    assert house.effects() == ["evt_1"]


def test_what_kills_its_process_ends_as_dead_and_does_not_take_its_neighbours_along(houses):
    house = houses(backoff=QUICK, rules=Rules(batch=10))
    house.on()
    for n in range(5):
        house.receive(f"evt_{n}")
    token = b"t" * 16
    for _ in range(3):
        while runs := claimed(house):
            if any(run.event_id == "evt_0" for run in runs):
                break  # the handler of this one ends the process, and all that was leased with it
            house.do(house.inbox.store.run(house.inbox.transactions.process_work(runs, token)))
        house.clock.passes(61)
    house.work()
    assert house.states()["evt_0"] == "dead"
    assert house.events(id="evt_0")[0].code == "attempts_exhausted"
    assert house.effects() == ["evt_1", "evt_2", "evt_3", "evt_4"]


# -- words of others, replays -----------------------------------------------------------------------------------


def test_processed_waits_for_a_word_that_may_come_from_another_process(house):
    house.on(final=False)
    house.receive("evt_1")
    house.work()
    (event,) = house.events()
    assert (event.state, event.finalized_at) == ("processed", None)
    other = house.twin()
    assert other.do(other.inbox.finalize(event.ref)) is True
    assert other.do(other.inbox.reject(event.ref, "too_late")) is False
    other.close()
    assert house.states() == {"evt_1": "finalized"}


def test_a_rejected_event_stays_reprocessable(house):
    seen = house.on(final=False)
    house.receive("evt_1")
    house.work()
    ref = house.events()[0].ref
    assert house.do(house.inbox.reject(ref, "identity_not_proven", "certificate chain ends nowhere"))
    (event,) = house.events(state="rejected")
    assert (event.code, event.error) == ("identity_not_proven", "certificate chain ends nowhere")
    assert house.do(house.inbox.replay(reason="certificate arrived", state="rejected")) == 1
    house.work()
    assert house.do(house.inbox.finalize(ref))
    assert [event.replay for event in seen] == [0, 1]


def test_a_replay_is_a_reference_and_changes_nothing_of_the_original(house):
    house.on()
    for n in range(4):
        house.receive(f"evt_{n}", "invoice.paid" if n % 2 else "document.signed")
    house.work()
    tables = "surehook_inbox_requests", "surehook_inbox_events"
    before = [house.sql(f"select * from {table} order by id") for table in tables]
    first = house.sql("select * from surehook_inbox_runs order by id")
    house.clock.passes(60)
    assert house.do(house.inbox.replay(reason="a bug was mended", type="invoice.*")) == 2
    house.work()
    assert [house.sql(f"select * from {table} order by id") for table in tables] == before
    assert house.sql("select * from surehook_inbox_runs where number = 0 order by id") == first
    assert house.effects() == ["evt_0", "evt_1", "evt_1", "evt_2", "evt_3", "evt_3"]
    assert house.sql("select distinct reason from surehook_inbox_runs where number = 1") == [
        ("a bug was mended",)
    ]


def test_an_event_that_is_still_open_is_not_replayed(house):
    house.on()
    house.receive("evt_1")
    assert house.do(house.inbox.replay(reason="impatience", source="partner")) == 0


def test_a_changed_result_on_reprocessing_is_reported(house):
    answer = {"total": 1}
    house.on(lambda event: dict(answer))
    house.receive("evt_1")
    house.work()
    house.do(house.inbox.replay(reason="again", source="partner"))
    house.work()
    assert house.events()[0].changed is False
    answer["total"] = 2
    house.do(house.inbox.replay(reason="again", source="partner"))
    house.work()
    assert (house.events()[0].changed, house.events()[0].replay) == (True, 2)


def test_dedupe_outlives_bodies_and_what_is_open_is_never_removed(house):
    house.on(lambda event: Later("40d") if event.id == "evt_2" else None, pattern="document.*")
    house.receive("evt_1")
    house.work()
    house.receive("evt_2", "other")
    house.receive("evt_3", "document.x")
    house.sql("update surehook_inbox_runs set due_at = due_at + 8640000000 where attempts = 0")
    house.clock.passes(31 * 86_400)
    pruned = house.do(house.inbox.prune())
    assert (pruned.requests, pruned.events) == (1, 0)
    assert house.receive("evt_1").status == 200
    assert house.inbox.watch.events["partner", "duplicate"] == 1
    house.clock.passes(60 * 86_400)
    assert house.do(house.inbox.prune()).events == 1
    assert set(house.states()) == {"evt_2", "evt_3"}


def test_what_was_accepted_before_the_clock_was_set_back_is_done_at_once_and_no_retry_is(houses):
    house = houses(backoff=QUICK)
    house.on(lambda event: 1 / 0 if event.id == "evt_1" and event.attempt == 1 else None)
    house.receive("evt_1")
    house.work()
    house.clock.passes(0.5)
    house.receive("evt_2")
    house.clock.passes(-3600)
    house.receive("evt_3")
    house.work()
    assert house.states() == {"evt_1": "accepted", "evt_2": "finalized", "evt_3": "finalized"}
    house.clock.passes(3602)
    house.work()
    assert house.states()["evt_1"] == "finalized"


def test_a_dead_worker_s_lease_is_not_longer_for_a_clock_that_was_set_back(house):
    house.on()
    house.receive("evt_1")
    house.do(house.inbox.store.run(house.inbox.transactions.claim_work(b"d" * 16)))
    house.clock.passes(-3_600)
    house.work()
    assert house.effects() == ["evt_1"]


def test_a_lease_that_was_given_now_is_not_taken_for_one(house):
    house.on()
    house.receive("evt_1")
    house.do(house.inbox.store.run(house.inbox.transactions.claim_work(b"d" * 16)))
    house.work()
    assert house.effects() == []


@pytest.mark.parametrize("tenant", ["acme ", " acme"])
def test_a_tenant_with_spaces_around_it_is_refused(houses, tenant):
    """MariaDB takes it for the same as without those at its end."""
    house = houses(sources=[partner(tenant=Field("tenant"))])
    answer = house.receive("evt_1", tenant=tenant)
    assert (answer.status, json.loads(answer.body)["code"]) == (422, "malformed")
    assert house.receive("evt_1", tenant="acme").status == 200
    with pytest.raises(SourceError, match="no spaces around"):
        partner(tenant=tenant)


def test_an_event_that_leads_back_to_itself_is_let_go(house):
    """By an error in its body, whose traceback has the frames of the worker, and so what was prepared for the event."""
    kept: list[weakref.ref[Kept]] = []

    @house.inbox.on("partner")
    def keeps(event, tx):
        try:
            raise ValueError
        except ValueError as error:
            event.body["error"], event.body["kept"] = error, Kept()
            kept.append(weakref.ref(event.body["kept"]))

    for n in range(10):
        house.receive(f"evt_{n}")
    house.work()
    gc.collect()
    assert [one() for one in kept] == [None] * 10


class Kept:
    """Something of an application's."""
