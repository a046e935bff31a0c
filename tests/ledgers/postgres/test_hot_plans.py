"""Plans of hot statements as they are made over empty tables: what they will be when there are millions of rows.

A plan is made once for a connection. Whatever it reads of a table that can grow, it must reach by an index and
a condition on the index's first columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from surehook.ledgers.postgres.ledger import PostgresLedger
from surehook.ledgers.postgres.statements import query

GROWING = re.compile(r"(delivery|event|attempt|idempotency)(_day_\d+|_kept)?$")
BY_ID, BY_GROUP = r"^\(*id [>=]", r"^\(*ROW\(endpoint, parked"
READY, HELD = r"^\(*lane = .*due_at >", r"^\(*holder ="
# A comparison of rows that begins with `lane` is no place to begin beside `lane = …`: the walk would begin at the lane's oldest.
FROM = r"^\(*lane = .*due_at >= .*ROW\(due_at, id\) >"
HELD_FROM = r"^\(*holder = .*lane = l.*id >="
# Statement → what each scan of a growing table must be conditioned by, by the index's name.
HOT = {
    "record_delivered": {"delivery_pkey": BY_ID},
    "record": {"delivery_pkey": BY_ID},
    "park": {"delivery_pkey": BY_ID},
    "release": {"delivery_pkey": BY_ID},
    "free": {"delivery_pkey": BY_ID},
    "claim": {"delivery_ready": READY, "delivery_pkey": BY_ID, "event_pkey": BY_ID},
    "claim_others": {"delivery_ready": FROM, "delivery_pkey": BY_ID, "event_pkey": BY_ID},
    "claim_ids": {"delivery_pkey": BY_ID, "event_pkey": BY_ID},
    "unpark": {"delivery_parked": BY_GROUP, "delivery_pkey": BY_ID, "event_pkey": BY_ID},
    "restart": {"delivery_parked": BY_GROUP, "delivery_pkey": BY_ID, "event_pkey": BY_ID},
    "next_due": {"delivery_ready": READY},
    "end": {"delivery_pkey": BY_ID},
    "deliveries_bare": {"delivery_pkey": BY_ID},
    "overdue": {"delivery_overdue": r"^\(*overdue_at <=", "event_pkey": BY_ID},
    "clear_overdue": {"delivery_pkey": BY_ID},
    "parked_aged": {"delivery_parked": BY_GROUP},
    "walk_endpoint": {"delivery_pkey": BY_ID},
    "held": {"delivery_held": HELD_FROM},
    "held_count": {"delivery_held": HELD_FROM},
    "free_nodes": {"delivery_held": HELD},
    "known_events": {"event_pkey": BY_ID},
    "known_keys": {"idempotency_pkey": r"^\(*tenant ="},
    "drop_keys": {"idempotency_pkey": r"^\(*ROW\(tenant, key"},
    "lines": {"attempt_pkey": r"^\(*delivery ="},
    "born": {"delivery_pkey": BY_ID, "attempt_pkey": r"^\(*delivery >="},
    "accept": {},
    "accept_keyed": {},
    "take_events": {},
    "take_deliveries": {},
    "take_keys": {},
    "beat": {},
}
# What comes with each event and each result: arrays side by side, none kept in a store of its own.
STREAMED = ("accept", "accept_keyed", "record", "record_delivered")


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)


@pytest.mark.parametrize("name", HOT)
async def test_a_hot_statement_reaches_rows_by_an_index_alone(book: PostgresLedger, name: str) -> None:
    async with book._working.lend() as session:
        connection = await session.connected()
        await connection.execute(f"prepare looked_at as {query(name)}")
        places = len((await connection.prepare(query(name))).get_parameters())
        nulls = f"({', '.join(['null'] * places)})" if places else ""
        text = await connection.fetchval(f"explain (format json) execute looked_at{nulls}")
    found: dict[str, str] = {}
    for node in _nodes(json.loads(text)[0]["Plan"]):
        assert node["Node Type"] not in ("Hash Join", "Merge Join", "Bitmap Heap Scan"), node
        assert name not in STREAMED or node["Node Type"] not in ("Function Scan", "Materialize"), node
        relation = node.get("Relation Name", "")
        if GROWING.match(relation) and "Scan" in node["Node Type"]:
            index = re.sub(r"_(day_\d+|kept)_pkey$", "_pkey", node["Index Name"])
            found[index] = node.get("Index Cond", "nothing")
    assert set(found) == set(HOT[name])
    for index, condition in found.items():
        assert re.search(HOT[name][index], condition), (index, condition)
