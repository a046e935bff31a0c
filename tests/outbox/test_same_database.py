"""Servers publish the rows of an outbox in their ledger's own database: after the commit, once, in order, whoever dies."""

from __future__ import annotations

import pathlib
import random
import sqlite3
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


def until_empty(connection: Any, seconds: float = 20.0, table: str = "app.surehook_outbox") -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        (left,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
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


@pytest.mark.slow
def test_application_and_ledger_share_one_file_and_what_is_committed_is_published_once(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "app.db"
    connection = sqlite3.connect(path, timeout=30)
    for statement in (*create("sqlite"), "CREATE TABLE document (name text)"):
        connection.execute(statement)
    chance, outbox, ids = random.Random(5), Outbox(tenant="acme"), list[str]()
    found = Server(
        Launch(
            folder=tmp_path,
            database_url=f"sqlite:///{path}",
            settings={"SUREHOOK_OUTBOX_TABLE": "surehook_outbox"},
        )
    )
    found.start()
    found.wait_ready()
    try:
        found.api.tenant("acme")
        for _ in range(20):
            for _ in range(chance.randrange(10)):
                with connection:
                    connection.execute("INSERT INTO document VALUES ('mine')")
                    ids.append(outbox.put(connection, "a", {"n": 1}, subject="doc_42", numbered=True))
                connection.execute("INSERT INTO document VALUES ('undone')")
                outbox.put(connection, "a", {"n": 2}, subject="doc_42", numbered=True)
                connection.rollback()
            found.kill()
            found.start()
            found.wait_ready()
        until_empty(connection, table="surehook_outbox")
        events = sorted(arrived(found), key=lambda event: event["sequence"])
        assert [event["id"] for event in events] == ids
        assert [event["sequence"] for event in events] == list(range(1, len(ids) + 1))
        assert connection.execute("SELECT count(*) FROM document").fetchone() == (len(ids),)
        assert found.api.metrics()["surehook_outbox_lag_seconds"] == 0
    finally:
        found.stop()
        connection.close()
