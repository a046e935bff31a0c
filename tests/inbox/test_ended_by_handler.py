"""A handler whose statement ends the transaction: its work stands without the mark, so it is not called again."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from surehook.inbox import Backoff, Ignore, Later, Refuse, Rules, pool
from tests.inbox.house import House
from tests.inbox.test_hanging import PATIENCE_S, until

QUICK = Backoff(first_s=1, factor=1, max_s=1, attempts=10, jitter=0)
# Behind a comment: as they are, they are refused before they are said (test_shared_session.py).
STATEMENTS = {
    "sqlite": "/* by hand */ commit",
    "postgresql": "/* by hand */ commit",
    "mariadb": "/* by hand */ truncate table cache",
}


@pytest.fixture
def made(ground_of, runner):
    houses: list[House] = []

    def make(database: str, kind: str, **options: Any) -> House:
        house = House(kind, ground_of(database, kind)[1], runner, backoff=QUICK, **options).prepare()
        house.sql("create table cache (id int)")
        houses.append(house)
        return house

    yield make
    for house in houses:
        house.close()


def work_three_times(house):
    """As often as a retry is due."""
    for _ in range(3):
        house.work()
        house.clock.passes(2)


def ends_it(house, database, kind, error=None):
    """An event whose handler writes, ends the transaction, and then raises `error`, is worked on as often as it likes."""
    said = text(STATEMENTS[database])

    def blocking(event, tx):
        house.write(tx, event.id)
        tx.execute(said)
        if error is not None:
            raise error

    async def waiting(event, tx):
        await house.write(tx, event.id)
        await tx.execute(said)
        if error is not None:
            raise error

    house.inbox.on("partner")(blocking if kind == "sync" else waiting)
    house.receive("evt_1")
    work_three_times(house)


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("database", list(STATEMENTS))
def test_it_is_dead_at_once_and_says_why_and_what_to_do(made, database, kind):
    house = made(database, kind)
    ends_it(house, database, kind)
    assert house.effects() == ["evt_1"], "once, and not once for each attempt"
    ended = house.events()[0]
    assert (ended.state, ended.code, ended.attempts) == ("dead", "handler_commits", 1)
    assert "has ended the transaction" in ended.error and "begin_nested" in ended.error
    house.receive("evt_2")
    house.sql("delete from effects")


def hangs_after_it(house, database):
    """A worker is at an event whose handler wrote, ended the transaction, and hangs until it is let go."""
    hangs, go = threading.Event(), threading.Event()

    def handler(event, tx):
        house.write(tx, event.id)
        tx.execute(text(STATEMENTS[database]))
        hangs.set()
        go.wait(PATIENCE_S)

    house.inbox.on("partner")(handler)
    house.receive("evt_1")
    house.inbox.start(1)
    assert hangs.wait(PATIENCE_S)
    return go


@pytest.mark.parametrize("database", list(STATEMENTS))
def test_one_that_hangs_after_it_is_dead_at_once_as_well(made, database, monkeypatch):
    """Each attempt that was given up kept its effects."""
    monkeypatch.setattr(pool, "LOOK_S", 0.01)
    house = made(database, "sync")
    go = hangs_after_it(house, database)
    house.clock.passes(21)
    until(lambda: house.events()[0].state == "dead")
    go.set()
    house.inbox.stop()
    assert (house.effects(), house.events()[0].code) == (["evt_1"], "handler_commits")


@pytest.mark.parametrize("database", list(STATEMENTS))
def test_one_that_hangs_after_it_is_not_done_anew_after_a_stop(made, database):
    house = made(database, "sync", rules=Rules(stop_s=0.1))
    go = hangs_after_it(house, database)
    house.inbox.stop()
    go.set()
    assert (house.effects(), house.events()[0].code) == (["evt_1"], "handler_commits")


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_it_is_known_also_after_its_transaction_was_cut(made, kind):
    """By its own deadline, which a short lease has before anybody looks at the handler: then the driver's connection is gone."""
    house, seen = made("postgresql", kind), []

    def cut_and_asked(caller):
        store = house.inbox.store
        seen.extend([store.cut(caller), store.cut(caller), store.has_ended(caller)])

    def blocking(event, tx):
        tx.execute(text(STATEMENTS["postgresql"]))
        with ThreadPoolExecutor(1) as other:
            other.submit(cut_and_asked, threading.get_ident()).result()

    async def waiting(event, tx):
        await tx.execute(text(STATEMENTS["postgresql"]))
        cut_and_asked(id(asyncio.current_task()))

    house.inbox.on("partner")(blocking if kind == "sync" else waiting)
    house.receive("evt_1")
    house.work()
    assert seen[:3] == [True, True, True]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("database", list(STATEMENTS))
def test_one_that_fails_after_it_is_dead_at_once_as_well(made, database, kind):
    house = made(database, kind)
    ends_it(house, database, kind, ValueError("after it"))
    ended = house.events()[0]
    assert (house.effects(), ended.state, ended.code) == (["evt_1"], "dead", "handler_commits")


@pytest.mark.parametrize("database", ["sqlite", "mariadb"])
def test_one_whose_statement_undid_it_all_by_failing_is_tried_again(made, database):
    """As a deadlock or a full disk does it: the driver's own error, and no transaction any more."""
    house = made(database, "sync")
    seen = []

    @house.inbox.on("partner")
    def done(event, tx):
        house.write(tx, event.id)
        seen.append(event.id)
        if len(seen) == 1:
            tx.connection.cursor().execute("rollback")
            tx.connection.cursor().execute("select * from nowhere")

    house.receive("evt_1")
    work_three_times(house)
    assert (house.effects(), house.states()) == (["evt_1"], {"evt_1": "finalized"})


WRITTEN = "insert into effects (event_id, word) values ('evt_1', 'raw')"


def by_the_driver(
    said: str = WRITTEN, *, commits: bool = True, then: str | None = None, error: Exception | None = None
):
    """Handlers that say something by the driver's own connection, which tells nobody: for a thread, and for a task."""

    def blocking(event, tx):
        own = tx.connection.driver_connection
        own.execute(said)
        if commits:
            own.commit()
        if then is not None:
            tx.execute(text(then))
        if error is not None:
            raise error

    async def waiting(event, tx):
        own = (await tx.get_raw_connection()).driver_connection
        await own.execute(said)
        if commits:
            await own.commit()
        if then is not None:
            await tx.execute(text(then))
        if error is not None:
            raise error

    return {"sync": blocking, "async": waiting}


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("error", [None, ValueError("after it")], ids=["returns", "raises"])
@pytest.mark.parametrize(
    "then", [None, "insert into effects (event_id, word) values ('lost', 'lost')", "select 1"]
)
def test_one_that_commits_by_the_driver_before_the_transaction_has_begun_is_dead_at_once(
    made, kind, error, then
):
    """On SQLite it begins with the first statement that `tx` hears of."""
    house = made("sqlite", kind)
    house.inbox.on("partner")(by_the_driver(then=then, error=error)[kind])
    house.receive("evt_1")
    work_three_times(house)
    assert house.effects() == ["evt_1"]
    ended = house.events()[0]
    assert (ended.state, ended.code, ended.attempts) == ("dead", "handler_commits", 1)


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("then", [None, "select 1"])
def test_what_the_driver_writes_and_does_not_commit_stands_or_falls_with_the_event(made, kind, then):
    house = made("sqlite", kind)
    house.inbox.on("partner", "document.signed")(by_the_driver(commits=False, then=then)[kind])
    fails = by_the_driver(commits=False, then=then, error=ValueError("after it"))
    house.inbox.on("partner", "document.failed")(fails[kind])
    house.receive("evt_1")
    house.receive("evt_2", "document.failed")
    house.work()
    assert house.effects() == ["evt_1"]
    assert house.states() == {"evt_1": "finalized", "evt_2": "accepted"}


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize(
    "outcome", [Later(60), Ignore("no"), Refuse("no"), ValueError("no")], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize("said", [WRITTEN, "create table made (id int)"], ids=["a row", "a table"])
def test_what_the_driver_did_first_is_undone_with_the_rest(made, kind, outcome, said):
    house = made("sqlite", kind)
    house.inbox.on("partner")(by_the_driver(said, commits=False, then="select 1", error=outcome)[kind])
    house.receive("evt_1")
    house.work()
    assert house.effects() == []
    assert house.sql("select name from sqlite_master where name = 'made'") == []
    assert house.events()[0].code != "handler_commits"


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("nested", ["session", "savepoint"])
@pytest.mark.parametrize("database", list(STATEMENTS))
def test_one_that_ends_it_within_a_savepoint_is_dead_at_once(made, database, kind, nested):
    """The savepoint of a session, or of its own, is gone with it: the database says so, and has undone nothing."""
    house = made(database, kind, sessions=nested == "session")
    said = text(STATEMENTS[database])

    def blocking(event, tx):
        with tx.begin_nested():
            house.write(tx, event.id)
            tx.execute(said)

    async def waiting(event, tx):
        async with tx.begin_nested():
            await house.write(tx, event.id)
            await tx.execute(said)

    house.inbox.on("partner")(blocking if kind == "sync" else waiting)
    house.receive("evt_1")
    work_three_times(house)
    ended = house.events()[0]
    assert (house.effects(), ended.code, ended.attempts) == (["evt_1"], "handler_commits", 1)


@pytest.mark.slow
def test_one_that_catches_a_deadlock_is_tried_again(made):
    """MariaDB has undone its work then, and there is no savepoint either."""
    house = made("mariadb", "sync")
    house.sql("create table rows_ (id int primary key, n int)")
    house.sql("insert into rows_ values (1, 0), (2, 0)")
    seen = []

    @house.inbox.on("partner")
    def done(event, tx):
        house.write(tx, event.id)
        seen.append(event.id)
        if len(seen) > 1:
            return
        try:
            # As a deadlock does it: the server undoes the whole transaction, and says so with an error.
            tx.connection.cursor().execute("rollback")
            tx.execute(text("select * from nowhere"))
        except DBAPIError:
            pass

    house.receive("evt_1")
    work_three_times(house)
    assert (house.effects(), house.states()) == (["evt_1"], {"evt_1": "finalized"})
