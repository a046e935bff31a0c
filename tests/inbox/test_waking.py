"""Documents for which time has passed: each goes on by itself, whatever becomes of the others."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from surehook.inbox import Backoff, Rules
from surehook.inbox.sql import claiming, waking
from surehook.ports.inbox import StoreUnavailable
from tests.inbox.house import known_as_quick
from tests.inbox.test_busy_documents import MINE, OTHER, received
from tests.inbox.test_documents import BUFFER, STRICT, followed, state
from tests.inbox.test_leaving import claimed
from tests.inbox.test_undoing import undoes

ONCE = "create table once (word varchar(9) unique deferrable initially deferred)"


def held(house, documents):
    """Documents that have moved, with an event that is held behind a gap."""
    for document in documents:
        house.receive(f"{document}-1", "document.sent", document=document, n=1)
        house.receive(f"{document}-3", "document.signed", document=document, n=3)
    house.work()
    for document in documents:
        house.do(house.inbox.release(document, by="ana", reason="it will not come"))


def turn(house):
    """One turn of a worker."""
    return house.turn(house.inbox.worker())


class TestPoison:
    @pytest.fixture(
        params=[pytest.param("sync", id="postgresql-sync"), pytest.param("async", id="postgresql-async")]
    )
    def ground(self, request, ground_of):
        return ground_of("postgresql", request.param)

    def test_one_whose_effect_cannot_be_committed_fails_by_itself_and_the_others_go_on(self, houses):
        """Its handler breaks a rule that the database looks after at the commit."""
        house = followed(houses, backoff=Backoff(first_s=1, factor=2, jitter=0))
        house.sql(ONCE)
        house.sql("insert into once values ('x')")
        broken = [True]

        def blocking(event, tx):
            if event.id == "doc_2-3" and broken:
                tx.execute(text("insert into once values ('x')"))

        async def waiting(event, tx):
            if event.id == "doc_2-3" and broken:
                await tx.execute(text("insert into once values ('x')"))

        house.inbox.on("partner")(blocking if house.kind == "sync" else waiting)
        held(house, ["doc_1", "doc_2", "doc_3"])
        house.receive("doc_4-1", "document.sent", document="doc_4", n=1)
        house.work()
        assert [state(house, f"doc_{n}") for n in (1, 2, 3, 4)] == ["signed", "sent", "signed", "sent"]
        for passes, tries in ((1, 2), (1, 2), (1, 3)):
            house.clock.passes(passes)
            house.work()
            (event,) = house.events(id="doc_2-3")
            assert (event.code, event.attempts) == ("commit_failed", tries)
        broken.clear()
        house.clock.passes(10)
        house.work()
        assert (state(house, "doc_2"), house.states()["doc_2-3"]) == ("signed", "finalized")


class Meanwhile:
    """A connection on which something is done after each of its statements: what others commit between two of them."""

    def __init__(self, connection, act):
        self._connection, self._act = connection, act

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def execute(self, *statement):
        found = self._connection.execute(*statement)
        rows = found.all()
        self._act(self._connection)
        return FrozenRows(rows)


class FrozenRows:
    """Rows that were read before something else was done."""

    def __init__(self, rows):
        self._rows = rows

    def all(self):
        return self._rows

    def scalar(self):
        return self._rows[0][0] if self._rows else None


class TestALook:
    @pytest.fixture(params=[("sqlite", "sync")], ids="-".join)
    def ground(self, request, ground_of):
        return ground_of(*request.param)

    def test_sees_all_runs_as_of_one_moment(self, houses, monkeypatch):
        """What another worker gave back between two statements, on PostgreSQL, was neither due nor anybody's."""
        house = followed(houses, BUFFER)
        house.on()
        for number, passes in ((1, 0), (4, 58), (2, 3)):
            received(house, number)
            if number != 2:
                house.work()
                house.clock.passes(passes)
        elsewhere = [run.id for run in claimed(house, MINE)]
        house.clock.passes(3)
        free = waking.free

        def meanwhile(connection, found, **bounds):
            def given_back(connection):
                claiming.release(connection, elsewhere, MINE, due_at=house.clock.at)

            return free(Meanwhile(connection, given_back), found, **bounds)

        with monkeypatch.context() as patched:
            patched.setattr(waking, "free", meanwhile)
            looked = house.do(house.inbox.store.run(house.inbox.transactions.claim_work(OTHER)))
        assert (looked.runs, looked.waking) == ([], {})


@pytest.mark.parametrize("ground", [("sqlite", "sync")], ids="-".join, indirect=True)
@pytest.mark.parametrize("beside", [["doc_9"], []], ids=["an event", "nothing else"])
def test_what_an_outage_kept_from_its_turn_has_it_after_that_and_not_after_a_lease(
    houses, monkeypatch, beside
):
    house = followed(houses, STRICT)
    house.on()
    known_as_quick(house.inbox)
    held(house, ["doc_1", "doc_2"])
    for document in beside:
        house.receive("evt_9", "document.sent", document=document, n=1)
    worker, outages = house.inbox.worker(), [StoreUnavailable("away for a moment")]
    works = worker._transactions.process_work

    def away(*given, **options):
        def refused(transaction):
            raise outages.pop()

        return refused if outages else works(*given, **options)

    monkeypatch.setattr(worker._transactions, "process_work", away)
    with pytest.raises(StoreUnavailable):
        house.turn(worker)
    while house.turn(worker) is None:
        pass
    assert set(house.states().values()) == {"finalized"}


def test_each_has_a_transaction_of_its_own_and_a_turn_ends_by_time(houses):
    """Half a second each to undo: all of forty in one transaction kept what they wrote locked for twenty seconds."""
    house = followed(houses, STRICT, rules=Rules(batch_s=1))
    seen = house.on(final=False)
    documents = [f"doc_{n}" for n in range(6)]
    for document in documents:
        house.receive(f"{document}-1", "document.sent", document=document, n=1)
    house.work()
    undone = undoes(house, lambda event: house.clock.passes(0.5))
    for document in documents:
        house.do(house.inbox.reject(house.events(id=f"{document}-1")[0].ref, "compliance"))
    moved = []
    house.inbox.observe(lambda one: moved.append((len(seen), len(undone))) if one.rule == "undone" else None)
    known_as_quick(house.inbox)
    house.receive("doc_9-1", "document.sent", document="doc_9", n=1)
    turn(house)
    assert moved == [(7, 1), (7, 2)], (
        "after what was claimed, one each and told after its commit, until a second is over"
    )
    assert sum(state(house, one) == "draft" for one in documents) == 2
    house.work()
    assert {state(house, one) for one in documents} == {"draft"}
