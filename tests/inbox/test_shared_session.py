"""Handlers of one batch share a session: what one of them sets there, the others do not see."""

from __future__ import annotations

from collections import Counter

import pytest
from sqlalchemy import event, text

from surehook.inbox import Backoff
from surehook.inbox.sql.driver_connections import GivenConnection
from surehook.inbox.sql.handler_statements import changes_session, ends_for_good, outlasts_transaction
from tests.inbox.house import House, known_as_quick

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


@pytest.mark.parametrize("house", SERVERS, ids="-".join, indirect=True)
def test_an_end_that_cannot_be_found_out_is_refused_before_it_is_said(house, caplog):
    is_postgresql = house.inbox.store.engine.dialect.name == "postgresql"
    defined(
        house, INSERT.replace(":id", "'x'"), "prepare transaction 'x'" if is_postgresql else "commit release"
    )
    received(house)
    for _ in range(3):
        house.work()
        house.clock.passes(3600)
    assert effects(house) == {"evt_1": 1, "evt_3": 1, "evt_5": 1}
    assert {one.code for one in house.events() if one.type == "odd"} == {"commit_failed"}
    assert "the inbox commits" in caplog.text


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
    assert changes_session(statement) == changes
    assert outlasts_transaction(statement, is_postgresql=False) == outlasts
    assert outlasts_transaction(statement, is_postgresql=True) == outlasts_pg
    assert not ends_for_good(statement)


@pytest.mark.parametrize(
    ("statement", "ends"),
    [
        ("prepare transaction 'x'", True),
        ("XA PREPARE 'x'", True),
        (" commit and no chain release", True),
        ("rollback work\nrelease", True),
        ("prepare transactions as select 1", False),
        ("release savepoint a", False),
        ("rollback to savepoint a", False),
        ("select 'commit release'", False),
    ],
)
def test_ends_of_a_transaction_that_are_not_to_be_found_out(statement, ends):
    assert ends_for_good(statement) == ends


@pytest.mark.parametrize(
    "ground", [(one, "django") for one in ("postgresql", "mariadb", "sqlite")], ids="-".join, indirect=True
)
def test_so_too_with_the_connection_of_django(houses):
    house = houses()

    @house.inbox.on("partner", "*")
    def works(event, tx):
        with tx.cursor() as cursor:
            if event.type == "odd":
                cursor.execute("create temporary table mine (n int)")
            cursor.execute("insert into effects (event_id) values (%s)", [event.id])

    ended = []
    house.inbox.observe(ended.append)
    received(house, 4)
    known_as_quick(house.inbox)
    worker = house.inbox.worker()
    house.turn(worker)
    assert house.effects() == ["evt_0"], "the batch ended with it"
