"""The simulated loop: time jumps, order is drawn from the seed, and the dead do nothing."""

from __future__ import annotations

import asyncio
import gc

import pytest

from lab.sim.loop import (
    PROCESS,
    Deadlock,
    Livelock,
    Process,
    ProcessDied,
    SimLoop,
    ThreadRefused,
    context_of,
    run,
)


def test_a_year_passes_in_no_time():
    async def main() -> float:
        loop = asyncio.get_running_loop()
        before = loop.time()
        await asyncio.sleep(365 * 86_400)
        return loop.time() - before

    assert 365 * 86_400 <= run(main()) <= 365 * 86_400 + 0.01


def test_timers_are_never_early_and_fire_in_the_order_of_their_times_when_far_apart():
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        seen: list[int] = []

        async def wait(n: int) -> None:
            due = loop.time() + n
            await asyncio.sleep(n)
            assert loop.time() >= due
            seen.append(n)

        await asyncio.gather(*(wait(n) for n in (5, 1, 4, 2, 3)))
        return seen

    assert all(run(main(), seed=seed) == [1, 2, 3, 4, 5] for seed in range(20))


async def _mixed() -> str:
    """Ten tasks that meet in locks, events, timers of one instant and timeouts."""
    said: list[str] = []
    lock, gate = asyncio.Lock(), asyncio.Event()

    async def work(name: str) -> None:
        await asyncio.sleep(1)
        async with lock:
            said.append(name)
            await asyncio.sleep(0)
        try:
            async with asyncio.timeout(0.5):
                await gate.wait()
        except TimeoutError:
            said.append(f"{name}!")
            gate.set()

    async with asyncio.TaskGroup() as group:
        for name in "abcdefghij":
            group.create_task(work(name))
    return "".join(said)


def test_one_seed_is_one_story_and_other_seeds_are_others():
    stories = {seed: run(_mixed(), seed=seed) for seed in range(20)}
    assert all(run(_mixed(), seed=seed) == story for seed, story in stories.items())
    assert len(set(stories.values())) > 15


def test_what_one_step_schedules_keeps_its_order():
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        seen: list[int] = []
        for n in range(5):
            loop.call_soon(seen.append, n)
        await asyncio.sleep(1)
        return seen

    assert all(run(main(), seed=seed) == [0, 1, 2, 3, 4] for seed in range(20))


def test_a_cancelled_timer_does_not_move_time():
    async def main() -> float:
        loop = asyncio.get_running_loop()
        before = loop.time()
        loop.call_later(100, lambda: None).cancel()
        await asyncio.sleep(1)
        return loop.time() - before

    assert run(main()) < 1.1


def test_a_world_in_which_nothing_can_happen_names_who_waits():
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock, match="1 tasks wait"):
        run(main())


def test_a_world_that_spins_is_stopped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lab.sim.loop.STEPS_WITHOUT_TIME_MAX", 1_000)

    async def main() -> None:
        while True:  # noqa: ASYNC110 - the mistake itself
            await asyncio.sleep(0)

    with pytest.raises(Livelock):
        run(main())


def test_threads_are_refused_or_run_inline():
    async def main() -> int:
        return await asyncio.to_thread(lambda: 7)

    with pytest.raises(ThreadRefused):
        run(main())
    assert run(main(), loop=SimLoop(0, inline_executor=True)) == 7


def test_an_error_nobody_catches_is_remembered():
    loop = SimLoop(0)

    async def main() -> None:
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(1)

    run(main(), loop=loop)
    assert [type(failure["exception"]) for failure in loop.failures] == [ZeroDivisionError]


class Adapter:
    """What every simulated adapter does: drop what a dead process asks for."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.written: list[str] = []

    def write(self, what: str) -> None:
        if self.process.alive:
            self.written.append(what)


def test_tasks_timers_and_callbacks_inherit_their_process():
    loop = SimLoop(3)
    node = Process("node")
    seen: list[object] = []

    async def inner() -> None:
        seen.append(PROCESS.get())

    async def outer() -> None:
        await asyncio.create_task(inner())
        asyncio.get_running_loop().call_later(1, lambda: seen.append(PROCESS.get()))

    async def main() -> None:
        loop.spawn(node, outer())
        await asyncio.sleep(2)
        seen.append(PROCESS.get())

    run(main(), loop=loop)
    assert seen == [node, node, None]


@pytest.mark.parametrize("seed", range(10))
def test_the_dead_run_nothing_and_their_finally_blocks_touch_nothing(seed: int):
    loop = SimLoop(seed)
    node = Process("node")
    adapter = Adapter(node)
    finals: list[str] = []

    async def child() -> None:
        try:
            await asyncio.sleep(50)
            adapter.write("child")
        finally:
            finals.append("child")
            adapter.write("child finally")
            loop.call_soon(adapter.write, "scheduled by a finally")
            loop.call_later(1, finals.append, "a timer set by a finally")
            await asyncio.sleep(1)
            finals.append("the dead awaited something")

    async def parent() -> None:
        adapter.write("parent")
        task = asyncio.create_task(child())
        try:
            await task
        finally:
            finals.append("parent")
            adapter.write("parent finally")

    async def main() -> None:
        loop.spawn(node, parent())
        await asyncio.sleep(10)
        loop.kill(node)
        await asyncio.sleep(100)
        gc.collect()

    run(main(), loop=loop)
    assert adapter.written == ["parent"]
    assert sorted(finals) == ["child", "parent"], (
        "the clean-up ran, as CPython insists, and found nothing to touch"
    )
    assert loop.failures == []


def test_a_process_dies_before_exactly_the_step_it_is_told():
    def steps_run(deadline: int) -> tuple[int, int]:
        loop = SimLoop(1)
        node = Process("node")
        node.deadline_step = deadline
        done = 0

        async def work() -> None:
            nonlocal done
            for _ in range(100):
                done += 1
                await asyncio.sleep(0.01)

        async def main() -> None:
            loop.spawn(node, work())
            await asyncio.sleep(10)

        run(main(), loop=loop)
        return node.steps, done

    assert [steps_run(k)[0] for k in range(8)] == list(range(8))
    assert steps_run(0) == (0, 0)
    # A sleep is two steps: the timer sets a future, the future wakes the task.
    assert [steps_run(k)[1] for k in (1, 2, 3, 4, 5)] == [1, 1, 2, 2, 3]


def test_who_waits_for_a_process_that_dies_is_told_so():
    loop = SimLoop(1)
    node = Process("node")

    async def main() -> str:
        loop.call_later(5, loop.kill, node, context=context_of(None))
        assert await loop.call(node, lambda: asyncio.sleep(1, "answer")) == "answer"
        try:
            await loop.call(node, lambda: asyncio.sleep(60))
        except ProcessDied:
            return "told"
        return "not told"

    assert run(main(), loop=loop) == "told"


def test_a_process_may_die_inside_its_own_step():
    loop = SimLoop(1)
    node = Process("node")
    adapter = Adapter(node)

    async def work() -> None:
        try:
            loop.kill(node)
            adapter.write("after death")
            await asyncio.sleep(0)
        finally:
            adapter.write("finally")

    async def main() -> None:
        loop.spawn(node, work())
        await asyncio.sleep(1)

    run(main(), loop=loop)
    assert adapter.written == []


def test_a_frozen_process_waits_and_the_world_goes_on():
    loop = SimLoop(1)
    node = Process("node")
    ticks: list[float] = []

    async def tick() -> None:
        while True:
            await asyncio.sleep(1)
            ticks.append(round(loop.time() - 1_000))

    async def main() -> None:
        task = loop.spawn(node, tick())
        await asyncio.sleep(2.5)
        loop.freeze(node)
        await asyncio.sleep(10)
        loop.thaw(node)
        await asyncio.sleep(2)
        task.cancel()

    run(main(), loop=loop)
    assert ticks == [1, 2, 12, 14] or ticks == [1, 2, 12, 13, 14]


def test_a_process_may_die_frozen_with_work_cancelled():
    loop = SimLoop(1)
    node = Process("node")

    async def main() -> None:
        loop.freeze(node)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await loop.call(node, lambda: asyncio.sleep(5))
        loop.kill(node)
        await asyncio.sleep(1)
        gc.collect()

    run(main(), loop=loop)
    assert loop.failures == []
