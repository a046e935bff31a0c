"""Plans: what a hot statement looks at does not grow with what waits, whatever the planner thinks."""

from __future__ import annotations

import pytest

from surehook.ledgers.common import deliveries
from surehook.ledgers.common.indexes import IN_ONE_FILE
from surehook.ledgers.common.statements import names, shared
from surehook.ledgers.sqlite import SqliteLedger
from surehook.ledgers.sqlite.core_sql import compiled
from surehook.ledgers.sqlite.statements import Batch, query
from surehook.ports.reading import DeliveryFilter
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW
from tests.ledgers.sqlite.watching import effort

SHARED = names("surehook.ledgers.common")
QUERIES = sorted([*names("surehook.ledgers.sqlite"), *SHARED])
# What walks whole tables, and why that is bounded.
WALKS = {
    "breakers": "open breakers only",
    "beats": "nodes only",
    "nodes": "nodes only",
    "prune_nodes": "nodes only",
    "prune_closings": "breakers that closed within a day",
    "prune_beats": "nodes only",
    "keys": "all of a small table",
    "replays_running": "jobs only",
    "fence": "one row",
    "version": "one row",
    "changes": "one row",
    "note": "one row",
    "raise_lag": "one row",
    "raise_version": "one row",
    "count_held": "held rows, through their index",
    "count_dead_letters": "one row",
    "count_parked": "parked rows, through their index, kept for a while",
    "count_parked_lanes": "parked rows, through their index, kept for a while",
    "parked_groups": "one entry of an index at a time",
    "prune_keys": "a bounded number of row numbers",
    "others": "a bounded number of rows, in the order of their index",
}


def _text(name: str) -> str:
    text = shared(name) if name in SHARED else query(name)
    if "{rows:" not in text:
        return text
    values = [0] * (64 * int(text.split("{rows:")[1].split("}")[0]))
    ((sql, _),) = Batch(name).pieces(values)
    return sql


def _plan(ledger: SqliteLedger, name: str) -> list[str]:
    sql = _text(name)
    return [row[3] for row in ledger._writing.rows(f"explain query plan {sql}", (None,) * sql.count("?"))]


@pytest.mark.parametrize("name", [name for name in QUERIES if name not in WALKS])
async def test_a_statement_walks_through_no_table(desk: Desk, name: str) -> None:
    walked = [
        step for step in _plan(desk.ledger, name) if step.startswith("SCAN") and not _is_made_here(step)
    ]
    assert walked == []


def _is_made_here(step: str) -> bool:
    """Rows of the batch, subqueries, and common table expressions are not tables."""
    return any(
        word in step
        for word in (
            "CONSTANT ROW",
            "ROWS",
            "subquery",
            "SCAN v",
            "SCAN (",
            "SCAN walked",
            "parking",
            "endpoints",
        )
    )


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("ready", "COVERING INDEX delivery_ready (lane=? AND due_at<?)"),
        ("next_due", "COVERING INDEX delivery_ready (lane=?)"),
        ("count_scheduled", "COVERING INDEX delivery_ready (lane=? AND due_at>?)"),
        ("parked_ids", "COVERING INDEX delivery_parked (endpoint=? AND parked=?)"),
        ("held_count", "COVERING INDEX delivery_held (holder=?)"),
        ("interrupted", "INDEX delivery_held (holder=?)"),
        ("free", "INDEX delivery_held (holder=?)"),
        ("overdue", "INDEX delivery_overdue (overdue_at>? AND overdue_at<?)"),
    ],
)
async def test_a_look_goes_through_its_partial_index(desk: Desk, name: str, index: str) -> None:
    assert any(index in step for step in _plan(desk.ledger, name)), _plan(desk.ledger, name)


async def test_a_look_past_others_reads_its_index_alone_and_keeps_nothing(desk: Desk) -> None:
    """The one writer does nothing else meanwhile: with a look at each row it took six times as long."""
    plan = _plan(desk.ledger, "others")
    looks = [step for step in plan if "delivery" in step]
    index = "SEARCH delivery USING COVERING INDEX delivery_ready (lane=? AND (due_at,id)>(?,?) AND due_at<?)"
    assert looks == [index, index], plan
    assert not [step for step in plan if "MATERIALIZE" in step or "TEMP B-TREE" in step], plan


async def test_claims_look_at_the_batch_alone(desk: Desk) -> None:
    """A thousand parked and a thousand future rows do not change what finding ready ones takes."""

    async def look() -> int:
        await desk.accept(*(desk.make.incoming(desk.endpoint) for _ in range(20)))
        steps = await desk.ledger._write(effort, query("ready"), (0, NOW, 10))
        assert len(await desk.claim()) == 20
        return steps

    before = await look()
    await desk.accept(*(desk.make.incoming(desk.endpoint, parked="breaker") for _ in range(1_000)))
    await desk.accept(*(desk.make.incoming(desk.endpoint, due_at=NOW + 1) for _ in range(1_000)))
    assert await look() <= before + 1


async def test_counting_dead_letters_costs_the_same_however_many_there_are(desk: Desk) -> None:
    before = await desk.ledger._write(effort, query("count_dead_letters"))
    await desk.finish("dead", count=1_000)
    assert await desk.ledger.dead_letter_count() == 1_000
    assert await desk.ledger._write(effort, query("count_dead_letters")) == before


async def test_groups_are_found_by_steps_between_them(desk: Desk) -> None:
    await desk.accept(*(desk.make.incoming(desk.endpoint, parked="breaker") for _ in range(2_000)))
    await desk.accept(*(desk.make.incoming(desk.endpoint, parked="share") for _ in range(2_000)))
    assert await desk.ledger._write(effort, query("parked_groups")) <= 7
    groups = {(group.endpoint, group.reason) for group in await desk.ledger.parked_groups()}
    assert groups == {(desk.endpoint, "breaker"), (desk.endpoint, "share")}


@pytest.mark.parametrize("state", ["dead", "dropped", "cancelled"])
async def test_a_list_of_ends_that_are_no_deliveries_goes_along_their_index(desk: Desk, state: str) -> None:
    steps = deliveries.deliveries(DeliveryFilter(state=state), limit=50, after=None, indexes=IN_ONE_FILE)
    down = next(steps)  # how far down the page looks, and then the page
    for sql, parameters in (compiled(down), compiled(steps.send([]))):
        plan = [row[3] for row in desk.ledger._writing.rows(f"explain query plan {sql}", parameters)]
        assert any("INDEX attempt_ended (end=?" in step for step in plan), plan
