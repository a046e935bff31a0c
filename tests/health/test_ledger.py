"""Shared health in PostgreSQL: many breakers in a few statements, which do what one at a time would."""

from __future__ import annotations

import asyncio
import random

import asyncpg
import pytest

from lab.health import LocalHealth
from surehook.health import ledger
from surehook.health.ledger import SWEEP_EVERY, LedgerHealth
from surehook.ports.health import BUSY_MS, BreakerUpdate
from tests.health.test_shared import NOW, A, B, closed, counted, opened, say

KEYS = [f"https://e{n}.example:443/" for n in range(1_000)]


@pytest.fixture
async def health(database, monkeypatch):
    # Nodes that wait for each other are told so by the server, however slow the machine is.
    monkeypatch.setattr(ledger, "PATIENCE_S", 60.0)
    store = LedgerHealth(database)
    await store.open()
    yield store
    await store.close()


def hastened(key, to=NOW + 1):
    return BreakerUpdate("acme", key, "open", "failures", NOW, to, NOW, hastened=True)


@pytest.mark.parametrize("update", [opened, closed, hastened], ids=lambda update: update.__name__)
async def test_a_thousand_updates_are_a_few_statements(health, update):
    await say(health, updates=[opened(key=key) for key in KEYS])
    said = []
    async with health._asked() as connection:
        connection.add_query_logger(lambda record: said.append(record.query))
    await say(
        health, B, updates=[update(key=key) for key in KEYS], counts=[counted(1, 1, key=key) for key in KEYS]
    )
    assert 0 < len(said) <= 12, said


@pytest.mark.parametrize("seed", range(1, 4))
async def test_many_updates_at_once_do_what_one_at_a_time_would(health, seed):
    chance, model = random.Random(seed), LocalHealth()
    for step in range(200):
        now = NOW + step * 1_000
        node = chance.choice([A, B])
        updates = []
        for key in chance.sample(KEYS[:10], chance.randrange(6)):
            at = now + chance.randrange(-3_000, 3_000)
            kind = chance.choice(["open", "open", "again", "closed", "closed again", "hastened"])
            if kind == "hastened":
                updates.append(hastened(key, to=at))
            else:
                tell = closed if kind.startswith("closed") else opened
                more = {} if tell is closed else {"reason": chance.choice(["failures", "auth"])}
                updates.append(tell(at=at, again=kind.endswith("again"), key=key, **more))
                if tell is opened and chance.random() < 0.3:
                    updates.append(hastened(key, to=at))
        if chance.random() < 0.3:
            place = ("acme", chance.choice(KEYS[:10]))
            asked = {"node": node, "until": now + 90_000, "now": now + 300_000}
            assert await health.take_probe(*place, **asked) == await model.take_probe(*place, **asked), step
        counts = [counted(2, 1, at=now, key=key) for key in chance.sample(KEYS[:10], 2)]
        replies = [
            await say(one, node, updates=updates, counts=counts, since=now, now=now)
            for one in (health, model)
        ]
        shown = [sorted(reply.views, key=lambda view: view.key) for reply in replies]
        assert shown[0] == shown[1], (step, updates)


async def test_nodes_that_close_and_count_the_same_breakers_at_once_never_wait_for_each_other(
    health, database
):
    nodes = [health, *(LedgerHealth(database) for _ in range(3))]
    keys = KEYS[:100]

    async def node(number):
        chance = random.Random(number)
        for _ in range(30):
            updates, counts = [], [counted(1, 1, key=key) for key in chance.sample(keys, 60)]
            if number < 2:
                updates = [chance.choice([opened, closed])(key=key) for key in chance.sample(keys, 60)]
                updates += [hastened(key) for key in chance.sample(keys, 40)]
            await say(nodes[number], bytes([number]) * 16, updates=updates, counts=counts)

    async with asyncio.TaskGroup() as group:
        for number in range(len(nodes)):
            group.create_task(node(number))
    for store in nodes[1:]:
        await store.close()


async def test_plans_are_made_for_their_values(health):
    async with health._asked() as connection:
        assert await connection.fetchval("show plan_cache_mode") == "force_custom_plan"


async def test_a_sweep_waits_for_nobody_and_takes_what_is_free(health, database):
    """Nodes hold rows of breakers and counts in one order: a sweep that waited for them in another would stop both."""
    later = NOW + 2 * ledger.KEEP_MS
    await say(
        health,
        updates=[opened(key=key) for key in KEYS[:3]],
        counts=[counted(1, 1, key=KEYS[5])],
        busy=[A, B],
    )
    other = await asyncpg.connect(database)
    async with other.transaction():
        await other.execute("select 1 from health_breaker where key = $1 for update", KEYS[0])
        await other.execute("select 1 from health_busy where endpoint = $1 for update", A)
        async with asyncio.timeout(20):
            for _ in range(SWEEP_EVERY):
                await say(health, now=later)
        assert [row["key"] for row in await other.fetch("select key from health_breaker")] == [KEYS[0]]
        assert [row["endpoint"] for row in await other.fetch("select endpoint from health_busy")] == [A]
        assert await other.fetchval("select count(*) from health_count") == 0
    async with asyncio.timeout(20):
        for _ in range(SWEEP_EVERY):
            await say(health, now=later + BUSY_MS)
    for table in ("health_breaker", "health_busy"):
        assert await other.fetchval(f"select count(*) from {table}") == 0
    await other.close()
