"""Handlers of one batch share a session: what one of them sets there, the others do not see."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import pytest
from psycopg.sql import SQL, Identifier, Literal
from sqlalchemy import create_engine, event, text
from sqlalchemy.exc import DBAPIError

from surehook.inbox import Backoff, Inbox
from surehook.inbox.sql.driver_connections import GivenConnection
from surehook.inbox.sql.handler_statements import traces
from tests.inbox.house import House, known_as_quick, partner

INSERT = "insert into effects (event_id) values (:id)"
SERVERS = [("postgresql", "sync"), ("postgresql", "async"), ("mariadb", "sync"), ("mariadb", "async")]
on_servers = pytest.mark.parametrize("house", SERVERS, ids="-".join, indirect=True)
on_postgresql = pytest.mark.parametrize("house", SERVERS[:2], ids="-".join, indirect=True)
on_mariadb = pytest.mark.parametrize("house", SERVERS[2:], ids="-".join, indirect=True)
SET = {
    "postgresql": ["set local lock_timeout = '4321ms'", "select set_config('lock_timeout', '4321ms', true)"],
    "mariadb": ["set @word = 'mine'", "select 'word' into @word"],
}
SEEN = {"postgresql": "select current_setting('lock_timeout')", "mariadb": "select @word"}


@pytest.fixture
def house(request, ground_of, runner):
    database, kind = request.param
    house = House(kind, ground_of(database, kind)[1], runner, backoff=Backoff(attempts=2)).prepare()
    yield house
    house.close()


def defined(house, *statements, seen=None):
    """A handler of `odd` events that says these, and one of others that asks for something; both write their event's id."""

    def odd(event, tx):
        for one in statements:
            tx.execute(text(one))
        tx.execute(text(INSERT), {"id": event.id})

    def even(event, tx):
        if seen is not None:
            found.append(tx.execute(text(seen)).scalar())
        tx.execute(text(INSERT), {"id": event.id})

    def on(pattern, said):
        async def waiting(event, tx):
            await tx.run_sync(lambda connection: said(event, connection))

        house.inbox.on("partner", pattern)(said if house.kind == "sync" else waiting)

    found = []
    on("odd", odd)
    on("even", even)
    return found


def received(house, count=6):
    for n in range(count):
        house.receive(f"evt_{n}", "even" if n % 2 else "odd")


def effects(house):
    return Counter(event_id for (event_id,) in house.sql("select event_id from effects"))


@pytest.mark.parametrize(
    ("house", "statement"),
    [(one, said) for one in SERVERS for said in SET[one[0]]] + [(SERVERS[3], "select 1; set @word = 'mine'")],
    indirect=["house"],
)
def test_what_a_handler_sets_for_its_transaction_the_others_of_its_batch_do_not_see(house, statement):
    asks = SEEN["postgresql" if house.inbox.store.engine.dialect.name == "postgresql" else "mariadb"]
    (before,) = house.sql(asks)[0]
    seen = defined(house, statement, seen=asks)
    received(house)
    house.work()
    assert seen == [before] * 3
    assert set(house.states().values()) == {"finalized"}


@pytest.mark.parametrize(
    "house", [*SERVERS, ("sqlite", "sync"), ("sqlite", "async")], ids="-".join, indirect=True
)
def test_a_temporary_table_of_one_is_not_there_for_another(house):
    """They failed one after the other: it existed already."""
    is_postgresql = house.inbox.store.engine.dialect.name == "postgresql"
    defined(house, "create temporary table mine (n int)" + (" on commit drop" if is_postgresql else ""))
    received(house, 12)
    house.work()
    assert {(one.state, one.attempts) for one in house.events()} == {("finalized", 1)}


@on_postgresql
def test_what_a_function_of_an_application_sets_the_others_of_its_batch_do_not_see(house):
    house.sql(
        "create function set_tenant() returns text language sql as"
        " $$ select set_config('lock_timeout', '4321ms', true) $$"
    )
    asks = SEEN["postgresql"]
    (before,) = house.sql(asks)[0]
    seen = defined(house, "select set_tenant()", seen=asks)
    received(house)
    house.work()
    assert seen == [before] * 3
    assert set(house.states().values()) == {"finalized"}


@on_servers
def test_where_each_handler_sets_something_none_is_claimed_to_be_given_back(house):
    defined(
        house, SET["postgresql" if house.inbox.store.engine.dialect.name == "postgresql" else "mariadb"][0]
    )
    for n in range(12):
        house.receive(f"evt_{n}", "odd")
    known_as_quick(house.inbox)
    engine, given_back = house.inbox.store.engine, []

    def said(_: object, cursor: object, statement: str, *rest: object) -> None:
        if "attempts=(surehook_inbox_runs.attempts - " in statement:
            given_back.append(statement)

    event.listen(getattr(engine, "sync_engine", engine), "before_cursor_execute", said)
    house.do(house.inbox.work())
    assert {(one.state, one.attempts) for one in house.events()} == {("finalized", 1)}
    assert len(given_back) == 1, "with the first batch, and not with each second one"


@on_servers
def test_those_that_change_rows_only_share_a_transaction_as_before(house):
    defined(house)
    received(house)
    known_as_quick(house.inbox)
    commits = []
    engine = house.inbox.store.engine
    event.listen(getattr(engine, "sync_engine", engine), "commit", commits.append)
    house.do(house.inbox.work())
    assert set(house.states().values()) == {"finalized"}
    assert sum(isinstance(one, GivenConnection) for one in commits) == 1


@on_mariadb
def test_a_session_in_which_the_mark_is_not_found_keeps_nothing(house):
    """asyncmy writes bytes with backslashes: no run had those ids, and the effects stood, attempt after attempt."""
    defined(house, "set sql_mode = 'NO_BACKSLASH_ESCAPES'")
    received(house)
    for _ in range(8):
        house.work()
        house.clock.passes(3600)
    assert max(effects(house).values()) == 1
    states = house.states()
    assert all(states[f"evt_{n}"] == "finalized" for n in (1, 3, 5))
    done = [one for one in states if states[one] == "finalized"]
    assert sorted(effects(house)) == sorted(done)


@pytest.mark.parametrize(
    ("house", "statement"),
    [
        (SERVERS[0], "deallocate all"),
        (SERVERS[0], "select 1; deallocate all"),
        (SERVERS[1], "deallocate all"),
    ],
    indirect=["house"],
)
def test_prepared_statements_that_a_handler_takes_away_are_missing_to_nobody_else(house, statement):
    defined(house, statement)
    for _ in range(5):  # drivers prepare what they say again
        received(house, 4)
        house.work()
    for n in range(30):
        assert house.receive(f"evt_1{n:02}", "odd" if n == 7 else "even").status == 200
        house.work()
    assert all(
        one.state == "finalized" and one.attempts == 1
        for one in house.events(limit=100)
        if one.type == "even"
    )


@on_postgresql
def test_statements_that_are_gone_heal_by_themselves(house):
    """Whoever took them away: a pooler between, or a procedure of a handler's."""
    defined(house)
    house.receive("evt_1", "even")
    house.work()
    house.sql("do $$ begin execute 'deallocate all'; end $$")
    answers = [house.receive(f"evt_2{n}", "even").status for n in range(20)]
    assert answers[2:] == [200] * 18
    house.clock.passes(3600)
    house.work()
    house.clock.passes(3600)
    house.work()
    assert set(house.states().values()) == {"finalized"}


@pytest.mark.parametrize("house", [("sqlite", "sync"), ("sqlite", "async")], ids="-".join, indirect=True)
def test_nor_do_they_see_what_one_of_them_says_to_the_drivers_own_connection(house):
    def odd(event, tx):
        tx.connection.cursor().execute("create temporary table mine (n int)")

    async def waiting(event, tx):
        await tx.run_sync(lambda connection: odd(event, connection))

    seen = defined(house, seen="select count(*) from temp.sqlite_master")
    house.inbox.on("partner", "strange")(odd if house.kind == "sync" else waiting)
    for n, kind in enumerate(("even", "strange", "even", "even")):
        house.receive(f"evt_{n}", kind)
    house.work()
    assert (seen, set(house.states().values())) == ([0, 0, 0], {"finalized"})


def test_an_engine_of_the_applications_keeps_its_own_transactions(ground_of):
    """A statement that is gone costs the inbox's connections, and not a transaction of whoever handed the engine in."""
    engine = create_engine(ground_of("postgresql", "sync")[1].replace("postgresql:", "postgresql+psycopg:"))
    inbox = Inbox(engine, [partner()])
    inbox.create_tables()
    with engine.begin() as connection:
        connection.execute(text("create table mine (n int)"))
        with pytest.raises(DBAPIError) as failed, connection.begin_nested():
            connection.execute(text("deallocate nothing"))
        connection.execute(text("insert into mine values (1)"))
    assert not failed.value.connection_invalidated
    with engine.connect() as connection:
        assert connection.execute(text("select n from mine")).scalar() == 1
    inbox.close()
    engine.dispose()


ENDS = {
    "sqlite": ["commit", "END"],
    "postgresql": ["commit", "rollback", "prepare transaction 'x'", "abort"],
    "mariadb": [
        "commit",
        "rollback release",
        "truncate table cache",
        "create table more (n int)",
        "set autocommit = 1",
    ],
}


@pytest.mark.parametrize(
    ("house", "statement"),
    [
        ((database, kind), said)
        for database, ends in ENDS.items()
        for kind in ("sync", "async")
        for said in ends
    ],
    indirect=["house"],
)
def test_a_statement_that_would_end_the_transaction_is_refused_before_it_is_said(house, caplog, statement):
    """What it did stood without the mark; so did what others of its batch had done, and they did it once more."""
    house.sql("create table cache (n int)")
    defined(house, INSERT.replace(":id", "'x'"), statement)
    received(house)
    for _ in range(3):
        house.work()
        house.clock.passes(3600)
    assert effects(house) == {"evt_1": 1, "evt_3": 1, "evt_5": 1}
    odd = [one for one in house.events() if one.type == "odd"]
    assert {(one.state, one.code, one.attempts) for one in odd} == {("dead", "commit_failed", 2)}
    assert "this statement would end the transaction, so it was not said" in caplog.text


@pytest.mark.parametrize(
    ("statement", "changes", "outlasts", "outlasts_pg"),
    [
        ("insert into t values (1)", False, False, False),
        ("  SELECT 1;\n", False, False, False),
        ("with a as (select 1) select * from a", False, False, False),
        ("merge into t using s on (true) when matched then delete", False, True, False),
        ("select set_config('a.b', 'c', true)", True, True, False),
        ("set local role clerk", True, True, False),
        ("/* why */ set role clerk", True, True, False),
        ("/* app */ -- and who\n select 1", False, False, False),
        ("/*! set @a = 1 */", True, True, False),
        ("(select 1) union (select 2)", False, False, False),
        ("((values (1)))", False, False, False),
        ("insert into t values ('a; set b', 'it''s; so', \"into @c\")", False, False, False),
        ("select 1 as n into temp mine", True, True, False),
        ("select 'w'\ninto\n@word", True, True, False),
        ("explain select 1", False, False, False),
        ("show tables", False, False, False),
        ("insert into t values (1); set role clerk", True, True, False),
        ("create temp table t (n int)", True, True, False),
        ("select get_lock('a', 1)", False, True, False),
        ("DEALLOCATE ALL", True, True, True),
        ("select 1; deallocate all", True, True, True),
        ("discard plans", True, True, True),
        ("listen jobs", True, True, True),
        ("notify jobs", False, True, False),
    ],
)
def test_what_a_statement_leaves_is_read_by_its_first_words(statement, changes, outlasts, outlasts_pg):
    on_mariadb, on_postgresql = traces(statement, "mariadb"), traces(statement, "postgresql")
    assert (on_mariadb.changes, on_mariadb.outlasts) == (changes, outlasts)
    assert (on_postgresql.changes, on_postgresql.outlasts, on_postgresql.ends) == (
        changes,
        outlasts_pg,
        False,
    )


@pytest.mark.parametrize(
    ("statement", "dialect", "changes"),
    [
        ("update t set word = 'it\\'s; so'", "mariadb", False),
        ("update t set word = E'it\\'s; so'", "postgresql", False),
        ("select 'C:\\'; set local role clerk; select 'x'", "postgresql", True),
        ("select 1 -- it's\n; set role clerk; -- it's", "postgresql", True),
        ("select 1 -- it's\n; set @a = 'x'", "mariadb", True),
        ("select $$; set role clerk$$, $a$ ; $$ $a$, $1", "postgresql", False),
        ('select 1 as "a;b" from t', "postgresql", False),
        ("select 'a''; set role clerk'", "sqlite", False),
        ("select `it's`; set @a = 1", "mariadb", True),
        ("insert into temperatures values ('set_config', 'temp')", "postgresql", False),
        ("insert into temp (n) values (1)", "mariadb", False),
        ("explain analyze create temp table t as select 1", "postgresql", True),
        ("select set_tenant('acme')", "postgresql", True),
        ("select app.set_tenant ($1)", "postgresql", True),
        ("insert into t select tenant_of(a) from b", "mariadb", True),
        (
            "insert into odd_table (a, b) values (lower($1), now()) on conflict (a) do nothing",
            "postgresql",
            False,
        ),
        ("with mine (a) as (select 1) select count(*), max(a) from mine as t(a)", "postgresql", False),
        (
            "select cast(a as numeric(10, 2)), sum(b) over (partition by c) from t where d in (1)",
            "mariadb",
            False,
        ),
        ("update t set a = coalesce(a, '') || 'set_tenant(1)' where exists (select 1)", "postgresql", False),
        ("select 1 into local temp mine", "postgresql", True),
        ("select 1 into pg_temp.mine", "postgresql", True),
        ("select 'w' into/**/@word", "mariadb", True),
        ("update pg_settings set setting = '1' where name = 'a.b'", "postgresql", True),
        ("select \"set_config\"('a.b', 'c', true)", "postgresql", True),
        (b"set role clerk", "postgresql", True),
        (b"select 1", "postgresql", False),
        (SQL("select {}").format(Literal("; set role clerk")), "postgresql", False),
        (SQL("set role {}").format(Identifier("clerk")), "postgresql", True),
    ],
    ids=str,
)
def test_what_is_silent_hides_nothing_and_shows_nothing(statement, dialect, changes):
    assert traces(statement, dialect).changes == changes


@pytest.mark.parametrize("statement", [SQL("commit"), b"commit", SQL("{} ").format(SQL("rollback"))], ids=str)
def test_the_end_of_a_transaction_is_known_in_what_a_driver_composes(statement):
    assert traces(statement, "postgresql").ends


def test_a_long_literal_is_read_in_bounded_memory_and_time():
    """A literal of 4 MB took some hundred times its size, and one that is not closed the square of its length."""
    tracemalloc.start()
    try:
        assert not traces("insert into t values ('" + "x;" * 500_000 + "')", "mariadb").changes
        assert tracemalloc.get_traced_memory()[1] < 20 * 1_000_000
    finally:
        tracemalloc.stop()
    for dialect in ("mariadb", "postgresql"):
        traces("insert into t values ('" + r"\'" * 500_000, dialect)


@pytest.mark.parametrize(
    ("statement", "outlasts"),
    [
        ("pragma query_only=on", True),
        ("/* why */ PRAGMA query_only=on", True),
        ("-- why\nattach ':memory:' as other", True),
        ("create temp table t (n integer)", True),
        ("/* app */ select 1", False),
        ("insert into t values ('pragma')", False),
        ("set", False),
    ],
)
def test_what_outlasts_a_transaction_of_sqlite_is_read_by_its_first_word(statement, outlasts):
    assert traces(statement, "sqlite").outlasts == outlasts


@pytest.mark.parametrize(
    ("statement", "ends", "ends_mysql"),
    [
        ("prepare transaction 'x'", True, True),
        (" commit and no chain release", True, True),
        ("rollback work", True, True),
        ("END;", True, True),
        ("prepare transactions as select 1", False, False),
        ("release savepoint a", False, False),
        ("rollback to savepoint a", False, False),
        ("ROLLBACK TRANSACTION TO a", False, False),
        ("select 'commit release'", False, False),
        ("insert into t values ('; commit')", False, False),
        ("savepoint commit", False, False),
        ("committed", False, False),
        ("; commit", True, True),
        ("\ufeffcommit", True, True),
        ("/* why */ commit", False, False),
        ("-- why\ncommit", False, False),
        ("rollback /* all */ to savepoint a", False, False),
        ("/*!50000 commit */", False, True),
        ("# why\ncommit", False, False),
        ("set statement max_statement_time = 1 for commit", False, True),
        ("XA PREPARE 'x'", False, True),
        ("xa recover", False, False),
        ("begin", False, True),
        ("begin not atomic select 1; end", False, False),
        ("create temporary table t (n int)", False, False),
        ("create or replace table t (n int)", False, True),
        ("create or replace temporary table t (n int)", False, False),
        ("create /* here */ temporary table t (n int)", False, False),
        ("create temporary sequence s", False, True),
        ("drop temporary table t", False, False),
        ("drop /*!40000 temporary */ table t", False, False),
        ("drop prepare said", False, False),
        ("analyze select 1", False, False),
        ("analyze format=json select 1", False, False),
        ("analyze table t", False, True),
        ("check table t", False, True),
        ("set password = 'x'", False, True),
        ("drop table t", False, True),
        ("set @@autocommit=0", False, True),
        ("set autocommit_more = 1", False, False),
        ("set local autocommit=1", False, True),
        ("set @a = 1, autocommit = 1", False, True),
        ("set @@session.autocommit := 1", False, True),
        ("set @autocommit = 1", False, False),
        ("set @word = 'autocommit'", False, False),
    ],
)
def test_ends_of_a_transaction_are_known_by_their_first_words(statement, ends, ends_mysql):
    assert traces(statement, "postgresql").ends == traces(statement, "sqlite").ends == ends
    assert traces(statement, "mariadb").ends == ends_mysql
