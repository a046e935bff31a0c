"""`surehook outbox`, on a SQLite file of an application."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from surehook.outbox import Outbox
from tests.cli.conftest import Run
from tests.cli.fake_api import KEY, answer, fake_api

DATABASE = ("--database", "sqlite:///app.db")


@pytest.fixture
def tables(surehook: Run, tmp_path: Path) -> Path:
    ran = surehook("outbox", "upgrade", *DATABASE)
    assert (ran.code, ran.err) == (0, "the tables are there now\n")
    return tmp_path / "app.db"


def put(tables: Path, *types: str) -> list[str]:
    connection, outbox = sqlite3.connect(tables), Outbox(tenant="acme")
    with connection:
        ids = [outbox.put(connection, type, {"n": 1}, subject="doc_42") for type in types]
    connection.close()
    return ids


def test_the_tables_are_made_once_and_printed_for_each_database(surehook: Run, tables: Path) -> None:
    assert surehook("outbox", "upgrade", *DATABASE).err == "the tables were there already\n"
    for dialect in ("sqlite", "postgresql", "mysql", "mariadb"):
        ran = surehook("outbox", "ddl", "--dialect", dialect, "--table", "app.events")
        assert ran.code == 0 and "CREATE TABLE app.events (" in ran.out
    ran = surehook("outbox", "ddl", "--dialect", "sqlite", "--down")
    assert ran.out.splitlines()[-1] == "DROP TABLE surehook_outbox;"
    assert surehook("outbox", "ddl", "--dialect", "oracle").code == 2
    assert surehook("outbox", "ddl", "--table", "a b").code == 5


def test_what_is_printed_makes_the_tables(surehook: Run, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.executescript(surehook("outbox", "ddl", "--dialect", "sqlite").out)
    Outbox(tenant="acme").put(connection, "a", 1)
    connection.executescript(surehook("outbox", "ddl", "--dialect", "sqlite", "--down").out)
    connection.close()


def test_what_waits_is_counted_and_listed(surehook: Run, tables: Path) -> None:
    empty = surehook("outbox", "status", *DATABASE, "--json").json
    assert empty == {"waiting": 0, "refused": 0, "oldest_at": None, "lag_s": 0.0}
    assert surehook("outbox", "list", *DATABASE).err == "nothing waits\n"
    ids = put(tables, "document.signed", "document.viewed")
    found = surehook("outbox", "status", env={"SUREHOOK_OUTBOX_URL": "sqlite:///app.db"})
    assert "waiting    2" in found.out
    rows = surehook("outbox", "list", *DATABASE, "--json").json["data"]
    assert [(row["id"], row["type"], row["subject"]) for row in rows] == [
        (ids[0], "document.signed", "doc_42"), (ids[1], "document.viewed", "doc_42"),
    ]  # fmt: skip
    assert ids[0] in surehook("outbox", "list", *DATABASE, "--limit", "1").out


def test_what_waits_is_published_and_what_is_refused_is_put_aside(surehook: Run, tables: Path) -> None:
    ids = put(tables, "document.signed", "document.viewed")
    refusal = {
        "status": 422,
        "code": "unknown_tenant",
        "detail": "There is no tenant acme.",
        "field": "tenant",
    }
    taken = answer(202, [{"id": ids[0], "deliveries": 1}, refusal])
    with fake_api(**{"POST /v1/events/batch": taken}) as api:
        ran = surehook("outbox", "flush", *DATABASE, "--server", api.url, "--api-key", KEY)
    assert (ran.code, ran.out) == (8, "")
    assert (
        ran.err.endswith("1 published, 1 put aside\n") and f"put aside: {ids[1]}, unknown_tenant" in ran.err
    )
    (row,) = surehook("outbox", "list", *DATABASE, "--refused", "--json").json["data"]
    assert (row["id"], row["code"]) == (ids[1], "unknown_tenant")
    assert "unknown_tenant" in surehook("outbox", "list", *DATABASE, "--refused").out
    assert surehook("outbox", "retry", *DATABASE).err == "wait again: 1\n"
    assert surehook("outbox", "list", *DATABASE, "--refused").err == "nothing was put aside\n"
    assert surehook("outbox", "prune", *DATABASE, "--older", "0s", "--yes").err == "deleted: 0\n"
    asked = surehook("outbox", "prune", *DATABASE, "--older", "0s")
    assert asked.code == 2 and "add --yes" in asked.err


def test_mistakes_are_named(surehook: Run, tmp_path: Path) -> None:
    ran = surehook("outbox", "status")
    assert ran.code == 2 and "SUREHOOK_OUTBOX_URL" in ran.err
    ran = surehook("outbox", "status", *DATABASE)
    assert ran.code == 2 and "there is no file app.db" in ran.err
    assert not (tmp_path / "app.db").exists()
    sqlite3.connect(tmp_path / "app.db").close()
    for command in ("status", "run", "flush"):
        ran = surehook("outbox", command, *DATABASE)
        assert ran.code == 6 and "surehook outbox upgrade" in ran.err
    ran = surehook("outbox", "status", "--database", "oracle://user:secret@host/x")
    assert ran.code == 2 and "secret" not in ran.err


def test_the_table_may_be_a_setting(surehook: Run) -> None:
    env = {"SUREHOOK_OUTBOX_TABLE": "app_outbox", "SUREHOOK_OUTBOX_URL": "sqlite:///app.db"}
    assert surehook("outbox", "upgrade", env=env).code == 0
    assert surehook("outbox", "status", "--json", env=env).json["waiting"] == 0
    assert surehook("outbox", "status", "--table", "others", env=env).code == 6
    ledger = {"SUREHOOK_OUTBOX_TABLE": "app_outbox", "SUREHOOK_DATABASE_URL": "sqlite:///app.db"}
    assert surehook("outbox", "status", "--json", env=ledger).json["waiting"] == 0
    assert "CREATE TABLE app_outbox (" in surehook("outbox", "ddl", env=env).out


def begun(tables: Path, command: str, url: str) -> subprocess.Popen[str]:
    words = ["outbox", command, "--database", f"sqlite:///{tables}", "--server", url, "--api-key", KEY]
    return subprocess.Popen([sys.executable, "-m", "surehook", *words], stderr=subprocess.PIPE, text=True)


def test_run_publishes_what_comes_later_and_ends_well_when_it_is_told_to(tables: Path) -> None:
    taken = answer(202, [{"id": "evt_1", "deliveries": 1}])
    with fake_api(**{"POST /v1/events/batch": taken}) as api:
        process = begun(tables, "run", api.url)
        assert process.stderr is not None and "publishing to" in process.stderr.readline()
        put(tables, "document.signed")
        until = time.monotonic() + 20
        with contextlib.closing(sqlite3.connect(tables)) as connection:
            while connection.execute("select count(*) from surehook_outbox").fetchone() != (0,):
                assert time.monotonic() < until
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
        process.stderr.close()
    assert (process.wait(), said) == (0, "1 published, 0 put aside\n")


def test_a_flush_that_is_told_to_stop_says_that_rows_wait(tables: Path) -> None:
    put(tables, "document.signed")
    with fake_api(**{"POST /v1/events/batch": answer(503)}) as api:
        process = begun(tables, "flush", api.url)
        assert process.stderr is not None and "rows wait" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
        process.stderr.close()
    assert process.wait() == 130
    assert "not everything is published: it was told to stop" in said
