"""Costly work is done a slice at a time, one after another, and others have the event loop in between."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from itertools import pairwise
from typing import Any

import pytest

from lab.sim.loop import run
from surehook.api.turns import (
    BEGIN_S,
    LONG_S,
    MOST_S,
    ONE_IN,
    PAUSE_TURNS,
    SMALL_COST,
    WAITING_MOST,
    TurnScheduler,
)
from surehook.core.errors import Overloaded, TenantOverloaded
from surehook.core.steps import SLICE_COST, Steps


class Clock:
    """Time passes where work is done."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def steps(name: str, slices: int, told: list[str], clock: Clock, took: float) -> Steps[str]:
    for _ in range(slices):
        told.append(name)
        clock.at += took
        yield SLICE_COST
    return name


class HastyLoop(asyncio.SelectorEventLoop):
    """Time passes whenever it is asked for: the timer of a rest fires in the loop's next turn."""

    asked = 0

    def time(self) -> float:
        self.asked += 1
        return 0.06 * self.asked


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def together(*works: tuple[bytes, int, str]) -> list[str]:
    """Works of so many slices that all wait while somebody has a turn; whose slices were done, in order."""

    async def main() -> list[str]:
        clock, told = Clock(), list[str]()
        turns = TurnScheduler(clock)
        first = asyncio.ensure_future(turns.once(b"", lambda: None))
        tasks = [
            asyncio.ensure_future(turns.run(caller, steps(name, slices, told, clock, 0.0)))
            for caller, slices, name in works
        ]
        await first
        assert await asyncio.gather(*tasks) == [name for _, _, name in works]
        await turns.once(b"", lambda: None)  # nothing is left that could keep it from a turn
        return told

    return asyncio.run(main())


def test_of_one_callers_works_those_that_look_small_go_first() -> None:
    async def main() -> None:
        clock, told = Clock(), list[str]()
        turns = TurnScheduler(clock)
        costs = {"first": SLICE_COST, "large": 8 * SLICE_COST, "small": SLICE_COST // 2}
        await asyncio.gather(
            *(turns.run(b"one", steps(name, 1, told, clock, 0.0), cost=cost) for name, cost in costs.items())
        )
        assert told == ["first", "small", "large"]

    asyncio.run(main())


def test_callers_take_turns_however_many_works_each_has() -> None:
    told = together(*((b"loud", 2, "loud") for _ in range(20)), (b"calm", 3, "calm"))
    assert told[:7].count("calm") == 3


def test_of_one_callers_works_that_goes_on_of_which_least_was_done() -> None:
    told = together((b"one", 4, "large"), (b"one", 4, "large too"), (b"one", 1, "small"))
    assert told.index("small") <= 2


def shortest_rest(took: float, *, passed_s: float | None = None) -> float:
    """Between slices that take so long each; `passed_s`: so long before each end a publish passes."""

    async def main() -> float:
        clock, told, at = Clock(), list[str](), list[float]()
        turns = TurnScheduler(clock)

        def work() -> Steps[None]:
            for _ in steps("slice", 3, told, clock, took):
                at.append(asyncio.get_running_loop().time())
                if passed_s is not None:
                    clock.at -= passed_s
                    turns.passed()
                    clock.at += passed_s
                yield SLICE_COST

        await asyncio.gather(*(turns.run(b"one", work()) for _ in range(4)))
        assert len(at) == 12
        return min(after - before for before, after in pairwise(at))

    return run(main())


@pytest.mark.parametrize("took", [0.0001, 0.002, 0.05])
def test_after_a_slice_the_loop_is_free_for_as_long_as_it_took(took: float) -> None:
    assert took * 0.999 <= shortest_rest(took) < took + 0.02


@pytest.mark.parametrize("took", [0.013, 0.03])
def test_while_others_publish_few_of_them_meet_what_is_too_long_of_a_slice(took: float) -> None:
    cycle = took + shortest_rest(took, passed_s=0.5)
    assert (took - LONG_S) / cycle <= 1.001 / ONE_IN
    assert shortest_rest(took, passed_s=1.5) < took + 0.02
    assert shortest_rest(LONG_S * 0.9, passed_s=0.5) < LONG_S + 0.02


@pytest.mark.parametrize(
    ("took", "least"), [(0.0001, 1), (0.0005, 3), (0.002, PAUSE_TURNS), (0.05, PAUSE_TURNS)]
)
def test_others_have_several_turns_of_the_loop_after_a_long_slice(took: float, least: int) -> None:
    async def main() -> None:
        clock, told = Clock(), list[str]()
        turns = TurnScheduler(clock)
        tasks = [
            asyncio.ensure_future(turns.run(b"one", steps("slice", 2, told, clock, took))) for _ in range(3)
        ]
        passed, pauses = 0, list[int]()
        while not all(task.done() for task in tasks):
            before = len(told)
            await asyncio.sleep(0)
            passed += 1
            if len(told) > before:
                assert len(told) == before + 1
                pauses.append(passed)
                passed = 0
        assert len(told) == 6
        assert min(pauses[1:]) >= least

    loop = HastyLoop()
    loop.run_until_complete(main())
    loop.close()


def test_what_is_small_waits_for_nobody() -> None:
    async def main() -> None:
        clock, told = Clock(), list[str]()
        turns = TurnScheduler(clock)
        large = asyncio.ensure_future(turns.run(b"one", steps("large", 3, told, clock, 0.001)))
        await settle()
        await turns.run(b"two", steps("small", 1, told, clock, 0.0), cost=SMALL_COST)
        assert told == ["large", "small"]
        await large

    asyncio.run(main())


def test_work_that_fails_leaves_the_turn_to_the_next() -> None:
    async def main() -> None:
        turns = TurnScheduler(Clock())
        with pytest.raises(ZeroDivisionError):
            await turns.once(b"one", lambda: 1 // 0)
        async with asyncio.timeout(5):
            assert await turns.once(b"two", lambda: "done") == "done"

    asyncio.run(main())


def cancelled_in_line(when_told: bool) -> Coroutine[Any, Any, None]:
    async def main() -> None:
        turns = TurnScheduler(Clock())
        await turns._enter(b"one", 0, begins=True)
        waiting = asyncio.ensure_future(turns._enter(b"one", 0, begins=True))
        await settle()
        if when_told:
            turns._give()
        waiting.cancel()
        await settle()
        if not when_told:
            turns._leave(b"one", 0.0)
        async with asyncio.timeout(5):
            await turns._enter(b"two", 0, begins=True)

    return main()


def test_who_hangs_up_in_line_leaves_the_turn_to_the_next() -> None:
    asyncio.run(cancelled_in_line(False))


def test_who_hangs_up_as_its_turn_comes_leaves_it_to_the_next() -> None:
    asyncio.run(cancelled_in_line(True))


def beside(loud: list[bytes], took: float, *, caller: bytes, slices: int) -> float:
    """Seconds until so many short slices of a caller are done, while each of `loud` does long ones without end."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        worked = 0.0

        def now() -> float:
            return loop.time() + worked

        def work(count: int, took: float) -> Steps[None]:
            nonlocal worked
            for _ in range(count):
                worked += took
                yield SLICE_COST

        turns = TurnScheduler(now)

        async def without_end(name: bytes) -> None:
            while True:
                turns.passed()
                await turns.run(name, work(1, took))

        tasks = [asyncio.ensure_future(without_end(name)) for name in loud]
        await asyncio.sleep(1)
        begun = now()
        async with asyncio.timeout(3600):
            await turns.run(caller, work(slices, 0.001), cost=slices * SLICE_COST)
        done = now() - begun
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return done

    return run(main())


def test_a_large_work_is_not_passed_for_ever_by_smaller_ones_of_its_caller() -> None:
    assert beside([b"one", b"one"], 0.030, caller=b"one", slices=128) < 10


def test_the_rest_after_a_long_slice_is_its_callers() -> None:
    assert beside([b"loud"], 0.030, caller=b"calm", slices=128) < 3


def test_callers_with_long_slices_rest_longer_the_more_they_are() -> None:
    one, four = (
        beside([b"%d" % n for n in range(count)], 0.030, caller=b"calm", slices=400) for count in (1, 4)
    )
    assert four < 2 * one


def test_a_standstill_is_charged_to_nobody() -> None:
    assert shortest_rest(8 * 3600.0, passed_s=0.5) <= ONE_IN * MOST_S + 0.1


async def waiting(turns: TurnScheduler, names: list[bytes]) -> list[asyncio.Task[None]]:
    def work() -> Steps[None]:
        yield SLICE_COST

    tasks = [asyncio.ensure_future(turns.run(name, work())) for name in names]
    await settle()
    return tasks


def refusals(tasks: list[asyncio.Task[None]]) -> list[type[BaseException]]:
    return [type(task.exception()) for task in tasks if task.done() and task.exception() is not None]


def test_who_fills_the_line_is_refused_and_others_are_not() -> None:
    async def main() -> None:
        turns = TurnScheduler(Clock())
        await turns._enter(b"first", 0, begins=True)
        loud = await waiting(turns, [b"loud"] * WAITING_MOST)
        refused = refusals(loud)
        assert set(refused) == {TenantOverloaded}
        assert len(loud) - len(refused) == 3 * WAITING_MOST // 4
        calm = await waiting(turns, [b"calm"] * 8)
        assert not refusals(calm)
        many = await waiting(turns, [b"%d" % n for n in range(WAITING_MOST)])
        assert Overloaded in refusals(many)
        turns._leave(b"first", 0.0)
        await asyncio.gather(*loud, *calm, *many, return_exceptions=True)
        assert not turns._lines
        assert turns._waiting == 0

    asyncio.run(main())


def test_who_waits_too_long_to_begin_is_refused_and_the_others_go_on() -> None:
    async def main() -> None:
        turns = TurnScheduler(asyncio.get_running_loop().time)
        await turns._enter(b"first", 0, begins=True)
        (late,) = await waiting(turns, [b"one"])
        await asyncio.sleep(BEGIN_S - 1)
        (later,) = await waiting(turns, [b"one"])
        await asyncio.sleep(2)
        assert refusals([late]) == [Overloaded]
        turns._leave(b"first", 0.0)
        await later

    run(main())
