"""One script, two drivers: the same answers, and the same errors in the same line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from surehook.core import effects
from surehook.core.effects import Script


class Blocking:
    """A port whose answers are there at once."""

    def ask(self, value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value


class Awaiting:
    """The same port, whose answers are waited for."""

    async def ask(self, value: Any) -> Any:
        await asyncio.sleep(0)
        if isinstance(value, Exception):
            raise value
        return value


@pytest.fixture(params=["blocking", "awaiting"])
def do(request: pytest.FixtureRequest) -> Callable[[Callable[[Any], Script[Any]]], Any]:
    if request.param == "blocking":
        return lambda script: effects.run(script(Blocking()))
    return lambda script: asyncio.run(effects.run_async(script(Awaiting())))


def test_a_script_gets_its_answers_and_returns_what_it_makes_of_them(do):
    def inner(port: Any) -> Script[int]:
        first: int = yield port.ask(1)
        second: int = yield port.ask(2)
        return first + second

    def script(port: Any) -> Script[list[int]]:
        both = yield from inner(port)
        return [both, (yield port.ask(4))]

    assert do(script) == [3, 4]


def test_a_script_without_effects_returns(do):
    def script(port: Any) -> Script[str]:
        return "done"
        yield

    assert do(script) == "done"


def test_an_error_is_met_in_the_line_that_asked_and_the_script_goes_on(do):
    def script(port: Any) -> Script[list[str]]:
        seen = []
        for value in ("a", ValueError("b"), "c"):
            try:
                seen.append((yield port.ask(value)))
            except ValueError as error:
                seen.append(f"not {error}")
            finally:
                seen.append(".")
        return seen

    assert do(script) == ["a", ".", "not b", ".", "c", "."]


def test_an_error_that_no_script_meets_is_the_callers(do):
    left = []

    def script(port: Any) -> Script[None]:
        try:
            yield port.ask(KeyError("x"))
        finally:
            left.append(True)

    with pytest.raises(KeyError):
        do(script)
    assert left == [True]


def test_a_cancelled_script_leaves_at_once_and_its_finally_may_wait():
    left = []

    def script() -> Script[None]:
        try:
            yield asyncio.sleep(60)
        finally:
            left.append((yield Awaiting().ask("closed")))

    async def go() -> None:
        task = asyncio.create_task(effects.run_async(script()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert left == ["closed"]
