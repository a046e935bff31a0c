"""Contexts are made one at a time, in turns by tenant, with a rest after each."""

from __future__ import annotations

import asyncio

import pytest

from lab.sim.loop import run
from surehook.wire.context_turns import ContextTurns

REST_S = 0.1


async def made(turns: ContextTurns, tenant: str, done: list[tuple[str, float]]) -> None:
    await turns.turn(tenant)
    done.append((tenant, round(asyncio.get_running_loop().time(), 3)))
    turns.rest(REST_S)


def test_one_of_a_tenant_with_few_waits_for_one_turn_of_each_other() -> None:
    async def story() -> None:
        turns, done, began = ContextTurns(), list[tuple[str, float]](), asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            for _ in range(50):
                group.create_task(made(turns, "many", done))
            await asyncio.sleep(0)
            group.create_task(made(turns, "few", done))
        assert [tenant for tenant, _ in done[:4]] == ["many", "many", "few", "many"]
        assert done[-1][1] - began == pytest.approx(50 * REST_S, abs=0.01), "and all of them rest"

    run(story())


@pytest.mark.parametrize("when", ["waiting", "called"])
def test_who_goes_away_keeps_nobody_waiting(when: str) -> None:
    async def story() -> None:
        turns, done = ContextTurns(), list[tuple[str, float]]()
        await turns.turn("first")
        leaving = asyncio.create_task(turns.turn("leaving"))
        await asyncio.sleep(0)
        after = asyncio.create_task(made(turns, "after", done))
        await asyncio.sleep(0)
        if when == "waiting":
            leaving.cancel()
            turns.rest(0.0)
        else:
            turns.rest(0.0)
            asyncio.get_running_loop().call_later(0.0, leaving.cancel)
        await after
        assert [tenant for tenant, _ in done] == ["after"]
        await asyncio.sleep(REST_S * 2)
        async with asyncio.timeout(0.01):
            await turns.turn("later")

    run(story())
