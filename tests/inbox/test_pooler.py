"""Through PgBouncer in transaction mode, where sessions share connections, each handler's rows land where they belong."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text

from surehook.inbox import AsyncInbox, Inbox
from surehook.inbox.sql import forgetting
from tests import servers
from tests.inbox.house import House, call, message, partner
from tests.servers.pgbouncer import Mode, PgBouncer

pytestmark = pytest.mark.slow
TABLES = "abc"
EVENTS = 300


@pytest.fixture(scope="module", params=["transaction", "session"])
def pooler(request: pytest.FixtureRequest) -> Iterator[PgBouncer]:
    mode: Mode = request.param
    made = PgBouncer.new(servers.postgres(), mode)
    yield made
    made.close()


def shop(make: Any, url: str) -> Any:
    """An inbox with a handler for each table, all alike but for their statements."""
    inbox = make(url, [partner()])
    for name in TABLES:
        insert = text(f"insert into shop_{name} (event_id) values (:id)")

        def blocks(event: Any, tx: Any, insert: Any = insert) -> None:
            tx.execute(insert, {"id": event.id})

        async def waits(event: Any, tx: Any, insert: Any = insert) -> None:
            await tx.execute(insert, {"id": event.id})

        inbox.on("partner", name, name=name)(blocks if make is Inbox else waits)
    return inbox


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_no_statement_of_one_handler_is_run_for_another(kind, pooler, ground_of, runner):
    """550 of 3,000 events were finalized, and had no row, or one in the table of another source."""
    _, url = ground_of("postgresql", kind)
    direct = House(kind, url, runner).prepare()
    for name in TABLES:
        direct.sql(f"create table shop_{name} (event_id varchar(40))")
    make = Inbox if kind == "sync" else AsyncInbox
    shops = [shop(make, pooler.through(url)) for _ in range(4)]
    names = [TABLES[n % 7 % len(TABLES)] for n in range(EVENTS)]

    async def work() -> None:
        for n, name in enumerate(names):
            request = call(*message(f"{name}{n}", name), at=shops[0].clock.now())
            assert (await received(shops[n % len(shops)], request)).status == 200
        await asyncio.gather(*(worked(one) for one in shops))

    async def received(inbox: Any, request: Any) -> Any:
        return await (inbox.receive(request) if kind == "async" else inbox.receive_async(request))

    async def worked(inbox: Any) -> None:
        await (inbox.work() if kind == "async" else asyncio.to_thread(inbox.work))

    runner.run(work())
    for inbox in shops:
        closed = inbox.close()
        if closed is not None:
            runner.run(closed)
    assert set(direct.states().values()) == {"finalized"}
    for name in TABLES:
        rows = sorted(event_id for (event_id,) in direct.sql(f"select event_id from shop_{name}"))
        assert rows == sorted(f"{one}{n}" for n, one in enumerate(names) if one == name)
    direct.close()


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("statement", ["set app.tenant = 'acme'", "create temporary table mine (n int)"])
def test_what_a_handler_sets_does_not_stay_on_a_backend_that_others_get(
    statement, kind, pooler, ground_of, runner, monkeypatch
):
    """It was taken back after the commit, on whichever backend there was by then: here, on none."""
    monkeypatch.setattr(forgetting, "after_commit", lambda driver, record: None)
    _, url = ground_of("postgresql", kind)
    House(kind, url, runner).prepare().close()
    house = House(kind, pooler.through(url), runner)

    def blocks(event: Any, tx: Any) -> None:
        tx.execute(text(statement))

    async def waits(event: Any, tx: Any) -> None:
        await tx.execute(text(statement))

    house.inbox.on("partner")(blocks if kind == "sync" else waits)
    for n in range(5):
        house.receive(f"evt_{n}")
    house.work()
    assert set(house.states().values()) == {"finalized"}
    asks = "select coalesce(current_setting('app.tenant', true), ''), to_regclass('pg_temp.mine') is null"
    with ThreadPoolExecutor(8) as callers:
        seen = list(
            callers.map(
                lambda _: servers.sql.ask(pooler.port, asks, database=url.rpartition("/")[2]), range(40)
            )
        )
    assert {row for rows in seen for row in rows} == {("", "t")}
    house.close()
