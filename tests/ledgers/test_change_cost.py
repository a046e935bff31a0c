"""What a change costs a ledger: on the way of events every statement takes its time, on SQLite from everybody's one writer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from surehook.ledgers.postgres.ledger import PostgresLedger
from surehook.ledgers.sqlite import SqliteLedger
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW

# Beginning, what is changed, version, note, commit; all of it in one on PostgreSQL, where each is a way to the server.
CHANGE = {SqliteLedger: 5, PostgresLedger: 1}


async def statements(desk: Desk, work: Callable[[], Awaitable[Any]]) -> list[str]:
    """What the ledger says to its database meanwhile, on the connections of management."""
    said: list[str] = []
    ledger = desk.ledger
    if isinstance(ledger, SqliteLedger):
        connections: list[Any] = [
            session.connection for session in (ledger._writing, ledger._reading, ledger._listing)
        ]
        for connection in connections:
            connection.set_trace_callback(said.append)
        await work()
        for connection in connections:
            connection.set_trace_callback(None)
    elif isinstance(ledger, PostgresLedger):
        sessions = [
            session
            for pool in (ledger._working, ledger._managing, ledger._listing)
            for session in pool._sessions
        ]
        with ExitStack() as stack:
            for session in sessions:
                connection = await session.connected()
                stack.enter_context(connection.query_logger(lambda record: said.append(record.query)))
            await work()
            await asyncio.sleep(0)  # it tells a turn later
    else:
        pytest.skip("it says nothing: this book is memory")
    return said


async def test_a_change_takes_a_handful_of_statements(desk: Desk) -> None:
    changes = {"event_types": ("a", "b"), "url": "https://other.example/"}

    async def change() -> None:
        assert await desk.ledger.change_endpoint(desk.endpoint, changes, now=NOW + 1) is not None

    assert len(await statements(desk, change)) == CHANGE[type(desk.ledger)]


async def test_a_change_is_learnt_with_one_statement(desk: Desk) -> None:
    since = await desk.ledger.version()
    other = await desk.new_endpoint()
    await desk.ledger.change_endpoint(desk.endpoint, {"status": "paused"}, now=NOW + 1)
    await desk.ledger.rotate_secret(desk.make.secret(desk.endpoint), old_expires_at=NOW + 9)
    found: list[Any] = []

    async def learn() -> None:
        found.append(await desk.ledger.changes(since, limit=100))

    said = await statements(desk, learn)
    assert len(said) == 1
    assert {one.id for one in found[0].rows.endpoints} == {desk.endpoint, other}
    assert [one.endpoint for one in found[0].rows.secrets].count(desk.endpoint) == 2


MANAGES = """
import asyncio, sys
from surehook.core.model import Endpoint, EventType, Secret, Tenant
from surehook.ledgers.sqlite import SqliteLedger
async def manage():
    ledger = SqliteLedger(sys.argv[1])
    await ledger.open(now=0)
    endpoint = Endpoint(b"e" * 16, "t", "https://a.example/", ("*",), None, "active", None, 0, "none", {}, None, 0, 0)
    await ledger.add_tenant(Tenant("t", "T", False, 0))
    await ledger.add_event_type(EventType("a.b", None, None, "1", None, 0))
    await ledger.add_endpoint(endpoint, Secret(b"s" * 16, endpoint.id, "v1", b"m" * 32, 0, None))
    assert await ledger.change_endpoint(endpoint.id, {"status": "paused"}, now=1) == await ledger.endpoint(endpoint.id)
    assert await ledger.remove_endpoint(endpoint.id) and await ledger.remove_tenant("t")
    await ledger.close()
    print(*(name for name in ("sqlalchemy", "alembic") if name in sys.modules))
"""


async def migrated(path: str) -> None:
    """A book at its head: migrations do load it."""
    ledger = SqliteLedger(path)
    await ledger.open(now=NOW)
    await ledger.close()


def test_no_change_loads_what_composes_lists(tmp_path: Path) -> None:
    """Loading it takes a quarter of a second of processor, in which the loop is late."""
    path = str(tmp_path / "book.db")
    asyncio.run(migrated(path))
    code = [sys.executable, "-c", MANAGES, path]
    loaded = subprocess.run(code, capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []
