"""Statements that are told to the driver itself."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from surehook.inbox.rules import Rules
from surehook.inbox.sql import direct, engines
from surehook.inbox.sql.store_errors import translated
from surehook.ports.inbox import StoreUnavailable
from tests import servers
from tests.inbox.house import House
from tests.inbox.test_engines import cut


def test_what_the_database_refuses_is_an_error_as_sqlalchemys_are(tmp_path) -> None:
    engine = engines.engine(f"sqlite:///{tmp_path / 'app.db'}")
    with engine.connect() as connection, pytest.raises(DBAPIError) as caught:
        direct.say(connection, "RELEASE SAVEPOINT nobody_made")
    assert caught.value.statement == "RELEASE SAVEPOINT nobody_made"
    assert not caught.value.connection_invalidated
    engine.dispose()


def test_a_connection_that_is_lost_under_it_is_no_fault_of_the_statement() -> None:
    server = servers.postgres()
    with server.database() as url:
        engine = engines.engine(url)
        with engine.connect() as connection:
            connection.execute(text("select 1"))
            cut(server, url)
            with pytest.raises(StoreUnavailable), translated():
                direct.say(connection, "SAVEPOINT one")
            assert connection.invalidated
        engine.dispose()


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_transaction_that_handles_may_idle_as_long_as_all_handlers_of_an_event_may_take(
    kind, ground_of, runner
) -> None:
    house = House(*ground_of("postgresql", kind), runner, rules=Rules(lease_ms=60_000)).prepare()
    seen = []
    asked = text("select current_setting('idle_in_transaction_session_timeout')")

    def ask(event, tx):
        seen.append(tx.execute(asked).scalar())

    async def ask_and_wait(event, tx):
        seen.append((await tx.execute(asked)).scalar())

    house.inbox.on("partner")(ask if kind == "sync" else ask_and_wait)
    for number in range(3):
        house.receive(f"e{number}")
    house.work()
    assert seen == [f"{house.inbox.rules.within_s:g}s"] * 3
    house.close()
