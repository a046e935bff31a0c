"""Large batches are decoded a slice at a time, one after another, and others have the event loop in between."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from surehook.api.batch_turns import PAUSE_TURNS, BatchTurns


async def work(turns: BatchTurns, caller: bytes, slices: int, told: list[str], name: str) -> None:
    for done in range(slices):
        await turns.enter(caller, done)
        told.append(name)
        turns.leave()


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def together(*batches: tuple[bytes, int, str]) -> list[str]:
    """Batches of so many slices that all wait while somebody has a turn; whose slices were done, in order."""

    async def main() -> list[str]:
        turns, told = BatchTurns(), list[str]()
        await turns.enter(b"", 0)
        tasks = [asyncio.ensure_future(work(turns, *batch[:2], told, batch[2])) for batch in batches]
        await settle()
        turns.leave()
        await asyncio.gather(*tasks)
        await turns.enter(b"", 0)  # nothing is left that could keep it from a turn
        return told

    return asyncio.run(main())


def test_callers_take_turns_however_many_batches_each_has() -> None:
    told = together(*((b"loud", 2, "loud") for _ in range(20)), (b"calm", 3, "calm"))
    assert told[:6].count("calm") == 3


def test_of_one_callers_batches_that_goes_on_of_which_least_was_done() -> None:
    told = together((b"one", 4, "large"), (b"one", 4, "large too"), (b"one", 1, "small"))
    assert told.index("small") <= 2


def test_others_have_several_turns_of_the_loop_between_two_slices() -> None:
    async def main() -> None:
        turns, told = BatchTurns(), list[str]()
        tasks = [asyncio.ensure_future(work(turns, b"one", 3, told, "slice")) for _ in range(8)]
        since = most = 0
        while not all(task.done() for task in tasks):
            before = len(told)
            await asyncio.sleep(0)
            most = max(most, len(told) - before)
            since = 0 if len(told) > before else since + 1
            assert most <= 1
            assert since <= 2 * PAUSE_TURNS
        assert len(told) == 24

    asyncio.run(main())


def cancelled_in_line(when_told: bool) -> Coroutine[Any, Any, None]:
    async def main() -> None:
        turns = BatchTurns()
        await turns.enter(b"one", 0)
        waiting = asyncio.ensure_future(turns.enter(b"one", 0))
        await settle()
        if when_told:
            turns._give()
        waiting.cancel()
        await settle()
        if not when_told:
            turns.leave()
        async with asyncio.timeout(5):
            await turns.enter(b"two", 0)

    return main()


def test_who_hangs_up_in_line_leaves_the_turn_to_the_next() -> None:
    asyncio.run(cancelled_in_line(False))


def test_who_hangs_up_as_its_turn_comes_leaves_it_to_the_next() -> None:
    asyncio.run(cancelled_in_line(True))
