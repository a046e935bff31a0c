"""The private PostgreSQL server: databases for tests, and everything that may happen to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.servers import Postgres
from tests.servers.sql import SqlError

pytestmark = pytest.mark.slow


def name_of(url: str) -> str:
    return url.rpartition("/")[2]


def test_each_test_gets_an_empty_database_that_is_gone_afterwards(postgres: Postgres):
    with postgres.database() as one, postgres.database() as other:
        postgres.ask("create table mine (n int)", name_of(one))
        with pytest.raises(SqlError, match="42P01"):
            postgres.ask("select * from mine", name_of(other))
    left = postgres.ask(
        f"select datname from pg_database where datname in ('{name_of(one)}', '{name_of(other)}')"
    )
    assert left == []


def test_a_prepared_database_is_filled_once_and_copied(postgres: Postgres, prepared: Callable[..., str]):
    filled: list[str] = []

    def fill(url: str) -> None:
        filled.append(url)
        postgres.ask("create table kept (n int); insert into kept values (7)", name_of(url))

    first, second = prepared(fill, "of_the_fixture"), prepared(fill, "of_the_fixture")
    postgres.ask("delete from kept", name_of(first))
    assert postgres.ask("select n from kept", name_of(second)) == [("7",)]
    assert len(filled) <= 1  # another process of the run may have been the first


def test_what_was_committed_survives_an_immediate_stop_and_a_kill(own_postgres: Postgres):
    own_postgres.ask("create table kept (n int); insert into kept values (1)")
    own_postgres.restart(immediate=True)
    own_postgres.ask("insert into kept values (2)")
    own_postgres.kill()
    assert not own_postgres.alive()
    assert not own_postgres.ready()
    own_postgres.start()
    assert own_postgres.ask("select n from kept order by n") == [("1",), ("2",)]


def test_a_frozen_server_answers_nothing_until_it_is_thawed(own_postgres: Postgres):
    own_postgres.freeze()
    with pytest.raises(TimeoutError):
        own_postgres.ask("select 1", seconds=0.2)
    own_postgres.thaw()
    assert own_postgres.ask("select 1") == [("1",)]
