"""Any calls in any order: the memory ledger and the other one answer alike and tell the same story."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.ledger.ledger import MemoryLedger
from surehook.core.errors import NodeEvicted, Problem
from tests.budget import examples

from .adapters import ADAPTERS, Adapter
from .making import NOW
from .play import PRUNE_ALL, Call, Play
from .story import differences, plain, story

CALLS_MAX = 60
ROUNDS_MAX = 100


async def _answer(call: Call, ledger: Any) -> Any:
    try:
        if call.name == PRUNE_ALL:
            return await _until_nothing_is_left(Call("prune", (), {**call.kwargs, "limit": 50}), ledger) >= 0
        if call.name == "end_endpoint":
            return await _until_nothing_is_left(call, ledger)
        return plain(await call.on(ledger))
    except (NodeEvicted, Problem) as refusal:
        return type(refusal).__name__, getattr(refusal, "code", None)


async def _until_nothing_is_left(call: Call, ledger: Any) -> int:
    """How much all rounds did. How much one round does, up to its limit, is each book's own affair."""
    done = 0
    for _ in range(ROUNDS_MAX):
        once = await call.on(ledger)
        if not once:
            return done
        done += once
    raise AssertionError(f"{call.name} without end")


class SideBySide:
    """A model book and another one that get the same calls."""

    def __init__(self, other: Any, draw: st.DataObject) -> None:
        self._model, self._other = MemoryLedger(), other
        self._play = Play(self._model, lambda below: draw.draw(st.integers(0, below - 1)))
        self._made: list[str] = []

    async def run(self, calls: int) -> None:
        await self._other.open(now=NOW)
        try:
            for call in self._play.first_calls():
                await self._make(call)
            for _ in range(calls):
                await self._make(self._play.next_call())
            await self._compare()
            await self._make(self._play.prune_everything())
            await self._compare()
        finally:
            await self._other.close()

    async def _make(self, call: Call) -> None:
        self._made.append(f"{call.name}{call.args}{call.kwargs}")
        theirs = await _answer(call, self._other)
        mine = await _answer(call, self._model)
        assert theirs == mine, "\n".join([*self._made, f"memory: {mine}", f"other:  {theirs}"])

    async def _compare(self) -> None:
        mine = await story(self._model, now=self._play.now)
        theirs = await story(self._other, now=self._play.now)
        assert mine == theirs, "\n".join([*self._made, *differences(mine, theirs)])


OTHERS = [adapter for adapter in ADAPTERS if adapter.name != "memory"]


@pytest.mark.parametrize("other", OTHERS[:1], ids=lambda adapter: adapter.name)
@given(draw=st.data(), calls=st.integers(0, CALLS_MAX))
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck), database=None)
def test_two_books_with_the_same_calls_are_the_same_book(
    other: Adapter, draw: st.DataObject, calls: int
) -> None:
    with tempfile.TemporaryDirectory() as place, asyncio.Runner() as runner:
        runner.run(SideBySide(other.make(Path(place)), draw).run(calls))
