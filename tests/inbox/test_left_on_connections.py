"""What a handler leaves on a connection: it ends with the transaction, and the next one has another connection."""

from __future__ import annotations

import gc
import sqlite3
from contextlib import closing

import pytest
from psycopg.rows import dict_row
from pymysql.cursors import DictCursor
from sqlalchemy import MetaData, Table, func, select, text

from surehook.inbox import Backoff
from tests.inbox.house import House
from tests.inbox.test_hanging import until

INSERT = text("insert into effects (event_id) values (:id)")
SESSION = [
    "set session transaction read only",
    "set\tsession transaction read only",
    "/* for reports */ set session transaction read only",
    "use information_schema",
    "execute immediate 'set session transaction read only'",
    "begin not atomic set session transaction read only; end",
    "create temporary table effects (nothing int)",
]
SETTINGS = {
    "a setting": "pragma query_only=on",
    "a temporary table": "create temporary table effects (event_id text)",
    "a database": "attach ':memory:' as other",
}


@pytest.fixture(params=["sync", "async"], ids=["sqlite-sync", "sqlite-async"])
def house(request, ground_of, runner):
    house = House(
        request.param, ground_of("sqlite", request.param)[1], runner, backoff=Backoff(attempts=1)
    ).prepare()
    yield house
    house.close()


def on(house, blocking, waiting):
    house.inbox.on("partner", "odd")(blocking if house.kind == "sync" else waiting)
    house.on(pattern="document.*")


@pytest.mark.parametrize("house", ["sync"], indirect=True)
def test_rows_that_a_failed_handler_was_reading_keep_nobody_from_storing(house):
    """Its traceback has them until it is collected; their connection was given to others, who could not write with it."""

    def fails(event, tx):
        found = tx.execute(text("select name from sqlite_master"))
        found.fetchone()
        tx.execute(INSERT, {"id": event.id})
        raise ValueError("as rows are to be fetched")

    on(house, fails, fails)
    gc.disable()
    try:
        house.receive("odd", "odd")
        house.inbox.start(1)
        until(lambda: house.states() == {"odd": "dead"})
        for n in range(5):
            assert house.receive(f"evt_{n}", "document.signed").status == 200
        until(lambda: len(house.effects()) == 5)
        house.inbox.stop()
    finally:
        gc.enable()


@pytest.mark.parametrize("house", ["sync"], indirect=True)
def test_rows_that_a_handler_keeps_for_later_cost_a_sender_one_more_try(house):
    """SQLite lets nobody write by a connection whose view of the file is old: that connection is closed."""
    kept = []

    def keeps(event, tx):
        rows = tx.execute(text("select name from sqlite_master"))
        rows.fetchone()
        kept.append(rows)

    on(house, keeps, keeps)
    house.receive("odd", "odd")
    house.work()
    assert house.states() == {"odd": "finalized"}
    with closing(sqlite3.connect(house.inbox.store.engine.url.database)) as other:
        other.execute("insert into effects (event_id) values ('else')")
        other.commit()
    answers = [house.receive(f"evt_{n % 3}", "document.signed").status for n in range(6)]
    assert answers.count(503) <= 1
    assert answers[-3:] == [200, 200, 200]
    house.work()
    assert house.effects()[-3:] == ["evt_0", "evt_1", "evt_2"]


@pytest.mark.parametrize("statement", SETTINGS.values(), ids=SETTINGS)
def test_what_a_statement_sets_is_gone_with_the_transaction(house, statement):
    again = [False, False]

    def blocking(event, tx):
        tx.execute(text(statement))

    async def waiting(event, tx):
        await tx.execute(text(statement))

    on(house, blocking, waiting)
    for n, _ in enumerate(again):
        house.receive(f"odd_{n}", "odd")
        house.work()
        assert house.receive(f"evt_{n}", "document.signed").status == 200
        house.work()
    assert house.effects() == ["evt_0", "evt_1"]
    odd = [house.events(id=f"odd_{n}")[0] for n in range(2)]
    assert all(one.state == "finalized" for one in odd) or {one.code for one in odd} == {"commit_failed"}


def test_what_is_set_on_the_drivers_connection_is_gone_with_the_transaction(house):
    def blocking(event, tx):
        tx.connection.driver_connection.row_factory = lambda cursor, row: {"no": "rows"}

    async def waiting(event, tx):
        raw = await tx.get_raw_connection()
        raw.driver_connection.row_factory = lambda cursor, row: {"no": "rows"}

    on(house, blocking, waiting)
    house.receive("odd", "odd")
    house.work()
    house.receive("evt_1", "document.signed")
    house.work()
    assert house.effects() == ["evt_1"]
    assert house.inbox.store.engine.pool.checkedout() == 0


@pytest.fixture
def on_server(request, ground_of, runner):
    database, kind = request.param
    house = House(kind, ground_of(database, kind)[1], runner, backoff=Backoff(attempts=1)).prepare()
    yield house
    house.close()


def tells_how_to_give_rows(event, tx):
    own = tx.connection.driver_connection
    if hasattr(own, "row_factory"):
        own.row_factory = dict_row
    else:
        own.cursorclass = DictCursor


def later_ones_are_handled(house):
    """By the one connection of a worker, after the odd one's."""
    house.receive("odd", "odd")
    house.work()
    for n in range(3):
        assert house.receive(f"evt_{n}", "document.signed").status == 200
        house.work()
    assert house.effects() == ["evt_0", "evt_1", "evt_2"]
    assert house.inbox.store.engine.pool.checkedout() == 0


@pytest.mark.parametrize("statement", SESSION)
@pytest.mark.parametrize(
    "on_server", [("mariadb", "sync"), ("mariadb", "async")], ids="-".join, indirect=True
)
def test_what_mariadb_was_told_for_the_session_is_gone_with_the_transaction(on_server, statement):
    """Nothing was processed after it, and half of the accepts were 503, until a restart."""

    def blocking(event, tx):
        tx.execute(text(statement))

    async def waiting(event, tx):
        await tx.execute(text(statement))

    on(on_server, blocking, waiting)
    later_ones_are_handled(on_server)


@pytest.mark.parametrize(
    "on_server", [("postgresql", "sync"), ("postgresql", "async")], ids="-".join, indirect=True
)
def test_the_options_of_a_handlers_connection_are_no_others(on_server):
    """They were those of the inbox's own statements: with psycopg, each attempt failed."""
    given = []

    def blocking(event, tx):
        given.append(tx.execution_options(stream_results=True))

    async def waiting(event, tx):
        given.append(await tx.execution_options(stream_results=True))

    on(on_server, blocking, waiting)
    later_ones_are_handled(on_server)
    assert on_server.states()["odd"] == "finalized"
    assert (
        "stream_results"
        not in (given[0] if on_server.kind == "sync" else given[0].sync_connection).get_execution_options()
    )


@pytest.mark.parametrize(
    "on_server", [("mariadb", "sync"), ("mariadb", "async")], ids="-".join, indirect=True
)
def test_a_lock_of_mariadb_is_gone_with_the_transaction(on_server):
    """An idle connection of the pool held it, and everybody who asked for it waited."""
    takes = text("select get_lock('report', 0)")

    def blocking(event, tx):
        assert tx.scalar(takes) == 1

    async def waiting(event, tx):
        assert await tx.scalar(takes) == 1

    on(on_server, blocking, waiting)
    later_ones_are_handled(on_server)
    until(lambda: on_server.sql("select is_free_lock('report')") == [(1,)])


@pytest.mark.parametrize(
    "on_server", [("postgresql", "sync"), ("mariadb", "sync")], ids="-".join, indirect=True
)
def test_how_a_driver_was_told_to_give_rows_is_gone_with_the_transaction(on_server):
    """Each event after it failed as `commit_failed`."""

    on(on_server, tells_how_to_give_rows, tells_how_to_give_rows)
    later_ones_are_handled(on_server)


@pytest.mark.parametrize(
    "on_server", [("postgresql", "sync"), ("mariadb", "sync")], ids="-".join, indirect=True
)
def test_so_it_is_where_the_handler_closes_its_connection(on_server):
    """It went back to the pool with that, and the worker had it next."""

    def blocking(event, tx):
        tells_how_to_give_rows(event, tx)
        tx.close()

    on(on_server, blocking, blocking)
    later_ones_are_handled(on_server)


@pytest.mark.parametrize("on_server", [("postgresql", "async")], ids="-".join, indirect=True)
def test_the_next_transaction_has_another_connection_of_asyncpg(on_server):
    """A codec was set on it, say, and a third of the events after it were unreadable."""
    seen = []

    async def waiting(event, tx):
        seen.append((await tx.get_raw_connection()).driver_connection)

    on(on_server, waiting, waiting)
    for n in range(2):
        on_server.receive(f"odd_{n}", "odd")
        on_server.work()
    assert seen[0] is not seen[1]


def test_where_a_handler_has_another_schema_the_inbox_looks_for_its_own_tables(house):
    """On SQLite the transaction begins with the handler's first statement, and with what the inbox looks at again."""
    elsewhere = {"schema_translate_map": {None: "temp"}}
    there = select(func.count()).select_from(Table("sqlite_master", MetaData()))

    def blocking(event, tx):
        tx.execution_options(**elsewhere).execute(there)
        tx.execute(INSERT, {"id": event.id})

    async def waiting(event, tx):
        await (await tx.execution_options(**elsewhere)).execute(there)
        await tx.execute(INSERT, {"id": event.id})

    on(house, blocking, waiting)
    house.receive("odd", "odd")
    house.work()
    assert (house.states(), house.effects()) == ({"odd": "finalized"}, ["odd"])
