"""Workers remove what is past its retention, and never what still has something to come."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack

import pytest
from msgspec import structs
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError

from surehook.core.errors import SettingsError
from surehook.inbox import Keep, Later, operations, retention
from surehook.inbox.sql import engines, pruning
from surehook.inbox.sql.transaction import SqlTransaction
from surehook.ports.inbox_pruning import FROM_THE_START, Pruned, PrunePlace
from surehook.ports.inbox_runs import Filter
from tests.inbox.batches import batch
from tests.inbox.house import NOW, Clock, House, call, message

DAY_S = 86_400
MONTH = Keep(bodies_days=30, events_days=90)


def rows(house) -> dict[str, int]:
    return {
        name: house.sql(f"select count(*) from surehook_inbox_{name}")[0][0]
        for name in ("requests", "events", "runs")
    }


def test_an_idle_worker_removes_bodies_and_later_dedupe_records(houses):
    house = houses(keep=MONTH)
    house.on()
    for n in range(3):
        house.receive(f"evt_{n}")
    house.work()
    house.clock.passes(29 * DAY_S)
    house.work()
    assert rows(house) == {"requests": 3, "events": 3, "runs": 3}
    house.clock.passes(2 * DAY_S)
    house.work()
    assert rows(house) == {"requests": 0, "events": 3, "runs": 3}
    house.clock.passes(60 * DAY_S)
    house.work()
    assert rows(house) == {"requests": 0, "events": 0, "runs": 0}


def test_without_the_setting_nothing_is_removed(house):
    house.on()
    house.receive("evt_1")
    house.work()
    house.clock.passes(365 * DAY_S)
    house.work()
    assert rows(house) == {"requests": 1, "events": 1, "runs": 1}


def test_what_still_has_something_to_come_stays_however_old_it_is(houses):
    house = houses(keep=MONTH)

    def later(event):
        if event.id == "evt_later":
            raise Later("30d")

    house.on(later, "document.signed")
    house.receive("evt_done")
    house.receive("evt_later")
    house.receive("evt_parked", "document.unknown")
    for _ in range(4):
        house.work()
        house.clock.passes(29 * DAY_S)
    house.work()
    assert house.states() == {"evt_later": "accepted", "evt_parked": "parked"}
    assert rows(house)["requests"] == 2


def test_a_large_rest_is_removed_in_steps(houses, monkeypatch):
    monkeypatch.setattr(retention, "ROWS", 2)  # 500 events take a while
    house = houses(keep=MONTH)
    house.on()
    for n in range(5):
        house.receive(f"evt_{n}")
    house.work()
    house.clock.passes(31 * DAY_S)
    left = []
    for _ in range(4):
        house.work()
        house.work()  # at the same moment: another worker of this process
        left.append(rows(house)["requests"])
        house.clock.passes(1)
    assert left == [3, 1, 0, 0]


@pytest.mark.parametrize(
    ("database", "wait", "left"),
    # MariaDB locks each row that it reads to find them: then the second one has nothing to do for now.
    [("postgresql", "set lock_timeout = '1s'", 1), ("mariadb", "set innodb_lock_wait_timeout = 1", 0)],
)
def test_of_two_processes_none_waits_for_the_other_or_takes_its_rows(ground_of, runner, database, wait, left):
    kind, url = ground_of(database, "sync")
    house = House(kind, url, runner).prepare()
    house.on()
    for n in range(4):
        house.receive(f"evt_{n}")
    house.work()
    engine, far = engines.engine(url), NOW + 365 * DAY_S * 1000
    with engine.connect() as one, engine.connect() as two:
        for connection in (one, two):
            connection.execute(text(wait))
            connection.commit()
        assert SqlTransaction(one).prune(bodies_before=far, events_before=far, limit=3).removed == Pruned(
            3, 3
        )
        assert SqlTransaction(two).prune(bodies_before=far, events_before=far, limit=3).removed == Pruned(
            left, left
        )
        one.commit()
        two.commit()
    house.do(
        house.inbox.store.run(
            lambda transaction: transaction.prune(bodies_before=far, events_before=far, limit=3)
        )
    )
    assert rows(house) == {"requests": 0, "events": 0, "runs": 0}
    engine.dispose()
    house.close()


def test_what_waits_for_a_word_stays_until_it_is_said(houses):
    house = houses(keep=MONTH)
    house.on(final=False)
    house.receive("evt_1")
    house.receive("evt_2")
    house.work()
    one = house.events(id="evt_1")[0]
    assert house.do(house.inbox.replay(reason="again", id="evt_2")) == 1
    house.work()
    house.do(house.inbox.finalize(house.events(id="evt_2")[0].ref))
    house.clock.passes(100 * DAY_S)
    house.work()
    assert rows(house) == {"requests": 0, "events": 1, "runs": 1}, "of the other its newest run is final"
    assert house.do(house.inbox.finalize(one.ref)) is True
    house.clock.passes(100)
    house.work()
    assert rows(house) == {"requests": 0, "events": 0, "runs": 0}


class Broken:
    """A book whose rows cannot be removed."""

    def prune(self, **_):
        raise ValueError("no")


def test_a_step_that_fails_is_not_done_again_at_once():
    clock = Clock()
    steps = retention.Pruner(MONTH, clock.now)
    with pytest.raises(ValueError, match="no"):
        steps.step(Broken())  # type: ignore[arg-type]
    assert not steps.is_due(idle=True)


def test_what_cannot_be_removed_keeps_nobody_from_working(houses, caplog):
    house = houses(keep=MONTH)
    house.on()
    house.sql("drop table surehook_inbox_conflicts")
    house.receive("evt_1")
    house.work()
    house.clock.passes(100 * DAY_S)
    house.receive("evt_2")
    with caplog.at_level(logging.WARNING, "surehook.inbox"):
        house.work()
    assert house.effects() == ["evt_1", "evt_2"]
    assert "what is past its retention was not removed" in caplog.text


def test_a_busy_worker_prunes_after_ten_minutes_all_the_same():
    clock = Clock()
    steps = retention.Pruner(MONTH, clock.now)
    assert steps.is_due(idle=True)
    assert not steps.is_due(idle=False)
    clock.passes(retention.LATE_MS / 1000)
    assert steps.is_due(idle=False)


def test_a_clock_that_was_set_back_does_not_end_it():
    clock = Clock()
    steps = retention.Pruner(MONTH, clock.now)
    clock.passes(-DAY_S)
    assert steps.is_due(idle=True)


def test_dedupe_records_must_outlive_bodies():
    with pytest.raises(SettingsError, match="must outlive"):
        Keep(bodies_days=90, events_days=30)


def test_a_retention_without_end_is_refused():
    with pytest.raises(SettingsError, match="at most 1,000,000 days"):
        Keep(events_days=float("inf"))


# -- beside a replay --------------------------------------------------------------------------------------------

SERVED = pytest.mark.parametrize(
    ("database", "wait"),
    [("postgresql", "set lock_timeout = '1s'"), ("mariadb", "set innodb_lock_wait_timeout = 1")],
)


@pytest.fixture
def done_on(ground_of, runner):
    """Makes a house with two events that are done, and two connections that wait for nobody for long."""
    with ExitStack() as stack:

        def make(database: str, wait: str):
            kind, url = ground_of(database, "sync")
            house = House(kind, url, runner).prepare()
            stack.callback(house.close)
            house.on()
            house.receive("evt_1")
            house.receive("evt_2")
            house.work()
            engine = engines.engine(url)
            stack.callback(engine.dispose)
            both = [stack.enter_context(engine.connect()) for _ in range(2)]
            for connection in both:
                connection.execute(text(wait))
                connection.commit()
            return house, *both

        yield make


def replayed(connection) -> int:
    wanted = Filter(source="partner")
    return SqlTransaction(connection).replay(
        wanted, reason="again", now=NOW, ids=lambda: os.urandom(16), limit=100
    )


def pruned(connection) -> int:
    far = NOW + 365 * DAY_S * 1000
    return SqlTransaction(connection).prune(bodies_before=NOW, events_before=far, limit=100).removed.events


@SERVED
def test_a_replay_begins_nothing_of_what_retention_removes_just_now(done_on, database, wait):
    house, one, two = done_on(database, wait)
    assert pruned(one) == 2
    assert replayed(two) == 0
    one.commit()
    two.commit()
    assert rows(house) == {"requests": 2, "events": 0, "runs": 0}


@SERVED
def test_retention_removes_nothing_of_what_is_replayed_just_now(done_on, database, wait):
    house, one, two = done_on(database, wait)
    assert replayed(one) == 2
    assert pruned(two) == 0
    one.commit()
    two.commit()
    assert rows(house) == {"requests": 2, "events": 2, "runs": 4}


@SERVED
def test_two_that_replay_the_same_at_once_begin_each_event_once(done_on, database, wait):
    """The second had found them as the first committed: a unique key refused it, with a traceback."""
    house, one, two = done_on(database, wait)
    begun = []

    def meanwhile(*_):
        if not begun:
            begun.append(replayed(one))
            one.commit()

    event.listen(two, "after_cursor_execute", meanwhile)
    begun.append(replayed(two))
    two.commit()
    assert begun == [2, 0]
    assert rows(house) == {"requests": 2, "events": 2, "runs": 4}


def test_a_run_without_an_event_is_removed_and_those_beside_it_are_done(house, caplog):
    house.on()
    for n in range(3):
        house.receive(f"evt_{n}")
    house.sql("delete from surehook_inbox_events where event_id = 'evt_1'")
    with caplog.at_level(logging.WARNING, "surehook.inbox"):
        house.work()
    assert house.effects() == ["evt_0", "evt_2"]
    assert rows(house) == {"requests": 3, "events": 2, "runs": 2}
    assert [one.getMessage() for one in caplog.records] == ["1 runs were removed: their events are gone"]


def test_counting_ends_where_its_column_does_and_keeps_nobody_from_being_claimed(house):
    house.on()
    house.receive("evt_1")
    house.sql("update surehook_inbox_runs set attempts = 32767")
    house.receive("evt_2")
    house.work()
    assert house.states() == {"evt_1": "dead", "evt_2": "finalized"}


# -- beside many that are unfinished -----------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch):
    """Pages of few rows, so that few rows fill them."""
    monkeypatch.setattr(pruning, "PAGE", 3)
    monkeypatch.setattr(pruning, "PAGES", 2)


def test_a_walk_goes_on_where_it_was_and_never_looks_twice_at_what_is_unfinished(houses, small):
    house = houses(keep=MONTH)
    house.on(None, "document.signed")
    for n in range(20):
        house.receive(f"evt_{n}", "document.unknown")
    for n in range(20, 25):
        house.receive(f"evt_{n}")
    house.work()
    house.clock.passes(100 * DAY_S)
    looked: list[bytes] = []
    parts = 0
    page = pruning._page

    def paged(connection, table, before, place, limit):
        found, next_ = page(connection, table, before, place, limit)
        looked.extend(id_ for _, id_ in found if table.name.endswith("requests"))
        return found, next_

    pruning._page, before = paged, pruning._page
    try:
        while rows(house) != {"requests": 20, "events": 20, "runs": 20}:
            had = len(looked)
            house.work()
            house.clock.passes(1)
            assert len(looked) - had <= 6
            parts += 1
            assert parts < 10, "it comes to what is finished behind what is not"
    finally:
        pruning._page = before
    assert len(looked) == len(set(looked))


@pytest.mark.parametrize("single", [0, 4, 30])
@pytest.mark.parametrize("ground", [("sqlite", "sync")], ids=["sqlite"], indirect=True)
def test_a_step_looks_at_few_events_however_many_a_request_has(houses, monkeypatch, single):
    """Those of one event each come first: what they show of the next ones is wrong."""
    monkeypatch.setattr(pruning, "EVENTS", 60)
    house = houses(keep=MONTH, sources=[batch.source])

    @house.inbox.on("batch", "*")
    def done(event, tx):
        return None

    for n in range(40):
        some = [{"id": f"evt_{n}_{k}", "type": "a"} for k in range(1 if n < single else 20)]
        assert house.do(house.inbox.receive(batch.call(some, at=house.clock.at))).status == 200
    house.work()
    house.clock.passes(40 * DAY_S)
    seen: list[int] = []
    events_of = pruning._events_of

    def counted(connection, some, most):
        found = events_of(connection, some, most)
        seen.append(len(found) if len(found) <= most or len(some) == 1 else 0)
        assert len(found) <= most + 1 or len(some) == 1, "no more is read than shows that it is too much"
        return found

    monkeypatch.setattr(pruning, "_events_of", counted)
    place, removed = FROM_THE_START, []
    while place.requests is not None:
        seen.clear()
        work = operations.prune_work(30, 1_000, 400, house.clock.now(), place)
        part = house.inbox.store.run(work)
        assert sum(seen) <= 60 + 20
        removed.append(part.removed.requests)
        place = part.place
    assert (sum(removed), rows(house)["requests"]) == (40, 0)
    assert len(removed) > (5 if single < 30 else 2)


@pytest.mark.parametrize("database", ["sqlite", "postgresql", "mariadb"])
def test_no_statement_of_it_reads_a_whole_table(ground_of, runner, database, monkeypatch):
    """By the plan of each, with rows enough that a planner has a choice."""
    monkeypatch.setattr(pruning, "PAGE", 50)  # beside them, as 400 are beside a backlog
    kind, url = ground_of(database, "sync")
    house = House(kind, url, runner).prepare()
    made = house.inbox.receiver.judge(call(*message("evt_1"), at=NOW), now=NOW).request
    many = []
    for n in range(20_000):
        id_ = os.urandom(16)
        of_it = structs.replace(made.events[0], id=id_, event_id=f"evt_{n}")
        many.append(structs.replace(made, id=id_, received_at=NOW + n, events=(of_it,)))
    house.inbox.store.run(lambda transaction: transaction.persist(many, careful=False))
    house.sql("update surehook_inbox_runs set state = 'parked', error_code = 'no_handler', due_at = null")
    for table in ("requests", "events", "runs"):
        house.sql(f"analyze {'table ' if database == 'mariadb' else ''}surehook_inbox_{table}")
    said: list[tuple[str, object]] = []
    engine = house.inbox.store.engine
    with engine.connect() as connection:
        event.listen(
            connection,
            "before_cursor_execute",
            lambda _c, _cursor, statement, values, *rest: said.append((statement, values)),
        )
        place = PrunePlace(requests=(NOW + 1_000, b""), events=(NOW + 1_000, b""))
        far = NOW + 365 * DAY_S * 1000
        part = SqlTransaction(connection).prune(bodies_before=far, events_before=far, limit=500, place=place)
        looks = [one for one in said if one[0].startswith("SELECT")]
        assert part.removed == Pruned(0, 0) and len(looks) >= 8
        for statement, values in looks:
            if "tries" in statement:
                continue
            plan = connection.exec_driver_sql(
                f"EXPLAIN {'QUERY PLAN ' if database == 'sqlite' else ''}{statement}", values
            ).all()
            told = "\n".join(map(str, plan))
            if database == "mariadb":
                assert all(row[3] not in ("ALL", "index") for row in plan), told
            elif database == "postgresql":
                assert "Seq Scan" not in told and "Index" in told, told
            else:
                assert "SCAN" not in told and "runs_stopped" not in told, told
        connection.rollback()
    house.close()


def test_retention_has_a_transaction_of_its_own_and_its_failure_loses_no_claim(houses, monkeypatch):
    house = houses(keep=MONTH)
    house.on()
    transactions: list[set[str]] = []
    run = house.inbox.store.run

    def noted(work, within_s=None):
        def inside(transaction):
            done = transactions[-1]
            claim, prune = transaction.claim, transaction.prune
            transaction.claim = lambda **bounds: done.add("claim") or claim(**bounds)
            transaction.prune = lambda **bounds: done.add("prune") or prune(**bounds)
            return work(transaction)

        transactions.append(set())
        return run(inside, within_s)

    monkeypatch.setattr(house.inbox.store, "run", noted)
    house.work()
    assert {"prune"} in transactions
    assert {"claim", "prune"} not in transactions


@SERVED
def test_a_statement_of_retention_that_takes_too_long_is_ended(done_on, database, wait):
    _, one, two = done_on(database, "select 1")
    one.execute(text("select * from surehook_inbox_runs for update"))
    far = NOW + 365 * DAY_S * 1000
    with pytest.raises(DBAPIError):
        SqlTransaction(two).prune(bodies_before=NOW, events_before=far, limit=100, within_s=0.2)
    one.rollback()
    two.rollback()
    if database == "mariadb":
        assert two.execute(text("select @@session.max_statement_time")).scalar() == 0


def test_all_that_is_past_its_retention_is_removed_where_no_limit_is_given(house, small):
    house.on(None, "document.signed")
    for n in range(10):
        house.receive(f"evt_{n}", "document.unknown" if n < 5 else "document.signed")
    house.work()
    house.clock.passes(100 * DAY_S)
    assert house.do(house.inbox.prune(limit=2)) == Pruned(2, 2)
    assert house.do(house.inbox.prune(limit=None)) == Pruned(3, 3)
    assert rows(house) == {"requests": 5, "events": 5, "runs": 5}
