"""Shared health in PostgreSQL: many breakers in a few statements, which do what one at a time would."""

from __future__ import annotations

import asyncio
import random

import pytest

from lab.health import LocalHealth
from surehook.health.ledger import LedgerHealth
from surehook.ports.health import BreakerUpdate
from tests.health.test_shared import NOW, A, B, closed, counted, opened, say

KEYS = [f"https://e{n}.example:443/" for n in range(1_000)]


@pytest.fixture
async def health(database):
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
