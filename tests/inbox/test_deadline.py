"""One timer for the coroutines of a task, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy.util import await_only, greenlet_spawn

from lab.sim.loop import run
from surehook.inbox.deadline import Deadlines, Over


async def bound(deadlines: Deadlines, coroutine: Coroutine[Any, Any, object], seconds: float) -> object:
    """As a handler is called: SQLAlchemy waits for it."""
    return await greenlet_spawn(deadlines.bound, await_only, coroutine, seconds)


async def after(seconds: float, result: object = None) -> object:
    await asyncio.sleep(seconds)
    return result


def test_what_is_in_time_gives_its_result_and_later_ones_have_a_time_of_their_own():
    async def story() -> None:
        deadlines, loop = Deadlines(), asyncio.get_running_loop()
        began = loop.time()
        for number in range(5):
            assert await bound(deadlines, after(9, number), 10) == number
        assert loop.time() - began == pytest.approx(45, abs=0.1), (
            "the timer of the first one ended none of the others"
        )
        with pytest.raises(Over):
            await bound(deadlines, after(60), 10)
        assert loop.time() - began == pytest.approx(55, abs=0.1)
        with pytest.raises(Over):
            await bound(deadlines, after(60), 0.5)
        assert loop.time() - began == pytest.approx(55.5, abs=0.1), "sooner than the timer was set for"
        assert await bound(deadlines, after(1, "as before"), 10) == "as before"
        assert asyncio.current_task().cancelling() == 0

    run(story())


def test_who_is_cancelled_from_outside_is_cancelled_and_not_late():
    async def story() -> None:
        deadlines = Deadlines()
        task = asyncio.ensure_future(bound(deadlines, after(60), 10))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(story())


def test_who_is_being_cancelled_by_another_is_not_cancelled_once_more():
    """What it asked of the database is ended in that time."""

    async def ends_slowly() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(5)

    async def story() -> None:
        deadlines, loop = Deadlines(), asyncio.get_running_loop()
        began = loop.time()
        task = asyncio.ensure_future(bound(deadlines, ends_slowly(), 10))
        await asyncio.sleep(9)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert loop.time() - began == pytest.approx(14, abs=0.1)

    run(story())


def test_who_was_cancelled_and_goes_on_has_its_time_all_the_same():
    async def goes_on() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(9.95):
                await asyncio.sleep(60)
        await asyncio.sleep(60)

    async def story() -> None:
        deadlines, loop = Deadlines(), asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(Over):
            await bound(deadlines, goes_on(), 10)
        assert loop.time() - began == pytest.approx(10, abs=0.2)

    run(story())


def test_a_cancellation_that_was_swallowed_before_takes_nobodys_time_away():
    async def story() -> None:
        deadlines, loop = Deadlines(), asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        began = loop.time()
        with pytest.raises(Over):
            await bound(deadlines, after(60), 10)
        assert loop.time() - began == pytest.approx(10, abs=0.1)

    run(story())


def test_who_swallows_anothers_cancellation_has_a_little_more_and_no_more():
    async def goes_on() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)

    async def story() -> None:
        deadlines, loop = Deadlines(), asyncio.get_running_loop()
        began = loop.time()
        task = asyncio.ensure_future(bound(deadlines, goes_on(), 10))
        await asyncio.sleep(9)
        task.cancel()
        with pytest.raises((Over, asyncio.CancelledError)):
            await task
        assert loop.time() - began == pytest.approx(15, abs=0.2)

    run(story())


def test_who_does_not_mind_being_cancelled_gives_its_result():
    async def deaf() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "went on"
        return "slept"

    async def story() -> None:
        deadlines = Deadlines()
        assert await bound(deadlines, deaf(), 10) == "went on"
        assert asyncio.current_task().cancelling() == 0
        with pytest.raises(Over):
            await bound(deadlines, after(60), 10)

    run(story())


def test_one_within_another_ends_at_the_sooner_of_their_times_and_the_outer_one_has_its_own_again():
    async def story() -> None:
        deadlines, loop = Deadlines(), asyncio.get_running_loop()

        async def outer() -> None:
            with pytest.raises(Over):
                await bound(deadlines, after(60), 3)
            await bound(deadlines, after(1), 60)
            await asyncio.sleep(60)

        began = loop.time()
        with pytest.raises(Over):
            await bound(deadlines, outer(), 10)
        assert loop.time() - began == pytest.approx(10, abs=0.1)

    run(story())
