"""Through PgBouncer in transaction mode, where sessions share connections, each handler's rows land where they belong."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from surehook.inbox import AsyncInbox, Inbox
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
