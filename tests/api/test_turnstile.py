"""Calls that come together begin one after another, and callers take turns."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from surehook.api import turnstile
from surehook.api.turnstile import AT_ONCE, REST_S, TURNS, Turnstile


def begun(*callers: bytes | None, hung_up: int = 0) -> tuple[list[bytes | None], int]:
    """Calls of these callers, all at once, of which the last `hung_up` are given up: who began, in order, and how many rests
    there was time for."""

    async def main() -> tuple[list[bytes | None], int]:
        one, told = Turnstile(), list[bytes | None]()

        async def call(caller: bytes | None) -> None:
            await one.passed(caller)
            told.append(caller)

        loop = asyncio.get_running_loop()
        since = loop.time()
        calls = [asyncio.ensure_future(call(caller)) for caller in callers]
        await asyncio.sleep(0)
        assert len(told) == 1, "the first does not wait"
        for each in calls[len(calls) - hung_up :]:
            each.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        rests = int((loop.time() - since) / REST_S)
        # Nothing is left that could keep them.
        calls = [asyncio.ensure_future(call(b"later")) for _ in range(2)]
        await asyncio.gather(*calls)
        return told[:-2], rests

    return asyncio.run(main())


def test_of_a_crowd_one_begins_in_a_rest() -> None:
    told, rests = begun(*[b"loud"] * 30)
    assert len(told) == 30 and rests >= 28


def test_a_call_that_has_begun_has_turns_of_the_loop_before_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turnstile, "REST_S", 0.0)

    async def main() -> None:
        one, told = Turnstile(), list[int]()

        async def call() -> None:
            await one.passed(None)
            told.append(turn)

        calls = [asyncio.ensure_future(call()) for _ in range(5)]
        turn = 0
        while not all(each.done() for each in calls):
            await asyncio.sleep(0)
            turn += 1
        assert all(later - earlier >= TURNS for earlier, later in pairwise(told))

    asyncio.run(main())


def test_the_more_wait_the_more_begin_in_a_rest() -> None:
    told, rests = begun(*[b"loud"] * 10 * AT_ONCE)
    assert len(told) == 10 * AT_ONCE and rests >= 2 * AT_ONCE  # one by one it would be ten


def test_callers_take_turns_however_many_calls_each_has() -> None:
    told, _ = begun(*[b"loud"] * 20, b"calm", b"calm", None)
    assert told.index(None) <= 4 and told[:7].count(b"calm") == 2


def test_who_hangs_up_costs_the_others_no_turn() -> None:
    told, _ = begun(b"loud", b"calm", *[b"loud"] * 50, hung_up=50)
    assert told == [b"loud", b"calm"]
