"""Handlers that never end: what they hold is let go, somebody takes their worker's place, and nothing of them is kept."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import text

from surehook.core import effects
from surehook.inbox import Backoff, Rules, pool
from surehook.inbox.calls import GivenUp, HandlerCalls
from surehook.inbox.sql import driver_connections, engines, stores
from surehook.inbox.sql.deferred_begin import Writer
from surehook.inbox.worker import Worker
from surehook.ports.inbox import Contended, StoreError
from tests.inbox.house import known_as_quick
from tests.inbox.test_documents import FIELDS, STRICT, table
from tests.inbox.test_timeouts import NEXT

INSERT = text("insert into effects (event_id) values (:id)")
DATABASES = ["sqlite", "postgresql", "mariadb"]
PATIENCE_S = 60


@pytest.fixture
def ground(request, ground_of):
    return ground_of(request.param, "sync")


def of(*databases):
    slow = pytest.mark.slow
    return pytest.mark.parametrize(
        "ground",
        [pytest.param(one, marks=[] if one == "sqlite" else slow, id=f"{one}-sync") for one in databases],
        indirect=True,
    )


class Hangs:
    """A handler that writes its row and hangs on the events `hang…`, until it is let go."""

    def __init__(self):
        self.began, self.go, self.came_back = threading.Event(), threading.Event(), threading.Event()
        self.errors = []

    def __call__(self, event, tx):
        tx.execute(INSERT, {"id": event.id})
        if event.id.startswith("hang"):
            self.began.set()
            self.go.wait(PATIENCE_S)
            try:
                tx.execute(INSERT, {"id": event.id + " again"})
            except Exception as error:
                self.errors.append(error)
            self.came_back.set()


def until(condition):
    """Wait for what other threads do; a test fails that waits too long."""
    ends = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < ends, "it never came"
        threading.Event().wait(0.01)


def working(houses, **options):
    """A house whose threads look after each other only when a test says so."""
    house = houses(**options)
    hangs = Hangs()
    house.inbox.on("partner", "*")(hangs)
    return house, hangs


@of(*DATABASES)
def test_a_thread_that_hangs_is_left_behind_and_nothing_of_it_is_kept(houses, monkeypatch, caplog):
    """It wrote its row: that is locked until its transaction is ended from outside, on SQLite the whole file."""
    monkeypatch.setattr(pool, "LOOK_S", 0.01)
    house, hangs = working(houses, backoff=Backoff(attempts=1))
    house.receive("hang")
    house.inbox.start(1)
    assert hangs.began.wait(PATIENCE_S)
    house.clock.passes(21)
    house.receive("evt_1")
    until(lambda: house.effects() == ["evt_1"])
    until(lambda: house.states() == {"hang": "dead", "evt_1": "finalized"})
    (event,) = house.events(id="hang")
    (handler,) = house.inbox.handlers._all
    assert (event.code, event.error) == ("handler_timeout", f"{handler.name} was not done after 20{NEXT}")
    assert house.inbox.transactions.handler_times._seen[id(handler)] > 1, (
        "it is slow from then on, and shares no transaction"
    )
    assert house.inbox.store.engine.pool.checkedout() <= 1, "the connection it had is the pool's no more"
    hangs.go.set()
    assert hangs.came_back.wait(PATIENCE_S)
    until(lambda: not house.inbox.pool.abandoned or house.inbox.pool.abandoned[0].done.done())
    house.inbox.stop()
    assert hangs.errors, "its connection is gone"
    assert house.effects() == ["evt_1"]


@of("sqlite", "postgresql")
def test_those_who_shared_its_transaction_are_done_anew_and_not_counted(houses, monkeypatch):
    monkeypatch.setattr(pool, "LOOK_S", 0.01)
    house, hangs = working(houses, backoff=Backoff(attempts=1))
    known_as_quick(house.inbox)
    for event_id in ("evt_1", "hang", "evt_2"):
        house.receive(event_id)
    house.inbox.start(1)
    assert hangs.began.wait(PATIENCE_S)
    house.clock.passes(21)
    until(lambda: house.effects() == ["evt_1", "evt_2"])
    until(lambda: house.states() == {"hang": "dead", "evt_1": "finalized", "evt_2": "finalized"})
    hangs.go.set()
    house.inbox.stop()


@of("sqlite")
def test_a_document_that_its_worker_had_leased_goes_on_at_once(houses, monkeypatch):
    """It waited for a lease, since only runs were handed on."""
    house, hangs = working(houses, backoff=Backoff(attempts=1))
    house.inbox.follow(table(fields=FIELDS, **STRICT), "*")
    for event_id, type, number in (("evt_1", "sent", 1), ("evt_3", "signed", 3)):
        house.receive(event_id, f"document.{type}", document="doc_1", n=number)
    house.work()
    assert house.do(house.inbox.release("doc_1", by="ana", reason="it will not come"))
    house.receive("hang", "document.sent", document="doc_2", n=1)
    monkeypatch.setattr(pool, "LOOK_S", 0.01)
    house.inbox.start(1)
    assert hangs.began.wait(PATIENCE_S)
    house.clock.passes(21)
    until(lambda: house.effects() == ["evt_1", "evt_3"])
    hangs.go.set()
    house.inbox.stop()


@of("postgresql")
def test_a_statement_that_goes_on_in_the_server_is_ended_there_with_its_locks(houses, monkeypatch):
    """It held its event's row: the failure was not written down before it was over, and others waited for the worker."""
    monkeypatch.setattr(pool, "LOOK_S", 0.01)
    house = houses(backoff=Backoff(attempts=1))
    began = threading.Event()

    def sleeps(event, tx):
        began.set()
        tx.execute(text("select pg_sleep(300)"))

    house.inbox.on("partner")(sleeps)
    house.receive("hang")
    house.inbox.start(1)
    assert began.wait(PATIENCE_S)
    house.clock.passes(21)
    until(lambda: house.states() == {"hang": "dead"})
    house.inbox.stop()
    still = house.sql(
        "select count(*) from pg_stat_activity where query like 'select pg_sleep%' and state = 'active'"
    )
    assert still == [(0,)]


@of("mariadb")
def test_what_a_handler_has_locked_keeps_nobody_from_storing_claiming_and_handling(houses):
    """MariaDB reads a small table whole, and waited for its event's row."""
    house, hangs = working(houses, backoff=Backoff(attempts=1))
    house.receive("hang")
    house.inbox.start(2)
    assert hangs.began.wait(PATIENCE_S)
    for n in range(20):
        assert house.receive(f"evt_{n}").status == 200
    until(lambda: len(house.effects()) == 20)
    hangs.go.set()
    house.inbox.stop()


@of("postgresql")
def test_a_statement_of_postgresql_has_no_more_time_than_a_handler(houses):
    """A frozen process keeps its rows for as long, which nothing else ends."""
    house = houses()
    seen = []

    def handler(event, tx):
        if event.id == "own":
            tx.execute(text("set local statement_timeout = '7s'"))
        seen.append(tx.execute(text("show statement_timeout")).scalar())

    house.inbox.on("partner")(handler)
    house.receive("evt_1")
    house.work()
    with house.inbox.store.engine.begin() as connection:
        (name,) = connection.execute(text("select current_database()")).one()
        connection.execute(text(f"alter database \"{name}\" set statement_timeout = '5s'"))
    house.inbox.store.engine.dispose()
    house.receive("evt_2")
    house.work()
    assert seen == ["30s", "5s"]


@of("sqlite")
def test_a_worker_is_replaced_whatever_becomes_of_the_cut(houses, monkeypatch, caplog):
    """Its call was given up by then, so nobody looked at it again."""

    def fails(caller):
        raise OSError("no")

    monkeypatch.setattr(pool, "LOOK_S", 0.01)
    house, hangs = working(houses, backoff=Backoff(attempts=1))
    house.receive("hang")
    house.inbox.start(1)
    assert hangs.began.wait(PATIENCE_S)
    monkeypatch.setattr(house.inbox.pool, "_cut", fails)
    house.clock.passes(21)
    until(lambda: house.inbox.pool.abandoned)
    until(lambda: house.inbox.pool.members)
    hangs.go.set()
    house.inbox.stop()
    assert "could not be ended from outside" in caplog.text


@of("sqlite")
def test_so_many_hang_that_the_process_has_to_be_started_anew(houses, monkeypatch, caplog):
    monkeypatch.setattr(pool, "LOOK_S", 0.01)
    monkeypatch.setattr(pool, "STUCK_MOST", 2)
    house, hangs = working(houses, backoff=Backoff(attempts=1))
    for n in range(3):
        house.receive(f"hang{n}")
    house.inbox.start(1)
    for _ in range(2):
        assert hangs.began.wait(PATIENCE_S)
        hangs.began.clear()
        house.clock.passes(21)
    until(lambda: house.inbox.pool.is_stuck)
    assert "start it anew" in caplog.text
    house.clock.passes(60)
    assert not hangs.began.wait(0.1), "nobody is left to begin the third"
    hangs.go.set()
    house.inbox.stop()


@of(*DATABASES)
def test_stop_ends_in_time_and_what_hangs_is_done_anew_by_another_process(houses, caplog):
    house, hangs = working(houses, rules=Rules(stop_s=0.1))
    house.receive("hang")
    house.inbox.start(2)
    assert hangs.began.wait(PATIENCE_S)
    house.inbox.stop()
    assert "left behind, to be done anew" in caplog.text
    given = house.sql("select attempts from surehook_inbox_runs where lease is null and due_at is not null")
    assert given == [(0,)], "at once, and the attempt is not counted"
    hangs.go.set()
    assert hangs.came_back.wait(PATIENCE_S)
    twin = house.twin()
    seen = twin.on()
    twin.work()
    assert [event.attempt for event in seen] == [1]
    assert house.effects() == ["hang"]
    twin.close()


@pytest.fixture
def waited(monkeypatch):
    """Set as soon as somebody waits for SQLite's writer."""
    waits, takes = threading.Event(), stores.WriterLock.take

    def taken(self):
        if self._lock.locked():
            waits.set()
        takes(self)

    monkeypatch.setattr(stores.WriterLock, "take", taken)
    return waits


@of("sqlite")
def test_a_worker_that_waits_for_what_hangs_is_no_trouble_at_the_end_and_begins_nothing(
    houses, waited, caplog
):
    house, hangs = working(houses, rules=Rules(stop_s=0.1))
    house.receive("hang")
    house.inbox.start(1)
    assert hangs.began.wait(PATIENCE_S)
    house.inbox.start(1)
    assert waited.wait(PATIENCE_S)
    house.inbox.stop()
    assert "left behind, to be done anew" in caplog.text
    assert "waiting for its database" not in caplog.text
    assert "cannot use its database" not in caplog.text
    hangs.go.set()
    assert hangs.came_back.wait(PATIENCE_S)


@of("sqlite")
def test_what_is_claimed_after_the_order_to_stop_is_given_back_untried(houses):
    house, _ = working(houses)
    house.receive("evt_1")
    worker = house.inbox.worker()
    claims = worker._transactions.claim_work

    def stopped_meanwhile(*args):
        worker.stop()
        return claims(*args)

    worker._transactions.claim_work = stopped_meanwhile
    effects.run(worker.until_stopped())
    assert house.effects() == []
    assert house.sql("select attempts from surehook_inbox_runs where lease is null") == [(0,)]


@of("sqlite")
def test_a_batch_that_is_done_run_by_run_ends_with_the_event_it_is_at(houses):
    house = houses()
    worker, calls = house.inbox.worker(), []

    @house.inbox.on("partner")
    def commits(event, tx):
        calls.append(event.id)
        if len(calls) == 3:
            tx.commit()
        if len(calls) == 4:  # the first of them that is by itself
            worker.stop()

    known_as_quick(house.inbox)
    for event_id in ("evt_1", "evt_2", "evt_3"):
        house.receive(event_id)
    effects.run(worker.until_stopped())
    assert len(calls) == 4
    given = house.sql("select attempts from surehook_inbox_runs where lease is null and due_at is not null")
    assert set(given) == {(0,)}, "the others are given back, and no attempt counts"


@of("sqlite")
def test_the_batch_that_is_under_way_when_the_order_to_stop_comes_ends_with_the_event_it_is_at(houses):
    house = houses()
    seen = house.on(lambda event: house.inbox.pool.members[0].job.stop())
    known_as_quick(house.inbox)
    for n in range(5):
        house.receive(f"evt_{n}")
    house.inbox.start(1)
    until(lambda: house.effects() == ["evt_0"])
    house.inbox.stop()
    assert [event.id for event in seen] == ["evt_0"]
    assert house.sql("select count(*) from surehook_inbox_runs where attempts = 0") == [(4,)]


@of("sqlite")
def test_workers_that_were_stopped_and_started_again_at_once_are_watched(houses, monkeypatch):
    """The watch of the first start was told to end, and had not: the second start took it for its own."""
    monkeypatch.setattr(pool, "LOOK_S", 0.01)
    house, hangs = working(houses, backoff=Backoff(attempts=1))
    house.inbox.start(1)
    house.inbox.stop()
    house.inbox.start(1)
    house.receive("hang")
    assert hangs.began.wait(PATIENCE_S)
    house.clock.passes(21)
    until(lambda: house.states() == {"hang": "dead"})
    hangs.go.set()
    house.inbox.stop()


@of(*DATABASES)
def test_a_held_event_whose_handler_hangs_leaves_its_documents_line_and_is_tried_by_itself(
    houses, monkeypatch
):
    """The event that let it go on was claimed, and it was not: its attempts were never counted, and it hung again at once."""
    monkeypatch.setattr(pool, "LOOK_S", 0.01)
    house = houses(backoff=Backoff(attempts=2, first_s=1, factor=1, jitter=0))
    house.inbox.follow(table(mode="strict"), "partner")
    hangs = Hangs()
    house.inbox.on("partner", "*")(hangs)
    house.receive("hang", "document.viewed", document="doc_1", n=2)
    house.receive("evt_3", "document.signed", document="doc_1", n=3)
    house.work()
    assert house.states() == {"hang": "held", "evt_3": "held"}
    house.receive("evt_1", "document.sent", document="doc_1", n=1)
    house.inbox.start(1)
    for attempt in (1, 2):
        assert hangs.began.wait(PATIENCE_S)
        hangs.began.clear()
        house.clock.passes(21)
        until(lambda n=attempt: len(house.sql("select 1 from surehook_inbox_tries")) == n)
        house.clock.passes(2)
        house.inbox.woken.set()
    until(lambda: house.states() == {"evt_1": "finalized", "hang": "dead", "evt_3": "held"})
    (event,) = house.events(id="hang")
    tries = house.inbox.show(event.ref).tries
    assert [(one.attempt, one.code) for one in tries] == [(1, "handler_timeout"), (2, "handler_timeout")]
    (first,) = house.events(id="evt_1")
    assert (first.attempts, house.effects()) == (1, ["evt_1"])
    hangs.go.set()
    house.inbox.stop()
    house.inbox.release("doc_1", by="ana", reason="it never ends")
    house.work()
    assert (house.states()["evt_3"], house.effects()) == ("finalized", ["evt_1", "evt_3"])


@of("sqlite", "postgresql")
def test_what_undoes_and_hangs_is_put_off_for_longer_each_time(houses, monkeypatch, caplog):
    """Its document was tried at once again by the next worker, until none was left."""
    monkeypatch.setattr(pool, "LOOK_S", 0.01)
    house = houses()
    house.inbox.follow(table(mode="strict"), "partner")
    house.on(final=False)
    hangs = Hangs()
    house.inbox.on_undo("partner", "*")(hangs)
    house.receive("hang", "document.sent", document="doc_1", n=1)
    house.work()
    house.inbox.reject(house.events(id="hang")[0].ref, "compliance")
    house.inbox.start(1)
    waits = []
    for tries in (1, 2, 3):
        assert hangs.began.wait(PATIENCE_S)
        hangs.began.clear()
        house.clock.passes(21)
        until(lambda n=tries: f"attempt {n} failed (undo_failed), again at" in caplog.text)
        ((wake_at,),) = house.sql("select wake_at from surehook_inbox_documents")
        waits.append((wake_at - house.clock.at) // 1000)
        house.clock.passes(waits[-1])
        house.inbox.woken.set()
    assert waits == [10, 20, 40]
    hangs.go.set()
    house.inbox.stop()


class CutWhileItWaits:
    """A writer's turn: while somebody waits for it, the transaction is ended from outside."""

    def __init__(self):
        self.writer = Writer(self)
        self.connection = None
        self.taken = 0

    def take(self):
        self.taken += 1
        self.writer.cut(self.connection)

    def give(self):
        self.taken -= 1


def test_who_is_cut_while_it_waits_for_its_turn_begins_nothing_and_keeps_nothing(tmp_path):
    engine = engines.engine(f"sqlite:///{tmp_path / 'inbox.db'}")
    turn = CutWhileItWaits()
    with engine.connect() as connection:
        turn.connection = connection
        with pytest.raises(StoreError, match="ended from outside"):
            turn.writer.about_to(connection)
        assert not driver_connections.in_transaction(connection)
        assert not turn.writer.has_begun
    turn.writer.end()
    assert turn.taken == 0
    engine.dispose()


def test_a_call_comes_back_or_is_given_up_and_never_both():
    calls = HandlerCalls(lambda: 0.0, lambda handler, seconds: None, threading.get_ident)
    run: Any = SimpleNamespace(event=b"e" * 16)
    handler: Any = SimpleNamespace(name="slow")
    call = calls.begin(run, handler, 0.0, 1.0)
    assert calls.of(threading.get_ident()) is call
    calls.end(call)
    assert not calls.give_up(call), "it is back"
    call = calls.begin(run, handler, 0.0, 1.0)
    assert calls.give_up(call)
    with pytest.raises(GivenUp):
        calls.end(call)
    assert calls.of(threading.get_ident()) is None


class TestDjango:
    @pytest.fixture
    def ground(self, ground_of):
        return ground_of("sqlite", "django")

    @pytest.mark.slow
    def test_nothing_of_a_handler_that_was_given_up_is_kept(self, houses, monkeypatch):
        monkeypatch.setattr(pool, "LOOK_S", 0.01)
        house = houses(backoff=Backoff(attempts=1))
        hangs = Hangs()
        house.inbox.on("partner", "*")(lambda event, tx: hangs(event, DjangoTx(tx)))
        house.receive("hang")
        house.inbox.start(1)
        assert hangs.began.wait(PATIENCE_S)
        house.clock.passes(21)
        house.receive("evt_1")
        until(lambda: house.states() == {"hang": "dead", "evt_1": "finalized"})
        hangs.go.set()
        assert hangs.came_back.wait(PATIENCE_S)
        until(lambda: all(hand.is_done for hand in house.inbox.pool.abandoned))
        house.inbox.stop()
        assert hangs.errors
        assert house.effects() == ["evt_1"]

    @pytest.mark.slow
    def test_a_thread_whose_transaction_was_cut_gets_another_connection(self, houses):
        house = houses()
        store, caller = house.inbox.store, threading.get_ident()

        def work(transaction):
            with transaction.tx(is_async=False) as tx:
                DjangoTx(tx).execute("", {"id": "evt_1"})
                other = threading.Thread(target=store.cut, args=(caller,))
                other.start()
                other.join()

        with pytest.raises(StoreError):
            store.run(work)
        assert house.effects() == []
        assert house.receive("evt_1").status == 200


class DjangoTx:
    """Django's connection, for a handler that speaks SQLAlchemy's words."""

    def __init__(self, connection):
        self._connection = connection

    def execute(self, statement, values):
        with self._connection.cursor() as cursor:
            cursor.execute("insert into effects (event_id) values (%s)", [values["id"]])


# -- tasks ------------------------------------------------------------------------------------------------------


class TestTasks:
    @pytest.fixture(params=["sqlite", *(pytest.param(one, marks=pytest.mark.slow) for one in DATABASES[1:])])
    def ground(self, request, ground_of):
        return ground_of(request.param, "async")

    def test_one_that_is_cancelled_and_goes_on_is_left_behind(self, houses, caplog):
        house = houses(backoff=Backoff(attempts=1))
        began, go = asyncio.Event(), asyncio.Event()

        async def deaf(event, tx):
            began.set()
            while event.id == "deaf" and not go.is_set():
                try:
                    await go.wait()
                except asyncio.CancelledError:
                    continue
            await tx.execute(INSERT, {"id": event.id})

        house.inbox.on("partner", timeout_s=0.01)(deaf)
        house.receive("deaf")

        async def story():
            inbox = house.inbox
            inbox.start(1)
            async with asyncio.timeout(PATIENCE_S):
                await began.wait()
                (call,) = inbox.calls._under_way.values()
                house.clock.at += 60_000
                inbox.pool.look()
                assert call.is_over
                (behind,) = inbox.pool.abandoned
                await inbox.stop()  # who took its place has settled what it left
                assert [one.state for one in await inbox.events()] == ["dead"]
                go.set()
                await behind.task

        async def told():
            try:
                await story()
            finally:
                go.set()  # a loop does not end while it is deaf

        house.do(told())
        if house.inbox.store.engine.dialect.name != "sqlite":  # whose thread would have to end it
            assert "could not be ended from outside" not in caplog.text
        assert house.events()[0].code == "handler_timeout"
        assert house.effects() == []

    def test_what_a_deaf_one_wrote_is_undone_and_others_may_write(self, houses):
        house = houses(backoff=Backoff(attempts=1))
        late, go = asyncio.Event(), asyncio.Event()
        errors = []

        async def deaf(event, tx):
            await tx.execute(INSERT, {"id": event.id})
            while event.id == "deaf" and not go.is_set():
                try:
                    await go.wait()
                except asyncio.CancelledError:
                    late.set()
            try:
                await tx.execute(INSERT, {"id": event.id + " again"})
            except Exception as error:
                errors.append(error)

        house.inbox.on("partner", timeout_s=0.5)(deaf)
        house.receive("deaf")

        async def story():
            inbox = house.inbox
            inbox.start(1)
            async with asyncio.timeout(PATIENCE_S):
                await late.wait()
                house.clock.at += 60_000
                inbox.pool.look()
                (behind,) = inbox.pool.abandoned
                async with inbox.store.engine.begin() as other:
                    await other.execute(INSERT, {"id": "of another"})
                await inbox.stop()  # who took its place has settled what it left
                assert [one.state for one in await inbox.events()] == ["dead"]
                go.set()
                await behind.task
            assert inbox.store.engine.pool.checkedout() == 0

        house.do(story())
        assert errors, "its connection writes nothing any more"
        assert house.effects() == ["of another"]

    def test_stop_cancels_what_is_not_done_in_time(self, houses, caplog):
        house = houses(rules=Rules(stop_s=0.05))
        began = asyncio.Event()

        async def hangs(event, tx):
            await tx.execute(INSERT, {"id": event.id})
            began.set()
            await asyncio.Event().wait()

        house.inbox.on("partner")(hangs)
        house.receive("evt_1")

        async def story():
            house.inbox.start(1)
            await began.wait()
            await house.inbox.stop()

        house.do(story())
        assert "left behind, to be done anew" in caplog.text
        assert house.sql("select attempts from surehook_inbox_runs where lease is null") == [(0,)]
        assert house.effects() == []


@of("sqlite")
def test_a_worker_for_which_there_was_no_thread_begins_at_the_next_look(houses, monkeypatch, caplog):
    house, hangs = working(houses, backoff=Backoff(attempts=1))
    monkeypatch.setattr(pool, "LOOK_S", PATIENCE_S)
    house.receive("hang")
    house.inbox.start(1)
    assert hangs.began.wait(PATIENCE_S)
    house.clock.passes(21)
    begin, workers = house.inbox.pool._begin, house.inbox.pool

    def no_thread(job):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(workers, "_begin", no_thread)
    for _ in range(2):
        with suppress(RuntimeError):  # as who watches would log it
            workers.look()
    assert not workers.members
    monkeypatch.setattr(workers, "_begin", begin)
    workers.look()
    assert len(workers.members) == 1
    until(lambda: house.states() == {"hang": "dead"})
    assert caplog.text.count("no worker could take the place") == 1
    hangs.go.set()
    assert hangs.came_back.wait(PATIENCE_S)
    house.inbox.stop()


@of("sqlite")
def test_giving_back_is_tried_again_where_others_have_the_rows_and_said_if_it_is_in_vain(houses, caplog):
    house, _ = working(houses)
    house.receive("evt_1")
    token = house.inbox.transactions.token()
    runs = house.inbox.store.run(house.inbox.transactions.claim_work(token)).runs

    class Busy:
        def __init__(self, losses):
            self.losses = losses

        def run(self, work):
            self.losses -= 1
            if self.losses >= 0:
                raise Contended("could not serialize access")
            return house.inbox.store.run(work)

    def give_back(losses):
        signal = threading.Event()
        worker = Worker(Busy(losses), house.inbox.transactions, signal, signal)
        signal.set()  # it is being stopped, and waits for nothing
        effects.run(worker._give_back(runs, token))

    give_back(100)
    assert "1 runs could not be given back" in caplog.text
    assert house.sql("select attempts from surehook_inbox_runs") == [(1,)]
    signal = threading.Event()
    away = Worker(Busy(5), house.inbox.transactions, signal, signal)
    signal.set()
    effects.run(away._give_back(runs, token))
    effects.run(away.turn())  # the database answers again
    assert house.sql("select attempts, state from surehook_inbox_runs") == [(1, "finalized")], (
        "and not the second one"
    )
    house.receive("evt_2")
    token = house.inbox.transactions.token()
    runs = house.inbox.store.run(house.inbox.transactions.claim_work(token)).runs
    caplog.clear()
    give_back(2)
    assert not caplog.text
    assert house.inbox.store.run(lambda transaction: transaction.next_due(())) <= house.clock.at


@of("postgresql", "mariadb")
def test_a_worker_at_work_on_a_document_leaves_the_others_to_other_events(houses):
    house, hangs = working(houses)
    house.inbox.follow(table(mode="free"), "partner")
    house.receive("hang", "document.sent", document="doc_1")
    house.inbox.start(2)
    # Before there are others: two workers may come to the second one first.
    assert hangs.began.wait(PATIENCE_S)
    for event_id, type, document in (
        ("next_1", "document.sent", "doc_1"),
        ("next_2", "document.viewed", "doc_1"),
        ("other", "document.sent", "doc_2"),
    ):
        house.receive(event_id, type, document=document)
    until(lambda: house.states()["other"] == "finalized")
    hangs.go.set()
    until(lambda: house.states()["next_2"] == "finalized")
    house.inbox.stop()


@of("sqlite", "postgresql")
def test_who_is_given_up_has_no_document_any_more(houses, monkeypatch):
    monkeypatch.setattr(pool, "LOOK_S", 0.01)
    house, hangs = working(houses)
    house.inbox.follow(table(mode="free"), "partner")
    house.receive("hang", "document.sent", document="doc_1")
    house.inbox.start(1)
    assert hangs.began.wait(PATIENCE_S)
    house.clock.passes(21)
    house.receive("next", "document.viewed", document="doc_1")
    until(lambda: house.states()["next"] == "finalized")
    hangs.go.set()
    house.inbox.stop()
