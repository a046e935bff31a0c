"""Parts of the memory ledger beyond the contract: hooks, its own rows, orders that are never scanned."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.ledger.ledger import MemoryLedger
from lab.ledger.sorted_keys import BLOCK_KEYS_MAX, SortedKeys
from surehook.core.errors import CommitUnknown, LedgerUnavailable
from tests.ledgers.desk import ALL, Desk
from tests.ledgers.making import NOW, Maker


class Faults:
    """Remembers the steps and raises what was planned for one of them, once."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.planned: dict[str, Exception] = {}

    def __call__(self, step: str) -> None:
        self.seen.append(step)
        if step in self.planned:
            raise self.planned.pop(step)


def _with_faults(scenario: Callable[[Desk, Faults], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        faults = Faults()
        await scenario(await Desk(MemoryLedger(faults=faults), Maker()).begin(), faults)

    asyncio.run(run())


def test_steps_that_write_are_announced_before_and_after_and_looks_before() -> None:
    async def scenario(desk: Desk, faults: Faults) -> None:
        faults.seen.clear()
        await desk.ledger.claim(0, node=desk.node, limit=1, due_by=NOW, now=NOW)
        await desk.ledger.next_due(0)
        assert faults.seen == ["before claim", "after claim", "before next_due"]

    _with_faults(scenario)


def test_a_fault_before_a_step_leaves_nothing() -> None:
    async def scenario(desk: Desk, faults: Faults) -> None:
        faults.planned["before accept"] = LedgerUnavailable("planned")
        item = desk.make.incoming(desk.endpoint, key="k")
        with pytest.raises(LedgerUnavailable):
            await desk.accept(item)
        assert await desk.ledger.event(item.event.id) is None
        assert (await desk.accept(item))[0].fresh

    _with_faults(scenario)


def test_a_lost_answer_leaves_everything_and_the_same_batch_counts_as_fresh() -> None:
    async def scenario(desk: Desk, faults: Faults) -> None:
        faults.planned["after accept"] = CommitUnknown("planned")
        item = desk.make.incoming(desk.endpoint, given=True, key="k", held=True)
        with pytest.raises(CommitUnknown):
            await desk.accept(item)
        assert await desk.ledger.event(item.event.id) == item.event
        assert (await desk.accept(item))[0].fresh
        assert await desk.ledger.held(desk.node, limit=ALL) == [item.deliveries[0].id]

    _with_faults(scenario)


def test_others_may_run_on_both_sides_of_a_step_and_never_inside() -> None:
    """Of two interleaved claims each takes whole rows, whatever the order in which they wake."""

    async def scenario() -> None:
        desk = await Desk(MemoryLedger(checkpoint=lambda: asyncio.sleep(0)), Maker()).begin()
        other = await desk.new_node()
        deliveries = [await desk.publish_one() for _ in range(6)]
        claims = await asyncio.gather(desk.claim(limit=4), desk.claim(limit=4, node=other))
        assert [len(claimed) for claimed in claims] == [4, 2]
        assert {one.id for claimed in claims for one in claimed} == {one.id for one in deliveries}

    asyncio.run(scenario())


def test_a_caller_that_dies_after_a_step_has_committed_it() -> None:
    async def scenario() -> None:
        reached = asyncio.Event()
        passes = 2

        async def checkpoint() -> None:
            nonlocal passes
            passes -= 1
            if not passes:
                reached.set()
                await asyncio.Event().wait()

        ledger = MemoryLedger()
        desk = await Desk(ledger, Maker()).begin()
        item = desk.make.incoming(desk.endpoint)
        version = await ledger.version()
        ledger._checkpoint = checkpoint
        caller = asyncio.create_task(ledger.accept([item], node=desk.node, version=version, now=NOW))
        await reached.wait()
        caller.cancel()
        await asyncio.wait([caller])
        ledger._checkpoint = None
        assert await ledger.event(item.event.id) == item.event

    asyncio.run(scenario())


def test_changing_a_value_in_hand_changes_nothing_in_the_book() -> None:
    async def scenario() -> None:
        desk = await Desk(MemoryLedger(), Maker()).begin()
        born = await desk.publish_one()
        born.due_at = born.attempt = 99
        (claimed,) = await desk.claim()
        assert (claimed.due_at, claimed.attempt) == (NOW, 1)
        claimed.attempt = 99
        assert (await desk.row(born))[0].attempt == 1

    asyncio.run(scenario())


# -- sorted keys ------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 60))), st.integers(-1, 61))
def test_sorted_keys_are_a_sorted_set(changes: list[tuple[bool, int]], key: int) -> None:
    keys: SortedKeys[int] = SortedKeys()
    model: set[int] = set()
    for is_added, value in changes:
        (keys.add if is_added else keys.discard)(value)
        (model.add if is_added else model.discard)(value)
    _agree(keys, model, key)


def test_sorted_keys_stay_a_sorted_set_over_many_blocks() -> None:
    """Far more keys than a block holds, in an order that fills, splits and empties blocks."""
    count = BLOCK_KEYS_MAX * 5
    keys: SortedKeys[int] = SortedKeys()
    model = set()
    for place in range(count):
        keys.add(place * 7919 % count)
        model.add(place * 7919 % count)
    for key in (-1, 0, 511, 512, count // 2, count - 1, count):
        _agree(keys, model, key)
    for value in range(100, count - 100):
        keys.discard(value)
        model.discard(value)
    for key in (-1, 0, 99, 100, count - 100, count):
        _agree(keys, model, key)


def _agree(keys: SortedKeys[int], model: set[int], key: int) -> None:
    ordered = sorted(model)
    assert list(keys.ascending()) == ordered
    assert list(keys.ascending(key)) == [one for one in ordered if one >= key]
    assert list(keys.descending()) == ordered[::-1]
    assert list(keys.descending(key)) == [one for one in reversed(ordered) if one < key]
    assert (len(keys), keys.first()) == (len(model), ordered[0] if ordered else None)
    assert keys.count_upto(key) == sum(one <= key for one in ordered)
    assert (key in keys) == (key in model)
