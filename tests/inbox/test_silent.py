"""Databases that say nothing, or keep a statement waiting: senders hear so within a stated time, and the next ones are stored."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import event, text

from surehook.inbox import async_inbox, group_commit, inbox
from surehook.inbox.sql import engines
from surehook.ports.inbox import StoreUnavailable
from tests import servers
from tests.inbox.house import House, call, message
from tests.servers.proxy import CuttingProxy

PATIENCE_S = 20  # far more than any deadline here
KINDS = ["sync", "async"]
DATABASES = ["postgresql", pytest.param("mariadb", marks=pytest.mark.slow)]


@pytest.fixture
def deadlines(monkeypatch):
    """Makes the deadline of what is stored a short one."""

    def make(seconds):
        for module in (inbox, async_inbox):
            monkeypatch.setattr(module, "STORE_S", seconds, raising=False)

    return make


@pytest.fixture
def behind(ground_of):
    """A kind of inbox and its database behind a proxy."""
    proxies = []

    def make(database, kind):
        _, url = ground_of(database, kind)
        server = servers.postgres() if database == "postgresql" else servers.mariadb()
        proxies.append(CuttingProxy(server.port).start())
        return url.replace(f":{server.port}/", f":{proxies[-1].port}/"), proxies[-1]

    yield make
    for proxy in proxies:
        proxy.close()


def answers(house, *ids):
    """The answers to these events at once; a test fails that waits too long for them."""
    calls = [call(*message(id_), at=house.clock.at) for id_ in ids]
    if house.kind == "async":

        async def go():
            async with asyncio.timeout(PATIENCE_S):
                return await asyncio.gather(*map(house.inbox.receive, calls))

        return house.do(go())
    answered = []
    threads = [
        threading.Thread(target=lambda one=one: answered.append(house.inbox.receive(one)), daemon=True)
        for one in calls
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "it was never answered"
    return answered


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("database", DATABASES)
def test_a_silent_connection_is_given_up_and_the_next_batch_has_another(
    behind, deadlines, runner, caplog, database, kind
):
    deadlines(1.0)
    url, proxy = behind(database, kind)
    house = House(kind, url, runner).prepare()
    assert house.receive("evt_0").status == 200
    proxy.silence()
    (refused,) = answers(house, "evt_1")
    assert refused.status == 503
    assert b"storage_unavailable" in refused.body
    assert "the database has not answered within 1 s" in caplog.text
    assert house.receive("evt_4").status == 200
    house.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_is_locked_keeps_nobody_waiting(ground_of, deadlines, runner, kind):
    deadlines(1.0)
    house = House(*ground_of("postgresql", kind), runner).prepare()
    with psycopg.connect(house.url) as other:
        other.execute("lock table surehook_inbox_events in access exclusive mode")
        assert answers(house, "evt_1")[0].status == 503
    assert answers(house, "evt_1")[0].status == 200
    house.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_connection_that_fell_silent_while_idle_is_found_out_and_replaced(
    behind, monkeypatch, runner, kind
):
    monkeypatch.setattr(engines, "ASK_S", 0.3, raising=False)
    url, proxy = behind("postgresql", kind)
    if kind == "sync":
        engine = engines.engine(url, asked_s=0)

        def ask():
            with engine.begin() as connection:
                return connection.execute(text("select 1")).scalar()

        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(ask).result(PATIENCE_S) == 1
            proxy.silence()
            assert thread.submit(ask).result(PATIENCE_S) == 1
        engine.dispose()
        return
    engine = engines.async_engine(url, asked_s=0)

    async def ask_async():
        async with asyncio.timeout(PATIENCE_S), engine.begin() as connection:
            return (await connection.execute(text("select 1"))).scalar()

    assert runner.run(ask_async()) == 1
    proxy.silence()
    assert runner.run(ask_async()) == 1
    runner.run(engine.dispose())


@pytest.mark.parametrize("database", DATABASES)
def test_a_worker_whose_connection_fell_silent_says_so_within_a_lease(behind, runner, caplog, database):
    from surehook.inbox import Rules

    url, proxy = behind(database, "sync")
    house = House("sync", url, runner, rules=Rules(lease_ms=1_000, idle_s=0.02)).prepare()
    seen = house.on()
    house.inbox.start(1)
    proxy.silence()
    house.inbox.woken.set()
    house.inbox.store.run(lambda transaction: None)  # the pool's other connection is not the worker's
    ends = threading.Event()
    for _ in range(500):
        # The deadline's words, or the server's, which ends a transaction that idles for a lease.
        if "the inbox cannot use its database" in caplog.text:
            break
        ends.wait(0.02)
    else:
        pytest.fail("nobody said so")
    house.receive("evt_1")
    for _ in range(500):
        if seen:
            break
        ends.wait(0.02)
    assert seen
    house.close()


@pytest.mark.parametrize("database", DATABASES)
def test_a_process_that_freezes_before_its_commit_keeps_no_other_from_storing_the_same(
    ground_of, deadlines, runner, database
):
    deadlines(4.0)
    house = House(*ground_of(database, "sync"), runner).prepare()
    frozen, go = threading.Event(), threading.Event()
    other = house.twin()

    @event.listens_for(other.inbox.store.engine, "commit")
    def freeze(connection):
        frozen.set()
        go.wait(PATIENCE_S * 2)

    thread = threading.Thread(target=answers, args=(other, "evt_1"))
    thread.start()
    assert frozen.wait(PATIENCE_S)
    try:
        assert answers(house, "evt_1")[0].status == 200
        assert answers(house, "evt_2")[0].status == 200
    finally:
        go.set()
        thread.join()
    house.close()
    other.close()


@pytest.mark.parametrize("kind", KINDS)
def test_the_bounds_of_what_is_stored_are_told_by_its_one_statement(ground_of, runner, kind):
    house = House(*ground_of("postgresql", kind), runner).prepare()
    engine = house.inbox.store.engine if kind == "sync" else house.inbox.store.engine.sync_engine
    statements, bounds = [], []

    @event.listens_for(engine, "before_cursor_execute")
    def said(connection, cursor, statement, *rest):
        statements.append(statement)

    @event.listens_for(engine, "commit")
    def committed(connection):
        asked = (
            "select current_setting('idle_in_transaction_session_timeout'), current_setting('lock_timeout')"
        )
        bounds.append(tuple(connection.exec_driver_sql(asked).one()))

    assert house.receive("evt_1").status == 200
    assert bounds[0] == ("5s", "8s")
    assert "INSERT" in statements[0], "and nothing was said before it"
    assert "current_setting" in statements[1], "nor after it"
    house.close()


def test_the_end_of_a_lifespan_waits_for_no_silent_database(behind, monkeypatch, runner):
    monkeypatch.setattr(async_inbox, "DRAIN_S", 0.2, raising=False)
    url, proxy = behind("postgresql", "async")
    house = House("async", url, runner).prepare()

    async def live():
        async with asyncio.timeout(PATIENCE_S):
            lifespan = house.inbox.lifespan()
            await lifespan.__aenter__()
            proxy.freeze()
            waits = asyncio.ensure_future(house.inbox.receive(call(*message("evt_1"), at=house.clock.at)))
            await asyncio.sleep(0.05)
            async with asyncio.timeout(8):  # the worker, which waits for an answer itself, is left behind
                await lifespan.__aexit__(None, None, None)
            return await waits

    house.inbox.pool._stop_s = 0.2
    assert runner.run(live()).status == 503
    proxy.thaw()
    house.close()


def test_those_who_wait_behind_a_silent_database_are_told_with_the_first_batch():
    boot = [0.0]
    tries = []

    class Silent:
        def run(self, work):
            tries.append(work)
            boot[0] += group_commit.LATE_S
            raise StoreUnavailable("silent")

    class Body:
        body = b"x" * (group_commit.BATCH_BYTES + 1)  # a batch of its own
        events = ()

    commit = group_commit.GroupCommit(Silent(), lambda: boot[0])
    results = commit.put_all([Body(), Body(), Body()])
    assert [type(one) for one in results] == [StoreUnavailable] * 3
    assert len(tries) == 1
