"""What stands in the way of a start is said in one sentence with what to change, and never with the password."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from surehook.core.errors import SettingsError
from surehook.ledgers.postgres.ledger import PostgresLedger
from tests.ledgers.making import NOW
from tests.servers import Postgres, ports
from tests.servers.installed import Missing
from tests.servers.pgbouncer import PgBouncer

SECRET = "hunter2-and-more"


def refusal(runner: asyncio.Runner, url: str) -> SettingsError:
    """Why a ledger on this URL does not open."""
    ledger = PostgresLedger(url)
    with pytest.raises(SettingsError) as caught:
        runner.run(ledger.open(now=NOW))
    assert caught.value.key == "database_url"
    assert caught.value.hint
    assert SECRET not in str(caught.value)
    return caught.value


def warnings(runner: asyncio.Runner, url: str) -> list[str]:
    ledger = PostgresLedger(url)
    runner.run(ledger.open(now=NOW))
    runner.run(ledger.close())
    return ledger.warnings


def through(url: str, **parts: str) -> str:
    """The URL with another user and password."""
    return url.replace("postgres@", f"{parts['user']}:{SECRET}@")


def test_a_port_where_nobody_listens_is_named(runner: asyncio.Runner) -> None:
    port = ports.reserve()
    said = refusal(runner, f"postgresql://surehook:{SECRET}@127.0.0.1:{port}/book")
    assert said.detail == f"nobody listens at 127.0.0.1:{port}"


def test_a_host_that_is_not_known_is_named(runner: asyncio.Runner) -> None:
    said = refusal(runner, f"postgresql://surehook:{SECRET}@nowhere.invalid/book")
    assert said.detail == "the host 'nowhere.invalid' is not known"


def test_a_server_that_says_nothing_is_named(runner: asyncio.Runner) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        taken: list[socket.socket] = []

        async def hang_up() -> None:  # an answer that is no PostgreSQL's
            loop = asyncio.get_running_loop()
            silent.setblocking(False)
            wire, _ = await loop.sock_accept(silent)
            taken.append(wire)
            wire.close()

        async def both() -> SettingsError:
            other = asyncio.create_task(hang_up())
            with pytest.raises(SettingsError) as caught:
                await PostgresLedger(f"postgresql://surehook:{SECRET}@127.0.0.1:{port}/book").open(now=NOW)
            await other
            return caught.value

        said = runner.run(both())
    assert f"127.0.0.1:{port}" in said.detail
    assert SECRET not in str(said)


def test_a_database_that_is_not_there_is_named(runner: asyncio.Runner, postgres: Postgres) -> None:
    said = refusal(runner, postgres.url("not_there"))
    assert "has no database 'not_there'" in said.detail
    assert said.hint == "make it: createdb not_there"


def test_a_role_that_is_not_there_is_named(runner: asyncio.Runner, database: str) -> None:
    said = refusal(runner, through(database, user="stranger"))
    assert 'role "stranger" does not exist' in said.detail


def test_a_url_that_cannot_be_read_is_not_shown(runner: asyncio.Runner) -> None:
    said = refusal(runner, f"postgresql://surehook:{SECRET}/x@127.0.0.1:y/book")
    assert "cannot be read" in said.detail


@pytest.fixture
def role(postgres: Postgres) -> Iterator[str]:
    """A role without any right of its own."""
    postgres.ask("drop role if exists plain; create role plain login")
    yield "plain"
    postgres.ask("drop role plain")


def test_a_role_that_may_not_make_tables_is_told_what_to_grant(
    runner: asyncio.Runner, postgres: Postgres, database: str, role: str
) -> None:
    postgres.ask("revoke create on schema public from public", database.rpartition("/")[2])
    said = refusal(runner, through(database, user=role))
    assert "may not make tables in the schema 'public'" in said.detail
    assert said.hint == 'grant create, usage on schema "public" to "plain"'


def test_a_ledger_of_another_role_is_named(
    runner: asyncio.Runner, postgres: Postgres, place: str, role: str
) -> None:
    name = place.rpartition("/")[2]
    postgres.ask("grant create, usage on schema public to plain", name)
    said = refusal(runner, through(place, user=role))
    assert "belongs to another role" in said.detail
    postgres.ask("revoke all on schema public from plain", name)


def test_a_database_that_takes_no_writes_is_refused(
    runner: asyncio.Runner, postgres: Postgres, database: str
) -> None:
    name = database.rpartition("/")[2]
    postgres.ask(f"alter database {name} set default_transaction_read_only = on")
    assert "read-only" in refusal(runner, database).detail


def test_a_database_of_another_encoding_is_refused(runner: asyncio.Runner, postgres: Postgres) -> None:
    postgres.ask("create database latin template template0 encoding 'LATIN1' locale 'C'")
    assert "LATIN1" in refusal(runner, postgres.url("latin")).detail
    postgres.ask("drop database latin")


def test_what_weakens_the_promise_is_a_warning(
    runner: asyncio.Runner, postgres: Postgres, database: str
) -> None:
    """The servers of tests do not wait for the disk."""
    assert [one.split()[0] for one in warnings(runner, database)] == ["fsync", "full_page_writes"]
    postgres.ask(f"alter database {database.rpartition('/')[2]} set synchronous_commit = off")
    assert "synchronous_commit is off" in warnings(runner, database)[-1]


def test_commits_wait_for_the_disk_whatever_the_database_says(
    runner: asyncio.Runner, postgres: Postgres, database: str
) -> None:
    postgres.ask(f"alter database {database.rpartition('/')[2]} set synchronous_commit = off")

    async def setting() -> str:
        ledger = PostgresLedger(database)
        await ledger.open(now=NOW)
        async with ledger._accepting.lend() as session:
            found: str = await session.value("show synchronous_commit")
        await ledger.close()
        return found

    assert runner.run(setting()) == "on"


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_a_pooler_that_lends_by_the_transaction_is_named(
    runner: asyncio.Runner, postgres: Postgres, database: str, mode: Any
) -> None:
    with pooler(postgres, mode) as pooled:
        said = refusal(runner, pooled.through(database))
    assert "pooler in transaction mode" in said.detail
    assert "pool_mode = session" in str(said.hint)


def test_a_pooler_that_lends_by_the_session_serves(
    runner: asyncio.Runner, postgres: Postgres, database: str
) -> None:
    with pooler(postgres, "session") as pooled:
        assert warnings(runner, pooled.through(database))


class pooler:
    """A PgBouncer while the block runs; the test is skipped where there is none."""

    def __init__(self, server: Postgres, mode: Any) -> None:
        try:
            self._made = PgBouncer.new(server, mode)
        except Missing as missing:
            pytest.skip(str(missing))

    def __enter__(self) -> PgBouncer:
        return self._made

    def __exit__(self, *_: object) -> None:
        self._made.close()


def test_a_standby_is_refused(runner: asyncio.Runner, own_postgres: Postgres) -> None:
    """A server that follows another one; here it follows nobody, which it does not mind."""
    own_postgres.ask("create database book")
    own_postgres.stop()
    (own_postgres.data / "standby.signal").touch()
    own_postgres.start()
    said = refusal(runner, own_postgres.url("book"))
    assert "standby" in said.detail
    assert "target_session_attrs" in str(said.hint)
