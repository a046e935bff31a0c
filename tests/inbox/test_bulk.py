"""Many rows at once: whatever their number, all of them arrive, each value in its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Column, Connection, Integer, LargeBinary, MetaData, Table, Text, event, select

from surehook.inbox.sql import claiming, engines
from surehook.inbox.sql.bulk import Rows, insert_rows
from surehook.ports.inbox_runs import Run

NARROW = Table("narrow", MetaData(), Column("n", Integer, primary_key=True), Column("body", LargeBinary))
WIDE = Table("wide", MetaData(), *(Column(f"c{number}", Text) for number in range(60)))


@pytest.fixture
def connection(tmp_path: Path):
    engine = engines.engine(f"sqlite:///{tmp_path}/bulk.db", durable=False)
    for table in (NARROW, WIDE):
        table.create(engine)
    with engine.begin() as made:
        yield made
    engine.dispose()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 15, 16, 17, 63, 64, 65, 200, 511])
def test_all_rows_arrive_whatever_their_number(connection: Connection, count: int) -> None:
    rows = [(n, b"\x00" * (n % 3) + b"%d" % n) for n in range(count)]
    statements: list[str] = []
    event.listen(connection, "before_cursor_execute", lambda *args: statements.append(args[2]))
    insert_rows(connection, Rows(NARROW, ("n", "body"), rows))
    assert len(statements) == count // 64 + count % 64 // 16 + count % 16 // 4 + count % 4
    assert len(set(statements)) <= 4
    assert [tuple(row) for row in connection.execute(select(NARROW).order_by(NARROW.c.n))] == rows


def test_no_statement_has_more_parameters_than_old_builds_take(connection: Connection) -> None:
    given: list[int] = []
    event.listen(connection, "before_cursor_execute", lambda *args: given.append(len(args[3])))
    names = tuple(column.name for column in WIDE.columns)
    rows = [tuple(f"{row}/{column}" for column in names) for row in range(70)]
    insert_rows(connection, Rows(WIDE, names, rows))
    assert max(given) <= 999
    assert [tuple(row) for row in connection.execute(select(WIDE))] == rows


def test_the_columns_of_a_run_are_in_the_order_of_its_fields():
    assert [column.name for column in claiming._COLUMNS] == list(
        Run.__struct_fields__[: len(claiming._COLUMNS)]
    )
