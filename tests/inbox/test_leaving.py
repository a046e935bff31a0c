"""Events that had waited and whose effects cannot be made: each is tried again by itself, none is lost by that, none blamed for it.

And documents for which time passes: none goes on without what came in time and was not processed yet.
"""

from __future__ import annotations

import json
import os
from collections import Counter

import pytest
from msgspec import structs

from surehook.inbox import Backoff, Rules
from surehook.inbox.runs_in_hand import Asleep, Owed
from surehook.inbox.workflow import Workflow, parse_table, render_table
from surehook.ports.inbox import Contended
from tests.inbox.house import House, known_as_quick, message, partner, partner_named
from tests.inbox.test_documents import BUFFER, FIELDS, STRICT, table
from tests.inbox.test_ways_out import lines

EACH_SECOND = Backoff(first_s=1, factor=1, max_s=1, attempts=9, jitter=0)
EACH_SECOND_OF_FOUR = Backoff(first_s=1, factor=1, max_s=1, attempts=4, jitter=0)
KEEP = "keep that state in the table for as long as documents are in it, or process these with a table that has it"
TYPES = ("sent", "viewed", "signed", "countersigned", "completed")


def followed(houses, order, fields=FIELDS, **options):
    house = houses(**{"backoff": EACH_SECOND, **options})
    house.inbox.follow(table(fields=fields, **order), "*")
    return house


def tell(house, *numbers, **data):
    for number in numbers:
        told = house.receive(
            f"evt_{number}", f"document.{TYPES[number - 1]}", document="doc_1", n=number, **data
        )
        assert told.status == 200


def tell_from(house, source, event_id, number):
    """A message of another source than `partner`, or of an id of its own."""
    data = {"document": "doc_1", "n": number}
    _, body = message(event_id, f"document.{TYPES[number - 1]}", **data)
    assert house.send(event_id, body, source=source).status == 200


def failing(*names, times=1):
    """An effect that fails so often for each of these events."""
    seen: Counter[str] = Counter()

    def effect(event):
        seen[event.id] += 1
        if event.id in names and seen[event.id] <= times:
            raise ValueError("not now")

    return effect


def goes_on(house, seconds=10):
    for _ in range(seconds):
        house.clock.passes(1)
        house.work()


def ended(house):
    return {one.id: (one.state, one.attempts) for one in house.events()}


class TestAFailureGivesNoNumberUp:
    """The wait of two events was over, and the first failed once: its number was given up for the second, and it was stale."""

    @pytest.mark.parametrize("fails", [("evt_3",), ("evt_5",), ("evt_3", "evt_5")], ids=str)
    @pytest.mark.parametrize("times", [1, 3])
    def test_as_waits_are_over(self, houses, fails, times):
        house = followed(houses, BUFFER)
        house.on(failing(*fails, times=times))
        tell(house, 1, 3, 5)
        house.work()
        house.clock.passes(61)
        house.work()
        goes_on(house)
        assert house.effects() == ["evt_1", "evt_3", "evt_5"], lines(house)
        assert {one: state for one, (state, _) in ended(house).items()} == dict.fromkeys(
            ("evt_1", "evt_3", "evt_5"), "finalized"
        )

    def test_however_often_it_fails(self, houses):
        """Each time it is waited for anew: its attempts are bounded, and the wait of the other was over long ago."""
        house = followed(houses, BUFFER, backoff=Backoff(first_s=50, factor=1, jitter=0))
        house.on(failing("evt_3", times=4))
        tell(house, 1, 3, 5)
        house.work()
        for _ in range(7):
            house.clock.passes(51)
            house.work()
        assert house.effects() == ["evt_1", "evt_3", "evt_5"], lines(house)

    def test_that_failed_as_its_turn_came(self, houses):
        """It never waited itself; what came behind it had, for longer than the wait."""
        house = followed(houses, BUFFER, backoff=Backoff(first_s=50, factor=1, jitter=0))
        house.on(failing("evt_1", "evt_3", times=3))
        tell(house, 1, 2, 3, 5)
        for _ in range(9):
            house.work()
            house.clock.passes(51)
        assert house.effects() == ["evt_1", "evt_2", "evt_3", "evt_5"], lines(house)

    def test_whose_transaction_is_refused(self, houses, monkeypatch):
        house = followed(houses, BUFFER, backoff=Backoff(first_s=50, factor=1, jitter=0))
        house.error = ValueError("a deferred constraint")
        refuse(monkeypatch, house, "evt_2", times=6)
        tell(house, 1, 2, 3)
        for _ in range(5):
            house.work()
            house.clock.passes(51)
        assert house.effects() == ["evt_1", "evt_2", "evt_3"], lines(house)

    def test_until_it_is_dead(self, houses):
        """Then it is missing: what waits for it goes on after its time, and a replay of it is late."""
        house = followed(houses, BUFFER, backoff=Backoff(first_s=50, factor=1, attempts=2, jitter=0))
        house.on(failing("evt_1", times=9))
        tell(house, 1, 2)
        house.work()
        house.clock.passes(51)
        house.work()
        assert (ended(house)["evt_1"], house.effects()) == (("dead", 2), [])
        house.clock.passes(61)
        house.work()
        assert house.effects() == ["evt_2"]

    def test_as_a_token_lets_another_go_on(self, houses):
        fields = {"document": "document", "sequence": "n", "token": "token"}
        house = followed(houses, STRICT, type(FIELDS)(**fields))
        house.on(failing("evt_3"))
        tell(house, 1, 3)
        house.work()
        house.do(house.inbox.grant("doc_1", token="by hand", by="ana", reason="signed again"))
        tell(house, 5, token="by hand")
        house.work()
        assert ended(house)["evt_5"] == ("held", 1), "as long as the other is tried again"
        goes_on(house, 3)
        assert house.effects() == ["evt_1", "evt_3", "evt_5"]


class TestSoToo:
    @pytest.fixture(params=[("sqlite", "sync"), ("postgresql", "async")], ids="-".join)
    def ground(self, request, ground_of):
        return ground_of(*request.param)

    def test_where_the_source_of_one_is_not_known_here(self, houses):
        both = [partner(), partner_named("other")]
        house = houses(sources=both, backoff=EACH_SECOND)
        house.inbox.follow(table(**BUFFER), "*")
        house.on(source="*")
        tell(house, 1)
        tell_from(house, "other", "evt_3", 3)
        tell(house, 5)
        house.work()
        older = House(house.kind, house.url, house._runner, clock=house.clock, backoff=EACH_SECOND)
        older.inbox.follow(table(**BUFFER), "partner")
        older.on()
        house.clock.passes(61)
        older.work()
        assert ended(house)["evt_3"] == ("parked", 0)
        older.close()
        house.clock.passes(11)
        house.work()
        assert house.effects() == ["evt_1", "evt_3", "evt_5"]


class TestItHasWaitedSinceItCame:
    def test_one_that_was_passed_over_to_does_not_wait_once_more(self, houses):
        house = followed(houses, BUFFER)
        house.on(failing("evt_3"))
        tell(house, 1, 3)
        house.work()
        house.clock.passes(61)
        house.work()
        assert ended(house)["evt_3"] == ("accepted", 1)
        goes_on(house, 2)
        assert ended(house)["evt_3"] == ("finalized", 2)

    def test_nor_one_that_a_person_released(self, houses):
        house = followed(houses, BUFFER)
        house.on(failing("evt_5"))
        assert house.receive("evt_5", "document.completed", document="doc_1").status == 200
        house.work()
        assert house.do(house.inbox.release("doc_1", by="ana", reason="seen on paper"))
        house.work()
        assert any("evt_5 was released by ana" in one for one in lines(house))
        goes_on(house, 2)
        assert ended(house)["evt_5"] == ("finalized", 2)

    def test_one_that_was_let_go_has_its_turn_as_soon_as_what_it_waits_for_is_dead(self, houses):
        """It was held for three days, to the end of its wait."""
        of = table(mode="buffer", wait_s=259_200.0, then="skip")
        moves = of.moves | {"document.viewed": {"draft": "viewed", "sent": "viewed"}}
        house = houses(backoff=EACH_SECOND_OF_FOUR)
        house.inbox.follow(structs.replace(of, moves=moves), "*")
        fails = {"evt_3": 1, "evt_2": 4}

        def effect(event):
            if fails.get(event.id, 0):
                fails[event.id] -= 1
                raise ValueError("not now")

        house.on(effect)
        house.receive("evt_3", "document.signed", document="doc_1")
        house.work()
        house.do(house.inbox.release("doc_1", by="ana", reason="it was sent on paper"))
        house.work()
        house.receive("evt_2", "document.viewed", document="doc_1")
        house.work()
        goes_on(house, 2)
        assert house.states() == {"evt_2": "accepted", "evt_3": "held"}
        house.receive("evt_1", "document.sent", document="doc_1")
        house.work()
        goes_on(house)
        assert house.states() == {"evt_1": "finalized", "evt_2": "dead", "evt_3": "finalized"}


class TestWhatCameInTime:
    """A predecessor that was stored within the wait, while no worker was there, was stale when one came back."""

    @pytest.mark.parametrize("order", [BUFFER, {"mode": "strict", "wait_s": 60.0}], ids=["skip", "refuse"])
    def test_is_in_time_though_it_is_processed_later(self, houses, order):
        house = followed(houses, order)
        house.on()
        tell(house, 1, 3)
        house.work()
        house.clock.passes(30)
        tell(house, 2)
        house.clock.passes(40)
        house.work()
        assert house.effects() == ["evt_1", "evt_2", "evt_3"]

    @pytest.mark.parametrize(
        "theirs",
        [{}, {"lease_ms": 120_000, "ahead_ms": 5_000}, {"ahead_ms": 500}, {"ahead_ms": -20_000}],
        ids=str,
    )
    def test_another_event_of_the_document_ends_no_wait(self, houses, theirs):
        """One worker had the later one first; the other is still to be handed in. It may be another process's, with a longer lease
        or a clock of its own."""
        house = followed(houses, BUFFER)
        house.on()
        tell(house, 1, 3)
        house.work()
        house.clock.passes(30)
        tell(house, 2)
        elsewhere = claimed(house, b"e" * 16, **theirs)
        house.clock.passes(31)
        tell(house, 5)
        house.work()
        assert house.effects() == ["evt_1"], "nothing goes on before what another worker has"
        given_back(house, elsewhere, b"e" * 16)
        house.work()
        assert house.effects() == ["evt_1", "evt_2", "evt_3"]

    def test_for_a_later_wait_though_an_earlier_one_is_over(self, houses):
        """Both were over as the process came back, and 4 was in time for 5 alone."""
        house = followed(houses, BUFFER)
        house.on()
        tell(house, 2)
        house.work()
        house.clock.passes(30)
        tell(house, 5)
        house.work()
        house.clock.passes(40)
        tell(house, 4)
        elsewhere = claimed(house, b"e" * 16, lease_ms=120_000)
        house.clock.passes(30)
        house.work()
        assert house.effects() == ["evt_2"]
        given_back(house, elsewhere, b"e" * 16)
        house.work()
        assert house.effects() == ["evt_2", "evt_4", "evt_5"]

    def test_whoever_is_let_go_with_others_waits_for_those_before_it(self, houses):
        """All are due from then on, in the order in which they came; and nobody was there for longer than they are waited for."""
        house = followed(houses, BUFFER, rules=Rules(batch=1))
        house.on()
        tell(house, 3, 2)
        house.work()
        house.clock.passes(61)
        house.turn(house.inbox.worker())
        assert house.states() == {"evt_2": "accepted", "evt_3": "accepted"}
        house.clock.passes(600)
        house.work()
        assert house.effects() == ["evt_2", "evt_3"]

    def test_what_a_process_had_that_ended_long_ago_is_in_time(self, houses):
        """It is due since its lease lapsed: behind others that came later, of which there are many."""
        house = followed(houses, {"mode": "strict", "wait_s": 60.0}, rules=Rules(batch=1))
        house.on()
        tell(house, 1, 3)
        house.work()
        house.clock.passes(30)
        tell(house, 2)
        claimed(house, b"e" * 16)
        house.clock.passes(50)
        for number in range(4):
            house.receive(f"other_{number}", "plain", document="doc_2")
        house.clock.passes(3_600)
        house.work()
        assert [one for one in house.effects() if one.startswith("evt")] == ["evt_1", "evt_2", "evt_3"]

    def failed_once(self, houses, **options):
        """An event that failed, and for which the next one waits longer than it may: no worker was there."""
        order = {"mode": "strict", "wait_s": 60.0}
        house = followed(houses, order, backoff=Backoff(first_s=1, factor=1, jitter=0), **options)
        house.on(failing("evt_2"))
        tell(house, 1, 3)
        house.work()
        tell(house, 2)
        house.work()
        assert ended(house)["evt_2"] == ("accepted", 1)
        house.clock.passes(130)
        return house

    def test_one_that_failed_is_waited_for_while_it_is_tried_again(self, houses):
        house = self.failed_once(houses)
        elsewhere = claimed(house, b"e" * 16)
        assert [run.event_id for run in elsewhere] == ["evt_2"]
        house.clock.passes(0.2)
        house.work()
        assert house.effects() == ["evt_1"], "the other worker is about to handle it"
        given_back(house, elsewhere, b"e" * 16)
        house.work()
        assert house.effects() == ["evt_1", "evt_2", "evt_3"]

    def test_is_in_time_for_whoever_was_frozen_past_its_lease(self, houses):
        """Its run was taken over; and it had leased the document, too."""
        house = followed(houses, BUFFER)
        house.on()
        tell(house, 1, 3)
        house.work()
        house.clock.passes(59.9)
        tell(house, 2)
        house.clock.passes(0.2)
        steps = house.inbox.transactions
        frozen = house.do(house.inbox.store.run(steps.claim_work(b"f" * 16)))
        assert ([run.event_id for run in frozen.runs], len(frozen.waking)) == (["evt_2"], 1)
        house.clock.passes(61)
        assert claimed(house, b"e" * 16)
        done = house.do(house.inbox.store.run(steps.process_work(frozen.runs, b"f" * 16)))
        assert not done.is_all
        house.do(house.inbox.store.run(steps.process_work((), b"", frozen.leased)))
        assert house.states() == {"evt_1": "finalized", "evt_2": "accepted", "evt_3": "held"}

    @pytest.mark.parametrize("ground", [("sqlite", "sync")], ids="-".join, indirect=True)
    def test_is_in_time_where_it_is_put_off_as_its_batch_is_done_run_by_run(self, houses, monkeypatch):
        house = followed(houses, BUFFER)
        house.on()
        known_as_quick(house.inbox)
        tell(house, 1, 3)
        house.work()
        house.clock.passes(59.9)
        house.receive("one", "document.sent", document="doc_2", n=1)
        house.receive("two", "document.sent", document="doc_3", n=1)
        tell(house, 2)
        house.clock.passes(0.2)
        house.inbox.transactions.busy.enter(b"o" * 16, [(("contract", "", "doc_1"), b"")])
        run, calls = house.inbox.store.run, []

        def refusing(work):
            def refused(transaction):
                work(transaction)
                raise Contended("a commit is refused")

            calls.append(work)
            return run(refused if len(calls) == 2 else work)

        worker = house.inbox.worker()
        monkeypatch.setattr(worker, "_store", type("Refusing", (), {"run": staticmethod(refusing)}))
        house.turn(worker)
        assert house.effects() == ["evt_1", "one", "two"]
        assert house.states()["evt_3"] == "held"

    @pytest.mark.parametrize("pause_s", [0, 300])
    def test_so_it_is_once_it_is_given_back(self, houses, pause_s):
        """Its document knows an instant long ago, and other events were to be handled first."""
        house = self.failed_once(houses, rules=Rules(batch=1))
        house.receive("other", "plain", document="doc_2")
        house.clock.passes(0.2)
        given_back(house, claimed(house, b"e" * 16), b"e" * 16)
        house.clock.passes(pause_s)
        house.work()
        assert [one for one in house.effects() if one.startswith("evt")] == ["evt_1", "evt_2", "evt_3"]

    def test_so_it_is_while_nobody_can_say_whether_its_token_is_good(self, houses):
        """Asked within each claim, that ended them all."""

        house = houses(backoff=EACH_SECOND)
        away = []

        def asked(document, token):
            if away:
                raise ValueError("the service is away")
            return False

        fields = structs.replace(FIELDS, token="token")
        house.inbox.follow(Workflow(table(fields=fields, mode="strict", wait_s=60.0), is_token=asked), "*")
        house.on(failing("evt_2"))
        tell(house, 1, 3)
        tell(house, 2, token="signed")
        house.work()
        house.clock.passes(130)
        elsewhere = claimed(house, b"e" * 16)
        away.append(True)
        house.clock.passes(0.2)
        house.work()
        assert house.effects() == ["evt_1"]
        away.clear()
        given_back(house, elsewhere, b"e" * 16)
        house.work()
        assert house.effects() == ["evt_1", "evt_2", "evt_3"]

    @pytest.mark.parametrize("away_s", [61, 3_600])
    def test_so_it_is_where_its_process_has_ended(self, houses, away_s):
        house = self.failed_once(houses, rules=Rules(batch=1))
        claimed(house, b"e" * 16)
        house.clock.passes(30)
        for number in range(4):
            house.receive(f"other_{number}", "plain", document="doc_2")
        house.clock.passes(away_s - 30)
        house.work()
        assert [one for one in house.effects() if one.startswith("evt")] == ["evt_1", "evt_2", "evt_3"]

    def test_one_that_is_tried_again_holds_up_no_other_document(self, houses):
        """Its time is its own: others go on beside it."""
        house = followed(houses, BUFFER)
        house.on(failing("other", times=99))
        house.receive("other", "plain", document="doc_2")
        tell(house, 1, 3)
        house.work()
        house.clock.passes(61)
        house.work()
        assert house.effects() == ["evt_1", "evt_3"]


def refuse(monkeypatch, house, name, times=99):
    """Refuse the commit of so many transactions in which this event's handler was called, with `house.error`."""
    heard: list[str] = []
    seen, left = house.on(lambda event: heard.append(event.id)), [times]
    run = house.inbox.store.run

    def refusing(work, *rest):
        def refused(transaction):
            heard.clear()
            result = work(transaction)
            if name in heard and left[0] > 0:
                left[0] -= 1
                raise house.error
            return result

        return run(refused, *rest)

    monkeypatch.setattr(house.inbox.store, "run", refusing)
    return seen


def claimed(house, token, *, limit=100, lease_ms=60_000, ahead_ms=0):
    """What another worker has claimed for the first time."""
    bounds = {"now": house.clock.at + ahead_ms, "lease_ms": lease_ms, "token": token, "limit": limit}
    return house.do(house.inbox.store.run(lambda transaction: transaction.claim(**bounds)))


def given_back(house, runs, token):
    steps = house.inbox.transactions
    house.do(house.inbox.store.run(steps.release_work(*Owed.of(runs, token))))


class TestEachFailureIsItsOwnEvents:
    @pytest.fixture
    def house(self, houses):
        return followed(houses, STRICT, backoff=Backoff(first_s=1, factor=1, max_s=1, attempts=2, jitter=0))

    @pytest.fixture(params=[("sqlite", "sync")], ids="-".join)
    def ground(self, request, ground_of):
        return ground_of(*request.param)

    @pytest.fixture
    def refuses(self, house, monkeypatch):
        """The commit of a transaction in which this event's handler was called is refused."""
        return refuse(monkeypatch, house, "evt_2")

    @pytest.mark.parametrize(
        "error", [ValueError("a deferred constraint"), Contended("a lock")], ids=["refused", "contended"]
    )
    def test_a_commit_that_is_refused(self, house, refuses, error):
        """The event that let the other go on was charged with it, and died."""
        house.error = error
        tell(house, 2)
        house.work()
        tell(house, 1)
        house.work()
        goes_on(house, 3)
        assert ended(house)["evt_1"] == ("finalized", 1)
        assert ended(house)["evt_2"] == ("dead", 2)
        assert house.effects() == ["evt_1"]

    @pytest.mark.parametrize("wait", [True, False], ids=["as its wait ends", "as its predecessor comes"])
    def test_a_handler_that_ends_its_process(self, houses, wait):
        """By a wait it was never counted, so it ended each process for ever; by its predecessor that was given up."""
        house = followed(houses, BUFFER)
        house.on()
        tell(house, *((1, 3) if wait else (3,)))
        house.work()
        if wait:
            house.clock.passes(61)
        else:
            tell(house, 1, 2)
        ends = 0
        for _ in range(8):
            ends += died(house)
            house.clock.passes(3_600)
        house.work()
        assert ends <= 4, "three attempts of its own, and one as it had waited"
        last = ended(house)
        assert last.pop("evt_3")[0] == "dead"
        assert {state for state, _ in last.values()} == {"finalized"}


def died(house) -> bool:
    """Work in a process of its own, which the handler of the third event ends; whether it did."""
    pid = os.fork()
    if pid == 0:
        try:
            again = House(
                house.kind, house.url, house._runner, clock=house.clock,
                backoff=Backoff(first_s=1, factor=1, max_s=1, attempts=3, jitter=0),
            )  # fmt: skip
            again.inbox.follow(table(**BUFFER), "*")
            again.on(lambda event: os._exit(9) if event.id == "evt_3" else None)
            again.work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9


class TestTwoSourcesOfOneWorkflow:
    def test_an_id_of_one_is_no_repeat_of_the_others(self, houses):
        """Both number their events from one: the second was ignored as a duplicate."""
        house = followed(houses, STRICT, sources=[partner(), partner_named("other")])
        house.on(source="*")
        tell(house, 1)
        tell_from(house, "other", "evt_1", 2)
        tell(house, 3)
        house.work()
        assert sorted(one.state for one in house.events()) == ["finalized"] * 3
        assert Counter(house.effects()) == {"evt_1": 2, "evt_3": 1}

    def test_so_too_where_both_wait(self, houses):
        house = followed(houses, STRICT, sources=[partner(), partner_named("other")])
        seen = house.on(source="*")
        tell_from(house, "partner", "same", 2)
        tell_from(house, "other", "same", 3)
        house.work()
        tell(house, 1)
        house.work()
        assert [(one.id, one.source) for one in seen] == [
            ("evt_1", "partner"),
            ("same", "partner"),
            ("same", "other"),
        ]
        assert {one.state for one in house.events()} == {"finalized"}


def released(houses):
    """A document that stood still, and goes on as a worker comes to it."""
    house = followed(houses, STRICT)
    house.on()
    tell(house, 1, 3)
    house.work()
    assert house.do(house.inbox.release("doc_1", by="ana", reason="it will not come"))
    return house


class TestADocumentThatCannotGoOn:
    def test_is_not_tried_at_once_again(self, houses, monkeypatch):
        """Fifty turns in 0.2 s, each of them refused."""
        house = followed(houses, STRICT)
        house.on(final=False)
        tell(house, 1, 2)
        house.work()
        house.do(house.inbox.reject(house.events(id="evt_2")[0].ref, "wrong"))
        wakes = []
        process = house.inbox.transactions.processor.process

        def refused(transaction, runs, token, waking=(), **options):
            if waking:
                wakes.append(house.clock.at)
                raise Contended("a lock")
            return process(transaction, runs, token, waking, **options)

        monkeypatch.setattr(house.inbox.transactions.processor, "process", refused)
        for _ in range(5):
            house.work()
        assert len(wakes) == 1
        goes_on(house, 8)
        assert [(at - wakes[0]) // 1000 for at in wakes] == [0, 1, 3, 7]

    def test_is_one_workers_until_its_lease_lapses(self, houses):
        """One whose process ends, or whose database is away, is not tried at once again."""
        house = released(houses)
        transactions = house.inbox.transactions

        def waking():
            return house.do(house.inbox.store.run(transactions.claim_work(transactions.token()))).waking

        assert list(waking()) == [("contract", "", "doc_1")]
        assert list(waking()) == []
        house.clock.passes(house.inbox.rules.lease_ms / 1000)
        assert list(waking()) == [("contract", "", "doc_1")]

    def test_gives_back_what_a_worker_does_not_come_to(self, houses):
        house = followed(houses, STRICT)
        house.on(final=False)
        tell(house, 1, 3)
        house.work()
        assert house.do(house.inbox.release("doc_1", by="ana", reason="it will not come"))
        worker = house.inbox.worker()
        worker.is_stopping = True
        house.turn(worker)
        house.work()
        assert house.effects() == ["evt_1", "evt_3"], "at once, and not after the lease"

    def test_is_not_given_back_by_whoever_has_lost_its_lease(self, houses):
        """One that another worker had put off since then went on at once."""
        house = released(houses)
        transactions = house.inbox.transactions
        frozen = house.do(house.inbox.store.run(transactions.claim_work(b"f" * 16)))
        house.sql("update surehook_inbox_documents set wake_at = wake_at + 3600000")
        asleep = Asleep(frozen.leased_until, frozen.waking)
        house.do(house.inbox.store.run(transactions.wake_again_work(asleep)))
        ((wake_at,),) = house.sql("select wake_at from surehook_inbox_documents")
        assert wake_at == frozen.leased_until + 3_600_000


class TestATableThatWasChanged:
    """Each document woke when its last decision had said, or never."""

    @pytest.mark.parametrize(
        ("before", "after", "seconds", "state"),
        [
            ({"mode": "strict", "then": "wait"}, {"mode": "strict", "wait_s": 60.0}, 61, "rejected"),
            ({"mode": "strict", "then": "wait"}, {"mode": "free"}, 0, "finalized"),
            ({"mode": "buffer", "wait_s": 86_400.0, "then": "skip"}, BUFFER, 61, "finalized"),
        ],
        ids=["it waited for ever", "it waited for numbers", "it waited for longer"],
    )
    def test_decides_anew_on_what_waits(self, houses, before, after, seconds, state):
        house = followed(houses, before)
        house.on()
        tell(house, 1, 3)
        house.work()
        house.clock.passes(seconds)
        new = house.twin(backoff=EACH_SECOND)
        new.inbox.follow(table(**after), "*")
        new.on()
        new.work()  # finds it …
        new.work()  # … and has it wake
        assert ended(new)["evt_3"][0] == state, lines(new)

    def test_lets_what_waits_go_on_in_its_order_where_there_is_none_any_more(self, houses):
        """Each had a transaction of its own, in the order in which they had come, and the first by number was stale."""
        house = followed(houses, STRICT)
        house.on()
        tell(house, 1, 5, 4, 3)
        house.work()
        new = house.twin(backoff=EACH_SECOND)
        new.inbox.follow(table(mode="free"), "*")
        seen = new.on()
        for _ in range(4):
            new.work()
        assert [event.id for event in seen] == ["evt_3", "evt_4", "evt_5"], lines(new)
        assert set(ended(new).values()) == {("finalized", 1)}

    def test_wakes_no_other_document(self, houses):
        house = followed(houses, BUFFER)
        house.on()
        tell(house, 1, 3)
        house.work()
        new = house.twin()
        new.inbox.follow(table(**BUFFER), "*")
        new.on()
        (before,) = wakes_at(new)
        new.work()
        assert wakes_at(new) == [before]
        assert before > new.clock.at

    def test_a_process_whose_table_lacks_a_state_soon_leaves_the_document_to_another(self, houses, caplog):
        """It was put off for an hour, however long that had been, and nothing said until when."""
        house = followed(houses, BUFFER)
        house.on()
        tell(house, 1, 3)
        house.work()
        other = house.twin(backoff=EACH_SECOND)
        other.inbox.follow(renamed(table(**BUFFER), "sent", "out"), "*")
        other.on()
        house.clock.passes(61)
        for _ in range(3):
            other.work()
            (at,) = wakes_at(other)
            assert other.clock.at < at <= other.clock.at + 4_000
            other.clock.passes(1)
        (line,) = [one for one in caplog.messages if "cannot go on" in one]
        assert "contract doc_1 cannot go on, and is put off until " in line
        assert line.endswith(f"; {KEEP}") and "\n" not in line
        house.clock.passes(4)
        house.work()
        assert house.effects() == ["evt_1", "evt_3"]

    def test_an_event_that_fails_by_such_a_table_says_what_to_do(self, houses):
        house = followed(houses, BUFFER)
        house.on()
        tell(house, 1)
        house.work()
        other = house.twin(backoff=EACH_SECOND)
        other.inbox.follow(renamed(table(**BUFFER), "sent", "out"), "*")
        tell(other, 2)
        other.work()
        other.close()
        (event,) = house.events(id="evt_2")
        assert event.code == "workflow_error"
        assert "the document is 'sent', which is no state of contract" in event.error
        assert event.error.endswith(f"\n  hint: {KEEP}\n")

    @pytest.mark.parametrize(
        "theirs",
        [{"mode": "strict", "then": "wait"}, {"mode": "strict", "wait_s": 86_400.0}],
        ids=["for ever", "longer"],
    )
    def test_nor_does_it_take_the_wait_from_those_that_can_decide(self, houses, theirs):
        """By its own table the event waited longer, or for ever: so it did."""
        house = followed(houses, {"mode": "strict", "wait_s": 60.0})
        house.on()
        tell(house, 1, 3)
        house.work()
        other = house.twin(backoff=EACH_SECOND)
        other.inbox.follow(renamed(table(**theirs), "sent", "out"), "*")
        other.on()
        house.clock.passes(61)
        other.work()
        house.clock.passes(62)
        house.work()
        assert ended(house)["evt_3"] == ("rejected", 1)

    def test_what_was_released_goes_on_as_soon_as_a_process_can(self, houses):
        house = followed(houses, STRICT)
        house.on()
        tell(house, 1, 3)
        house.work()
        other = house.twin(backoff=EACH_SECOND)
        other.inbox.follow(renamed(table(**STRICT), "sent", "out"), "*")
        other.on()
        assert other.do(other.inbox.release("doc_1", by="ana", reason="seen on paper"))
        other.work()
        house.clock.passes(1)
        house.work()
        assert house.effects() == ["evt_1", "evt_3"]


def renamed(of, state, name):
    """A table in which a state has another name."""
    text = render_table(of, "json").replace(f'"{state}"', f'"{name}"')
    data = {key: value for key, value in json.loads(text).items() if key != "digest"}
    return parse_table(json.dumps(data), "json")


def wakes_at(house):
    return [one for (one,) in house.sql("select wake_at from surehook_inbox_documents")]


def test_a_grant_wakes_the_event_that_carries_its_token(houses):
    """It had come before the grant, and waited until it was refused."""
    house = followed(houses, STRICT, type(FIELDS)(document="document", sequence="n", token="token"))
    house.on()
    tell(house, 1)
    tell(house, 3, token="agreed")
    house.work()
    house.do(house.inbox.grant("doc_1", token="agreed", by="ana", reason="signed again"))
    house.work()
    assert house.effects() == ["evt_1", "evt_3"]


def test_what_lets_others_go_on_and_fails_has_let_none_go(houses):
    """They left their line and waited anew each time: two lines of the journal each."""
    house = followed(houses, STRICT)
    house.on(failing("evt_1", times=4))
    tell(house, 2, 3)
    house.work()
    tell(house, 1)
    goes_on(house, 3)
    assert house.sql("select count(*) from surehook_inbox_steps") == [(2,)], lines(house)
    goes_on(house, 5)
    assert house.effects() == ["evt_1", "evt_2", "evt_3"]


def test_an_event_that_ends_with_its_process_gives_its_number_up(houses):
    """A corrected one of the same number was a conflict as long as the other was expected back."""
    house = followed(houses, STRICT)
    house.on(failing("evt_2"))
    tell(house, 1, 2)
    house.work()
    for _ in range(9):
        house.clock.passes(61)
        claimed(house, os.urandom(16))
    house.clock.passes(61)
    house.work()
    assert ended(house)["evt_2"][0] == "dead"
    tell_from(house, "partner", "corrected", 2)
    house.work()
    assert house.effects() == ["corrected", "evt_1"], lines(house)


def test_a_replay_of_a_move_that_was_taken_back_long_ago_moves_nothing(houses):
    """The document had forgotten it, and the handlers were called with the move that does not stand."""
    house = houses(backoff=EACH_SECOND)
    house.inbox.follow(table(memory=2, **STRICT), "partner")
    house.on(final=False)
    tell(house, 1, 2)
    house.work()
    house.do(house.inbox.reject(house.events(id="evt_2")[0].ref, "wrong"))
    tell(house, 3, 4)
    house.work()
    before = house.effects()
    assert house.do(house.inbox.replay(reason="once more", id="evt_2")) == 1
    house.work()
    assert (house.effects(), house.events(id="evt_2")[0].code) == (before, "stale")
