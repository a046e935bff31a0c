"""SQLite's transactions, cut under the hands of who is in them: nothing more is written, and nothing of anybody else is touched."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import event, make_url, text
from sqlalchemy.exc import OperationalError

from surehook.inbox.sql import deferred_begin, driver_connections, engines, open_transactions
from surehook.inbox.sql.deferred_begin import Writer
from surehook.inbox.sql.driver_connections import HANDLING
from surehook.inbox.sql.handler_commits import FAILED_WITHIN
from surehook.inbox.sql.stores import SqlStore, WriterLock
from surehook.ports.inbox import StoreError

INSERT = text("insert into effects values ('a')")


@pytest.fixture(params=["sqlite-sync"])
def store(request, tmp_path):
    store = SqlStore(engines.engine(f"sqlite:///{tmp_path / 'inbox.db'}"))
    with store.engine.begin() as connection:
        connection.execute(text("create table effects (id text)"))
    yield store
    store.close()


def kept(store):
    with store.engine.begin() as connection:
        return [row.id for row in connection.execute(text("select id from effects"))]


def cut(store):
    """The calling thread's transaction, from another thread; it is over when this returns."""
    with ThreadPoolExecutor(1) as other:
        assert other.submit(store.cut, threading.get_ident()).result()


def handled(function):
    """What `store.run` does for a handler that is given `tx`."""

    def work(transaction):
        with transaction.tx(is_async=False) as tx:
            return function(tx)

    return work


def test_a_statement_that_was_let_through_before_the_cut_writes_nothing_after_it(store):
    refused = []

    def handler(tx):
        tx.execute(INSERT)

        @event.listens_for(tx, "before_cursor_execute")
        def _(*_):  # after the inbox has looked
            cut(store)

        with pytest.raises(OperationalError, match="readonly"):
            tx.execute(INSERT)
        for statement in ("insert into effects values ('b')", "begin immediate"):
            try:
                tx.connection.driver_connection.execute(statement)
            except Exception as error:
                refused.append(str(error))

    with pytest.raises(StoreError, match="ended from outside"):
        store.run(handled(handler))
    assert len(refused) == 2, "told to the driver itself, neither was done"
    assert kept(store) == []


def test_what_was_cut_is_not_taken_for_committed(store):
    def handler(tx):
        tx.execute(INSERT)
        cut(store)

    with pytest.raises(StoreError, match="ended from outside"):
        store.run(handled(handler))
    assert kept(store) == []


def test_the_pool_and_the_turn_are_free_at_once_and_the_connection_comes_back_to_nobody(store):
    def handler(tx):
        tx.execute(INSERT)
        driver = tx.connection.driver_connection
        cut(store)
        assert store.engine.pool.checkedout() == 0
        assert not store.turn.locked()
        with store.engine.begin() as other:
            assert other.connection.driver_connection is not driver
            other.execute(text("insert into effects values ('of another')"))

    with pytest.raises(StoreError, match="ended from outside"):
        store.run(handled(handler))
    assert not store.turn.locked()
    assert kept(store) == ["of another"]


def test_a_transaction_is_cut_of_which_rows_are_still_to_be_fetched(store):
    """Such a statement is under way for SQLite: to interrupt it would interrupt the rollback as well."""

    def handler(tx):
        tx.execute(text("insert into effects values ('a'), ('b'), ('c')"))
        rows = tx.execute(text("select id from effects"))
        assert rows.fetchone()
        cut(store)
        assert not driver_connections.in_transaction(tx)

    with pytest.raises(StoreError, match="ended from outside"):
        store.run(handled(handler))


@pytest.mark.parametrize("has_rows", [False, True])
def test_a_statement_that_goes_on_is_ended(store, has_rows):
    """Where rows of another one are still to be fetched, an interrupt would end the rollback, too."""
    began = threading.Event()
    caller = threading.get_ident()

    def endless(tx):
        tx.execute(INSERT)
        tx.connection.driver_connection.create_function("began", 0, began.set)
        rows = tx.execute(text("select 1 union all select 2"))
        if not has_rows:
            rows.close()
        with pytest.raises(OperationalError, match="interrupted"):
            tx.execute(
                text("with recursive n(i) as (select began() union all select i from n) select max(i) from n")
            )

    with ThreadPoolExecutor(1) as other:
        done = other.submit(lambda: began.wait(60) and store.cut(caller))
        with pytest.raises(StoreError, match="ended from outside"):
            store.run(handled(endless))
        assert done.result()
    assert kept(store) == []


def test_it_is_cut_where_no_thread_is_to_be_had(store, monkeypatch):
    start = threading.Thread.start

    def refused(thread):
        if thread.name == "surehook-inbox-cut":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)

    def handler(tx):
        tx.execute(INSERT)
        cut(store)

    with pytest.raises(StoreError, match="ended from outside"):
        store.run(handled(handler))
    assert kept(store) == []


@pytest.mark.parametrize("has_begun", [False, True], ids=["before", "as it waits"])
def test_one_that_waits_for_another_process_is_cut_without_waiting_for_it(store, has_begun):
    """Whether it is at that already, nobody can tell: where not, nothing has begun, and it is cut at once."""
    caller, begins, goes_on = [], threading.Event(), threading.Event()

    def waits(transaction):
        caller.append(threading.get_ident())
        begins.set()
        assert has_begun or goes_on.wait(60)
        transaction.connection.execute(INSERT)

    with store.engine.connect() as other, ThreadPoolExecutor(2) as threads:
        other.exec_driver_sql("BEGIN IMMEDIATE")
        waiting = threads.submit(store.run, waits)
        assert begins.wait(60)
        is_cut = threads.submit(store.cut, caller[0]).result(timeout=5)  # SQLite would try for 10 s
        goes_on.set()
        assert is_cut or has_begun
        other.rollback()
        with pytest.raises(StoreError):
            waiting.result()
    assert not store.turn.locked()
    assert kept(store) == []


def test_a_handler_has_ended_what_was_begun_and_no_error_has(store):
    """While SQLite waits for another process, it has begun nothing, and nothing was written."""
    seen = []

    class Asked(Writer):
        def _open(self, connection):
            seen.append(open_transactions.has_ended((connection, self)))
            super()._open(connection)

    writer = Asked(WriterLock(store.turn))
    with store.engine.connect() as connection:
        connection.info[HANDLING] = connection
        writer.about_to(connection)
        seen.append(open_transactions.has_ended((connection, writer)))
        connection.exec_driver_sql("rollback")
        seen.append(open_transactions.has_ended((connection, writer)))
        connection.info[FAILED_WITHIN] = True
        seen.append(open_transactions.has_ended((connection, writer)))
        del connection.info[HANDLING], connection.info[FAILED_WITHIN]
    writer.end()
    assert seen == [False, False, True, False]


def test_one_whose_connection_its_handler_has_closed_gives_its_turn(store):
    """Its driver's connection is the pool's by then: nothing of it is touched."""

    def handler(tx):
        tx.execute(INSERT)
        own = tx.connection.driver_connection
        with suppress(StoreError):
            tx.close()
        cut(store)
        assert not store.turn.locked()
        count = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000) select count(*) from n"
        assert own.execute(count).fetchone() == (1_000_000,)

    with pytest.raises(StoreError):
        store.run(handled(handler))
    assert kept(store) == []


@pytest.mark.parametrize(
    ("url", "is_in_memory"),
    [
        ("sqlite:////srv/app.db", False),
        ("sqlite:///memory.db", False),
        ("sqlite://", True),
        ("sqlite:///:memory:", True),
        ("sqlite:///file::memory:?cache=shared&uri=true", True),
        ("sqlite:///file:app?mode=memory&cache=shared&uri=true", True),
    ],
)
def test_a_database_in_memory_is_known(url, is_in_memory):
    connection: Any = SimpleNamespace(engine=SimpleNamespace(url=make_url(url)))
    assert deferred_begin._is_in_memory(connection) is is_in_memory


def test_a_transaction_that_is_over_is_nobodys_to_cut(store):
    """Its connection is perhaps another's by now."""
    writer = Writer(WriterLock(store.turn))
    with store.engine.connect() as connection:
        writer.about_to(connection)
        connection.rollback()
        writer.over()
        writer.end()
        connection.execute(INSERT)  # of the next one
        assert writer.cut(connection)
        connection.commit()
    assert kept(store) == ["a"]


def test_whoever_writes_as_fast_as_it_can_keeps_nothing(store):
    """A statement that has begun when the transaction is rolled back goes on in one of its own, which nobody has to commit."""
    caller = threading.get_ident()
    for _ in range(40):
        writes = threading.Event()

        def restless(tx, writes=writes):
            while True:
                tx.execute(INSERT)
                writes.set()

        with ThreadPoolExecutor(1) as other:
            done = other.submit(lambda writes=writes: writes.wait(60) and store.cut(caller))
            with pytest.raises(StoreError):
                store.run(handled(restless))
            assert done.result()
    assert kept(store) == []
