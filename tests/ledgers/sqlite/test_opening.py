"""Settings that must hold, and the schema brought to its head."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from surehook.core.errors import SettingsError
from surehook.ledgers.migrations.head import HEAD
from surehook.ledgers.migrations.script import config, script
from surehook.ledgers.schema import metadata
from surehook.ledgers.sqlite import SqliteLedger
from tests.ledgers import older
from tests.ledgers.making import NOW


async def test_every_connection_waits_for_the_disk(book: SqliteLedger) -> None:
    for session in (book._writing, book._reading, book._listing, book._counting):
        assert session.value("pragma synchronous") == 2
        assert session.value("pragma journal_mode") == "wal"


async def test_the_reading_connection_cannot_write(book: SqliteLedger) -> None:
    with pytest.raises(Exception, match="readonly"):
        book._reading.rows("delete from event")


def test_the_head_is_the_newest_migration() -> None:
    assert ScriptDirectory.from_config(config()).get_heads() == [HEAD]


async def test_the_migrations_make_the_schema(runner: Any, tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    ledger = SqliteLedger(str(path))
    await ledger.open(now=NOW)
    await ledger.close()
    with create_engine(f"sqlite:///{path}").connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    file = sqlite3.connect(path)
    for table in metadata.tables.values():
        (made,) = file.execute("select sql from sqlite_master where name = ?", (table.name,)).fetchone()
        assert ("WITHOUT ROWID" in made) == (table.dialect_options["sqlite"]["with_rowid"] is False), (
            table.name
        )
    wheres = {
        index.name: str(
            index.dialect_options["sqlite"]["where"].compile(compile_kwargs={"literal_binds": True})
        )
        for table in metadata.tables.values()
        for index in table.indexes
        if index.dialect_options["sqlite"]["where"] is not None
    }
    assert len(wheres) == 10
    for name, where in wheres.items():
        (made,) = file.execute("select sql from sqlite_master where name = ?", (name,)).fetchone()
        assert made.split(" WHERE ")[1] == where.replace(f"{name.split('_')[0]}.", "")
    file.close()


def test_a_migration_is_rendered_without_transactions() -> None:
    assert not [one for one in script(None) if one.upper().startswith(("BEGIN", "COMMIT"))]


async def test_a_start_says_what_takes_long_in_an_old_book(
    runner: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Before it begins, and when all is done; a new file and one at the head have nothing to say."""
    path = tmp_path / "book.db"
    with sqlite3.connect(path) as file:
        for statement in script(None, to="0005"):
            file.execute(statement)
    caplog.set_level("INFO", "surehook.ledgers")
    told = []
    for _ in range(2):
        ledger = SqliteLedger(str(path))
        await ledger.open(now=NOW)
        await ledger.close()
        told.append([record.getMessage() for record in caplog.records if record.name == "surehook.ledgers"])
        caplog.clear()
    first, second = told
    assert any("from 0005 to" in one and "CREATE INDEX attempt_ended" in one for one in first)
    assert first[-1] == f"the schema is at {HEAD}"
    assert second == []


async def test_rows_of_the_version_before_are_read_by_this_one(runner: Any, tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    with sqlite3.connect(path) as file:
        for statement in (*script(None, to=older.BEFORE), *older.statements("x'{}'")):
            file.execute(statement)
    file.close()
    await older.upgraded(SqliteLedger(str(path)))


async def test_a_book_of_a_newer_version_is_refused(runner: Any, tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    with sqlite3.connect(path) as file:
        file.execute("create table alembic_version (version_num)")
        file.execute("insert into alembic_version values ('9999')")
    file.close()
    with pytest.raises(SettingsError, match="9999"):
        await SqliteLedger(str(path)).open(now=NOW)


async def test_another_programs_file_is_left_alone(runner: Any, tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    with sqlite3.connect(path) as file:
        file.execute("create table songs (title)")
    file.close()
    content = path.read_bytes()
    with pytest.raises(SettingsError, match="another program"):
        await SqliteLedger(str(path)).open(now=NOW)
    assert path.read_bytes() == content


def test_opening_a_book_that_is_there_imports_no_toolkit(tmp_path: Path) -> None:
    """A restarted server sends again within two seconds; a quarter of one is SQLAlchemy's."""
    program = (
        "import asyncio, sys\n"
        "from surehook.ledgers.sqlite import SqliteLedger\n"
        "async def main():\n"
        "    ledger = SqliteLedger(sys.argv[1])\n"
        "    await ledger.open(now=0)\n"
        "    await ledger.changes(-1, limit=9); await ledger.configuration(None, limit=9); await ledger.breakers(); await ledger.keys()\n"
        "    await ledger.close()\n"
        "asyncio.run(main())\n"
        "print(sorted(name for name in ('sqlalchemy', 'alembic') if name in sys.modules))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "book.db")]
    said = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() for _ in range(2)
    ]
    assert said == ["['alembic', 'sqlalchemy']", "[]"]


async def test_a_file_with_other_tables_is_shared_where_an_outbox_is_among_them(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as application:
        application.execute("create table document (name text)")
        with pytest.raises(SettingsError, match="another program's database"):
            await SqliteLedger(str(path), beside="surehook_outbox").open(now=NOW)
        application.execute("create table surehook_outbox (id text)")
        with pytest.raises(SettingsError, match="another program's database"):
            await SqliteLedger(str(path)).open(now=NOW)
        ledger = SqliteLedger(str(path), beside="surehook_outbox")
        await ledger.open(now=NOW)
        await ledger.close()
        assert application.execute("select count(*) from document").fetchone() == (0,)


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("create table event (id text)", "names of the ledger's: event"),
        ("create table alembic_version (version_num text)", "version_table"),
    ],
)
async def test_a_shared_file_whose_names_are_taken_is_refused_as_it_is(
    tmp_path: Path, statement: str, says: str
) -> None:
    with closing(sqlite3.connect(tmp_path / "app.db")) as application:
        application.execute("create table surehook_outbox (id text)")
        application.execute(statement)
        before = application.execute("select name from sqlite_master").fetchall()
        with pytest.raises(SettingsError) as caught:
            await SqliteLedger(str(tmp_path / "app.db"), beside="surehook_outbox").open(now=NOW)
        assert says in f"{caught.value} {caught.value.hint}"
        assert application.execute("select name from sqlite_master").fetchall() == before
