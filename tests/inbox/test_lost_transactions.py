"""Transactions that a handler loses, or would keep in spite of the inbox: each is the event's failure, counted and told, and the
connection that it was lost on does no harm to others."""

from __future__ import annotations

import contextlib
import os

import pytest
from sqlalchemy import text

from surehook.core.errors import SettingsError
from surehook.inbox import Backoff, Rules
from surehook.inbox.log_limits import TEXT_MOST, log_text
from surehook.inbox.sql import engines
from surehook.inbox.testing import Trial
from tests.inbox.house import House, known_as_quick, partner

KINDS = ["sync", "async"]
TRIES = Backoff(first_s=1, factor=1, attempts=2, jitter=0)


@pytest.fixture
def houses(ground_of, runner):
    """Makes prepared houses, and closes them."""
    made = []

    def make(kind="sync", database="postgresql", **options):
        made.append(House(*ground_of(database, kind), runner, **options).prepare())
        return made[-1]

    yield make
    for house in made:
        house.close()


def worked(house, turns=4):
    """Work as often as a retry is due."""
    for _ in range(turns):
        with contextlib.suppress(Exception):  # of `work`, which raises what the database says
            house.work()
        house.clock.passes(2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_deadlock_in_a_batch_is_no_failure_of_the_handler_that_is_its_victim(houses, caplog, kind):
    """The batch has locked the rows of all its handlers, in an order that none of them has chosen."""
    house = houses(kind, backoff=TRIES)
    house.sql(
        "create function deadlocks() returns int language plpgsql as $$ begin raise exception 'mine' "
        "using errcode = '40P01'; end $$"
    )
    statement, calls = text("select deadlocks()"), []

    def blocking(event, tx):
        calls.append(event.id)
        house.write(tx, event.id)
        if calls == ["one", "two"]:
            tx.execute(statement)

    async def waiting(event, tx):
        calls.append(event.id)
        await house.write(tx, event.id)
        if calls == ["one", "two"]:
            await tx.execute(statement)

    house.inbox.on("partner", "*")(waiting if kind == "async" else blocking)
    known_as_quick(house.inbox)
    for name in ("one", "two", "three"):
        house.receive(name)
    house.work()
    assert calls == ["one", "two", "one", "two", "three"], "each in a transaction of its own"
    assert house.sql("select attempts, state from surehook_inbox_runs") == [(1, "finalized")] * 3
    assert sorted(house.effects()) == ["one", "three", "two"]
    assert "failed" not in caplog.text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("code", ["40001", "40P01", "55P03", "57014", "53200", "57P01"])
def test_a_commit_that_is_refused_as_if_it_would_pass_is_the_events_failure(houses, caplog, kind, code):
    house = houses(kind, backoff=TRIES)
    house.sql(
        "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'mine' "
        f"using errcode = '{code}'; end $$"
    )
    house.sql(
        "create constraint trigger refuses after insert on effects deferrable initially deferred for each row "
        "when (new.word = 'poison') execute function refuse()"
    )
    seen = house.on()
    for name in ("one", "two", "three"):
        house.receive(name, word="poison" if name == "two" else "good")
    worked(house)

    assert house.states() == {"one": "finalized", "two": "dead", "three": "finalized"}
    assert house.effects() == ["one", "three"]
    (dead,) = house.events(id="two")
    assert (dead.code, dead.attempts) == ("commit_failed", 2)
    assert len([one for one in seen if one.id == "two"]) <= 2 * (1 + 6), (
        "each attempt, and the batch before it"
    )
    assert "attempt 2 failed (commit_failed)" in caplog.text


def test_a_handler_that_holds_the_loop_for_longer_than_its_transaction_may_last_has_failed(houses, caplog):
    house = houses("async", backoff=TRIES, rules=Rules(lease_ms=1_000))

    @house.inbox.on("partner", "document.slow")
    async def slow(event, tx):
        await house.write(tx, event.id)
        house.clock.passes(0.6)  # as `time.sleep` does: nothing else of the loop goes on

    house.receive("evt_1", "document.slow")
    worked(house)

    (dead,) = house.events(id="evt_1")
    assert (dead.state, dead.code, dead.attempts) == ("dead", "handler_timeout", 2)
    assert house.effects() == []
    assert "(handler_timeout)" in caplog.text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("call", ["commit", "rollback", "close"])
def test_a_handler_that_catches_the_refusal_of_its_commit_keeps_nothing(houses, caplog, database, kind, call):
    house = houses(kind, database, backoff=TRIES)

    if kind == "sync":

        @house.inbox.on("partner")
        def commits(event, tx):
            house.write(tx, event.id)
            with contextlib.suppress(Exception):
                getattr(tx, call)()

    else:

        @house.inbox.on("partner")
        async def commits_too(event, tx):
            await house.write(tx, event.id)
            with contextlib.suppress(Exception):
                await getattr(tx, call)()

    house.receive("evt_1")
    house.receive("evt_2")
    worked(house)

    assert house.effects() == []
    assert house.states() == {"evt_1": "dead", "evt_2": "dead"}
    assert "the inbox commits" in caplog.text


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_handler_sets_for_its_session_is_forgotten_with_its_transaction(houses, kind):
    house = houses(kind)
    shouts = (
        "set statement_timeout = '1s'", "set session characteristics as transaction read only",
        "select pg_advisory_lock(42)", "set search_path = nowhere, public",
        "create temporary table effects (nothing int)",
    )  # fmt: skip

    if kind == "sync":

        @house.inbox.on("partner")
        def sets(event, tx):
            for statement in shouts:
                tx.execute(text(statement))

    else:

        @house.inbox.on("partner")
        async def sets_too(event, tx):
            for statement in shouts:
                await tx.execute(text(statement))

    house.receive("evt_1")
    house.work()
    assert house.states() == {"evt_1": "finalized"}

    for _ in range(3):  # whichever connection it is
        asked = house.sql(
            "select current_setting('statement_timeout'), current_setting('transaction_read_only')"
        )
        assert asked == [("0", "off")]
    here = "database = (select oid from pg_database where datname = current_database())"  # others have theirs
    assert house.sql(f"select count(*) from pg_locks where locktype = 'advisory' and {here}") == [(0,)]
    assert house.effects() == [], "it was the temporary table, which has no such column"
    assert house.receive("evt_2").status == 200


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_may_raise_what_ends_a_generator(houses, kind):
    house = houses(kind, "sqlite", backoff=TRIES)

    def ends(event):
        raise GeneratorExit

    house.on(ends)
    house.receive("evt_1")
    worked(house)

    (dead,) = house.events(id="evt_1")
    assert (dead.state, dead.code) == ("dead", "handler_failed")


def test_hooks_that_exit_are_told_of_as_others_that_fail(houses, caplog):
    house = houses("sync", "sqlite", backoff=Backoff(attempts=1))

    def exits(one):
        raise SystemExit(1)

    heard = []
    house.inbox.observe(exits)
    house.inbox.on_dead(exits)
    house.inbox.on_dead(heard.append)
    house.on(lambda event: 1 / 0)
    house.receive("evt_1")
    house.work()

    assert [one.event_id for one in heard] == ["evt_1"]
    assert "an observer of the inbox failed" in caplog.text
    assert "a hook of the inbox failed" in caplog.text


def test_one_function_for_several_patterns_hears_of_an_event_once(houses):
    house = houses("sync", "sqlite")
    seen = []

    @house.inbox.on("partner", "document.signed")
    @house.inbox.on("partner", "document.*")
    def both(event, tx):
        seen.append(event.id)

    house.receive("evt_1")
    house.work()
    assert seen == ["evt_1"]


def test_a_callable_without_a_hash_is_a_handler_and_information_reaches_whoever_asks_for_it(houses):
    house = houses("sync", "sqlite")
    seen = []

    class Callable:
        __hash__ = None

        def __call__(self, event, tx):
            seen.append(event.id)

    one = Callable()
    house.inbox.on("partner", "document.signed")(one)
    house.inbox.on("partner", "document.*", informational=True)(one)
    (fitting,) = house.inbox.handlers.fitting("partner", "document.signed")
    assert fitting.informational
    house.receive("evt_1")
    house.work()
    assert seen == ["evt_1"]


def test_a_trial_calls_a_function_for_several_patterns_once_as_well(tmp_path):
    with Trial(f"sqlite:///{tmp_path / 'trial.db'}", sources=[partner()]) as trial:

        @trial.on("partner", "document.signed")
        @trial.on("partner", "document.*")
        def both(event, tx):
            return None

        assert len(trial.inbox.handlers.fitting("partner", "document.signed")) == 1


def test_a_child_process_does_not_wait_for_a_transaction_of_its_parent(houses):
    house = houses("sync", "sqlite")
    store = house.inbox.store
    with store.turn:  # as a worker of the parent holds it at the moment of the fork
        child = os.fork()
        if not child:
            os._exit(0 if store.turn.acquire(blocking=False) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_long_error_is_shortened_for_the_log_and_moves_no_cursor():
    text = log_text("Traceback\n" + "x" * 1_000_000 + "\x1b[2J\nValueError: the end")

    assert len(text) < TEXT_MOST + 100
    assert text.startswith("Traceback")
    assert text.endswith("ValueError: the end")
    assert "\x1b" not in text


@pytest.mark.parametrize("option", ["connect_timeout=3", "application_name=shop"])
def test_an_option_that_asyncpg_calls_otherwise_is_named(option):
    with pytest.raises(SettingsError, match=option.partition("=")[0]):
        engines.async_engine(f"postgresql://user@host/app?{option}")


def test_sslmode_is_said_in_asyncpgs_word():
    made = engines.async_engine("postgresql://user@host/app?sslmode=require")
    assert made.url.query == {"ssl": "require"}
