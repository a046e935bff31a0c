"""What accepts and workers do costs the same whatever lies in the tables: SQLite is asked how it would find the rows of each
statement they make. It reads all documents for the second of two keys, or for what is due of one type, unless it is kept from that.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from surehook.inbox import Later
from tests.inbox.house import call, message
from tests.inbox.test_documents import STRICT
from tests.inbox.test_undoing import undoes
from tests.inbox.test_ways_out import followed, tell

pytestmark = pytest.mark.parametrize("ground", [("sqlite", "sync")], indirect=True, ids="-".join)

# Which are as long as there is work, or as people have it to do.
SHORT = ("runs_due", "runs_stopped", "receipts_due")
SHARED_BY_ALL = ("(document_type=?)", "(source=?)")


@pytest.fixture
def ground(request, ground_of):
    return ground_of(*request.param)


@pytest.fixture
def statements() -> Iterator[dict[str, Any]]:
    """The statements that are made, with the values of the last time."""
    made: dict[str, Any] = {}

    def note(_connection, _cursor, statement, values, _context, is_many) -> None:
        if statement.lstrip().upper().startswith(("SELECT", "UPDATE", "DELETE", "WITH")):
            made[statement] = values[0] if is_many and values else values

    event.listen(Engine, "before_cursor_execute", note)
    yield made
    event.remove(Engine, "before_cursor_execute", note)


def scans(house, made: dict[str, Any]) -> dict[str, list[str]]:
    """The statements that read a table, or all of one type, from end to end; and how."""
    found = {}
    with house.inbox.store.engine.connect() as connection:
        for statement, values in list(made.items()):
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
            bad = [step for *_, step in plan if is_scan(step)]
            if bad:
                found[statement] = bad
    return found


def is_scan(step: str) -> bool:
    if "surehook_inbox_" not in step or any(name in step for name in SHORT):
        return False
    return step.startswith("SCAN ") or step.endswith(SHARED_BY_ALL)


def test_nothing_that_accepts_or_works_reads_a_table_from_end_to_end(houses, statements, caplog):
    caplog.set_level(logging.CRITICAL)
    house = followed(houses, order=STRICT | {"wait_s": 60.0})
    broken = [True]

    def effect(event):
        if event.id == "doc_2-2" and broken:
            raise ValueError("no")
        if event.id == "other-3" and broken:
            raise Later(30)

    seen = house.on(effect, final=False)
    undoes(house, lambda event: 1 / 0 if broken else None)
    house.do(house.inbox.work())  # what a start looks at
    statements.clear()
    for document in ("doc_1", "doc_2", "doc_3"):
        tell(house, 1, 2, 3, 5, document=document)
    calls = [call(*message(f"other-{n}", "document.unknown"), at=house.clock.at) for n in range(40)]
    house.at_once(calls)
    house.at_once(calls)  # repeats
    house.at_once(
        [call(*message(f"other-{n}", "document.unknown", other=1), at=house.clock.at) for n in range(5)]
    )
    house.work()
    newest = next(one for one in seen if one.id == "doc_1-2")
    assert house.do(house.inbox.reject(newest.ref, "compliance"))
    for _ in range(3):
        house.work()
        house.clock.passes(61)
    broken.clear()
    tell(house, 4, 6)
    house.do(house.inbox.release("doc_3", by="ops", reason="lost"))
    house.clock.passes(3_600)
    house.work()
    assert len(statements) >= 20, "or the test sees less than it should"
    found = scans(house, statements)
    assert not found, "\n".join(f"{step}: {statement}" for statement, step in found.items())


def test_a_scan_would_be_seen(houses):
    house = followed(houses)
    assert scans(house, {"select * from surehook_inbox_documents where state = ?": ("x",)})
    assert scans(house, {"select * from surehook_inbox_documents where document_type = ?": ("x",)})
    in_list = "select * from surehook_inbox_documents where (document_type, tenant, document) in (values (?, '', ?), (?, '', ?))"
    assert scans(house, {in_list: ("a", "b", "c", "d")})
