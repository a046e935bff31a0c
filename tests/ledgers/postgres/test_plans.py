"""What a list reads: never a whole table, never more rows than a page looks at, and only the days that it asks for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from surehook.core.instants import DAY_MS
from surehook.ledgers.common import configured, deliveries, lists
from surehook.ledgers.common.indexes import LOOKS_MAX
from surehook.ledgers.common.steps import Steps
from surehook.ledgers.postgres.connecting import connect_to
from surehook.ledgers.postgres.core_sql import compiled
from surehook.ledgers.postgres.partitions import day_of
from surehook.ledgers.postgres.prune import ADDED_UP_FROM
from surehook.ledgers.postgres.statements import query
from surehook.ports.reading import DeliveryFilter, EventFilter, NoticeFilter
from tests.ledgers.making import NOW
from tests.ledgers.postgres.test_retention import make_day

DAYS = 6
ROWS = 300  # of a day; more than a page


@pytest.fixture
def lister(place: str, runner: asyncio.Runner) -> Iterator[Any]:
    """A connection as lists have them, on a book of some days."""

    async def fill() -> Any:
        connection = await connect_to(place, "list")()
        for day in range(day_of(NOW) - DAYS - 1, day_of(NOW) - 1):
            await make_day(connection, day, padding=ROWS, unfinished=ROWS)
        return connection

    connection = runner.run(fill())
    yield connection
    runner.run(connection.close())


async def explained(connection: Any, steps: Steps[Any]) -> list[dict[str, Any]]:
    """The plans' nodes of all statements of a list, as they ran."""
    nodes: list[dict[str, Any]] = []
    try:
        statement = next(steps)
        while True:
            sql, parameters = compiled(statement)
            text = await connection.fetchval(f"explain (analyze, format json) {sql}", *parameters)
            nodes += _flat(json.loads(text)[0]["Plan"])
            statement = steps.send(await connection.fetch(sql, *parameters))
    except StopIteration:
        return nodes


def _flat(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _flat(child)


BIG, RARE = {"tenant": "padding"}, {"tenant": "nobody"}
MORE: list[dict[str, Any]] = [
    {}, {"state": "delivered"}, {"state": "dead"}, {"state": "parked"}, {"state": "scheduled"}, {"type": "padding"},
    {"outcome": "refused"}, {"status": 500}, {"error": "timeout"}, {"code": "late"}, {"correlation_id": "c"}, {"since": NOW - 3 * DAY_MS}, {"until": NOW - 3 * DAY_MS}, {"subject": "doc"},
]  # fmt: skip
LISTS: dict[str, Steps[Any]] = {
    **{
        f"deliveries {base | more}": lambda base=base, more=more: deliveries.deliveries(
            DeliveryFilter(**base, **more), limit=50, after=None
        )
        for base in (BIG, RARE, {"endpoint": b"e" * 16})
        for more in MORE
    },
    "dead letters": lambda: deliveries.dead_letters(DeliveryFilter(**BIG), limit=50, after=None),
    "one delivery": lambda: deliveries.delivery(b"d" * 16),
    "events": lambda: lists.events(EventFilter(**BIG), limit=50, after=None),
    "events of a type": lambda: lists.events(EventFilter(**BIG, type="other"), limit=50, after=None),
    "events of a subject": lambda: lists.events(EventFilter(**BIG, subject="doc"), limit=50, after=None),
    "events of a correlation": lambda: lists.events(EventFilter(correlation_id="c"), limit=50, after=None),
    "events of a key": lambda: lists.events(EventFilter(**BIG, idempotency_key="k"), limit=50, after=None),
    "events of a time": lambda: lists.events(EventFilter(since=NOW - 2 * DAY_MS), limit=50, after=None),
    "one event": lambda: lists.event(b"e" * 16),
    "notices": lambda: lists.notices(NoticeFilter(**BIG), limit=50, after=None),
    "endpoints": lambda: configured.endpoints(tenant="acme", status="active", limit=50, after=None),
}


@pytest.mark.parametrize("name", LISTS)
async def test_a_list_reads_no_whole_table_and_a_bounded_number_of_rows(
    lister: Any, runner: asyncio.Runner, name: str
) -> None:
    nodes = await explained(lister, LISTS[name]())
    whole = [node.get("Relation Name") for node in nodes if node["Node Type"] == "Seq Scan"]
    assert [one for one in whole if one != "configuration"] == []  # one row
    read = [
        node["Actual Rows"] * node["Actual Loops"] + node.get("Rows Removed by Filter", 0)
        for node in nodes
        if "Scan" in node["Node Type"]
    ]
    assert sum(read) <= 4 * LOOKS_MAX


async def test_a_time_is_looked_for_in_its_days_alone(lister: Any, runner: asyncio.Runner) -> None:
    day = day_of(NOW) - 4
    where = DeliveryFilter(state="delivered", since=day * DAY_MS + 1, until=(day + 1) * DAY_MS - 1)
    nodes = await explained(lister, deliveries.deliveries(where, limit=50, after=None))
    tables = {node["Relation Name"] for node in nodes if node.get("Relation Name", "").startswith("attempt")}
    assert tables == {f"attempt_day_{day}"}


async def test_a_full_page_looks_into_the_newest_days_alone(lister: Any, runner: asyncio.Runner) -> None:
    """Of older days no more than one entry each is touched."""
    nodes = await explained(
        lister, deliveries.deliveries(DeliveryFilter(**BIG, state="delivered"), limit=5, after=None)
    )
    listing = [
        node
        for node in nodes
        if node.get("Relation Name", "").startswith("attempt") and node["Node Type"] == "Index Scan"
    ]
    assert sum(node["Actual Rows"] > 1 for node in listing) <= 1


async def test_dead_letters_are_counted_by_their_changes_alone(desk: Any, beside: Any) -> None:
    """And retention adds the changes up, so that they stay few."""
    await desk.finish("dead", count=ADDED_UP_FROM + 1)
    nodes = list(
        _flat(
            json.loads(await beside.fetchval(f"explain (format json) {query('count_dead_letters')}"))[0][
                "Plan"
            ]
        )
    )
    assert {node["Relation Name"] for node in nodes if "Scan" in node["Node Type"]} == {"dead_letter_count"}
    await desk.ledger.prune(events_before=0, bodies_before=0, limit=1, now=NOW)
    assert await beside.fetchval("select array_agg(change) from dead_letter_count") == [ADDED_UP_FROM + 1]
    assert await desk.ledger.dead_letter_count() == ADDED_UP_FROM + 1


async def test_counts_read_entries_of_partial_indexes(lister: Any, runner: asyncio.Runner) -> None:
    for name, parameters in (("count_lanes", (NOW,)), ("count_parked", ())):
        text = await lister.fetchval(f"explain (format json) {query(name)}", *parameters)
        nodes = list(_flat(json.loads(text)[0]["Plan"]))
        scans = {node["Node Type"] for node in nodes if "Scan" in node["Node Type"]}
        assert scans == {"Index Only Scan"}
