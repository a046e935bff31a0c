"""Servers publish the rows of an outbox in their ledger's own database: after the commit, once, in order, whoever dies."""

from __future__ import annotations

import pathlib
import random
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from lab.bench.server import Launch, Server
from surehook.core.outbox_tables import create
from surehook.outbox import Outbox

OUTBOX = Outbox(tenant="acme", table="app.surehook_outbox")


@pytest.fixture
def application(database: str) -> Iterator[Any]:
    with psycopg.connect(database) as connection:
        connection.execute("CREATE SCHEMA app")
        for statement in create("postgresql", "app.surehook_outbox"):
            connection.execute(statement)
        connection.commit()
        yield connection


def server(database: str, folder: pathlib.Path) -> Server:
    folder.mkdir()
    found = Server(
        Launch(
            folder=folder, database_url=database, settings={"SUREHOOK_OUTBOX_TABLE": "app.surehook_outbox"}
        )
    )
    found.start()
    found.wait_ready()
    return found


def put(connection: Any, count: int) -> list[str]:
    ids = [OUTBOX.put(connection, "a", number, subject="doc_42", numbered=True) for number in range(count)]
    connection.commit()
    return ids


def arrived(server: Server) -> list[Any]:
    return list(server.api.pages("/v1/events", tenant="acme"))


def until_empty(connection: Any, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        (left,) = connection.execute("SELECT count(*) FROM app.surehook_outbox").fetchone()
        connection.commit()
        if not left:
            return
    raise AssertionError(f"{left} rows wait")


@pytest.mark.slow
def test_what_is_committed_is_published_by_one_of_two_servers(
    application: Any, database: str, tmp_path: pathlib.Path
) -> None:
    servers = [server(database, tmp_path / name) for name in "ab"]
    try:
        servers[0].api.tenant("acme")
        ids = put(application, 3)
        OUTBOX.put(application, "b", 1)
        application.rollback()
        until_empty(application)
        for _ in range(100):  # looks that find something and looks that find nothing, in turns
            ids += put(application, 1)
            until_empty(application)
        ids += put(application, 1_200)
        OUTBOX.put(application, "c", 1, tenant="nobody")
        application.commit()
        until_empty(application)
        events = arrived(servers[1])
        assert sorted(event["id"] for event in events) == sorted(ids)
        in_order = sorted(events, key=lambda event: event["sequence"])
        assert [event["accepted_at"] for event in in_order] == sorted(
            event["accepted_at"] for event in events
        )
        rows = application.execute("SELECT tenant, code FROM app.surehook_outbox_refused").fetchall()
        assert rows == [("nobody", "unknown_tenant")]
        said = servers[0].log.read_text() + servers[1].log.read_text()
        assert said.count("outbox.said") == 1  # of that row, and no trouble
    finally:
        for each in servers:
            each.stop()


@pytest.mark.slow
def test_what_is_committed_is_published_once_though_its_server_is_killed(
    application: Any, database: str, tmp_path: pathlib.Path
) -> None:
    chance = random.Random(5)
    servers = [server(database, tmp_path / name) for name in "ab"]
    ids: list[str] = []
    try:
        servers[0].api.tenant("acme")
        for number in range(30):
            for _ in range(chance.randrange(20)):
                ids += put(application, chance.randrange(1, 5))
            victim = servers[number % 2]
            victim.kill()
            victim.start()
        for each in servers:
            each.wait_ready()
        until_empty(application)
        events = sorted(arrived(servers[0]), key=lambda event: event["sequence"])
        assert [event["id"] for event in events] == ids
        assert [event["sequence"] for event in events] == list(range(1, len(ids) + 1))
        assert application.execute("SELECT count(*) FROM app.surehook_outbox_refused").fetchone() == (0,)
    finally:
        for each in servers:
            each.stop()
