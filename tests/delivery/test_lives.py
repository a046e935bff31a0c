"""A node is evicted and goes on under a new id: nothing that its former life began, heard late, touches what it holds now."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from surehook.core.errors import LedgerUnavailable, NodeEvicted
from surehook.core.model import FIRST, NodeRow
from surehook.delivery.settings import EngineSettings
from tests.delivery.house import House, answers, in_house
from tests.delivery.nodes import API, FIRST_ONLY, Town, in_town

A = "https://a.example/hook"
PATIENT = {
    "profile": "standard",
    "timeouts": {"first": 10, "retry": 10},
    "schedule": {"fixed": [4]},
    "jitter": None,
}
LATE_S = 5.0  # after the next beat, which tells of an eviction


def late(house: House, name: str, node: bytes) -> None:
    """Whatever the ledger says to such calls of this node, refusals too, is heard so much later."""
    method = getattr(house.ledger, name)

    async def call(*args: Any, **named: Any) -> Any:
        try:
            return await method(*args, **named)
        finally:
            if named["node"] == node:
                await asyncio.sleep(LATE_S)

    setattr(house.ledger, name, call)


async def evict(house: House, node: bytes) -> int:
    return (await house.ledger.evict([node], now=house.clock.now())).freed


def test_a_refusal_that_is_heard_late_does_not_end_the_next_life() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(200, after=0.1)
        await house.endpoint(policy=PATIENT)
        first = house.engine.node.id
        late(house, "record", first)
        await house.publish()
        assert await evict(house, first) == 1
        await house.wait(3)
        second = house.engine.node.id
        assert second != first
        house.receivers.scripts[A] = answers(200, after=LATE_S)  # under way when the refusal is heard
        await house.publish()
        await house.wait(3 * LATE_S)
        assert house.engine.node.id == second
        assert len(house.receivers.calls) == 3
        assert await house.states() == {"delivered": 2}

    in_house(story)


def test_a_refusal_from_between_two_lives_does_not_end_the_next() -> None:
    """Entering takes its time, a beat is asked meanwhile, and that it was refused is heard when the next life has begun."""

    async def story(house: House) -> None:
        enter, beat, entered = house.ledger.enter, house.ledger.beat, list[bytes]()

        async def slow(node: NodeRow, *, now: int) -> None:
            await asyncio.sleep(2.5)
            await enter(node, now=now)
            entered.append(node.id)

        async def late(*args: Any, **named: Any) -> Any:
            try:
                return await beat(*args, **named)
            except NodeEvicted:
                await asyncio.sleep(LATE_S)
                raise

        house.ledger.enter, house.ledger.beat = slow, late  # type: ignore[method-assign]
        await evict(house, house.engine.node.id)
        await house.wait(4 * LATE_S)
        assert entered == [house.engine.node.id]

    in_house(story)


def test_results_of_a_former_life_are_not_written_in_the_next() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(500)
        await house.endpoint(policy=PATIENT)
        until = house.clock.boot() + 2.5

        def away(step: str) -> None:
            if step == "before record" and house.clock.boot() < until:
                raise LedgerUnavailable("away")

        house.faults = away
        await house.publish(3)  # one is being written, two wait for it
        await house.wait(0.1)
        house.receivers.scripts[A] = answers(200, after=3.0)
        assert await evict(house, house.engine.node.id) == 3
        await house.wait(20)
        assert (
            len(house.receivers.calls) == 6
        )  # a failure that was written late would have let all go for a third time
        for view in await house.deliveries():
            assert [entry.kind for entry in await house.story(view)] == ["interrupted", "attempt"]
        assert await house.states() == {"delivered": 3}

    in_house(story, settings=EngineSettings(record_rows=1))


@pytest.mark.parametrize("away_s", [2.5, 5.0])
def test_what_a_former_life_meant_to_park_is_not_parked_in_the_next(away_s: float) -> None:
    """One is sent at a time, a second each, from the eviction on. The ledger is back for parking while the third is under
    way, or the fifth."""

    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(200, after=1.0)
        endpoint = await house.endpoint(policy=PATIENT)
        until = house.clock.boot() + away_s

        def away(step: str) -> None:
            if step == "before park" and house.clock.boot() < until:
                raise LedgerUnavailable("away")

        house.faults = away
        for count in (4, 1):  # three are being written, one waits for it
            await house.publish(count)
            await house.set(endpoint, status="paused")
            await house.wait(0.01)
            await house.set(endpoint, status="active")
        assert await evict(house, house.engine.node.id) == 5
        await house.wait(30)
        assert len(house.receivers.calls) == 6
        assert await house.states() == {"delivered": 5}

    in_house(story, settings=EngineSettings(slots_first=1, slots_retry=1))


def test_what_was_born_leased_in_a_former_life_is_not_sent_for_it_in_the_next() -> None:
    async def story(house: House) -> None:
        await house.endpoint()
        first = house.engine.node.id
        late(house, "accept", first)
        publishing = asyncio.ensure_future(house.publish())
        await house.wait(0.1)
        assert await evict(house, first) == 1
        await house.wait(3)
        assert len(house.receivers.calls) == 1
        await publishing
        await house.wait(3)
        assert len(house.receivers.calls) == 1
        assert await house.states() == {"delivered": 1}

    in_house(story)


def test_what_a_former_life_claimed_is_not_sent_for_it_in_the_next() -> None:
    async def story(town: Town) -> None:
        await town.endpoint()
        worker = town.engines["worker"]
        first = worker.node.id
        await town.publish(3)
        late(town, "claim", first)
        await town.wait(1.5)  # a poll
        assert town.calls("worker") == 0
        assert await evict(town, first) == 3
        await town.wait(3 * LATE_S)
        assert worker.node.id != first
        assert town.calls("worker") == 3
        assert await town.states() == {"delivered": 3}

    in_town(story, hears=False, api=API, worker=FIRST_ONLY)


def test_what_is_heard_on_the_way_into_the_next_life_is_not_sent_for_it() -> None:
    """The answer to a claim comes when memory was forgotten, and the new id is not in the ledger yet."""

    async def story(town: Town) -> None:
        await town.endpoint()
        worker = town.engines["worker"]
        first = worker.node.id
        time = town.ledger.time

        async def slow() -> int | None:
            await asyncio.sleep(2 * LATE_S)
            return await time()

        await town.publish(3)
        late(town, "claim", first)
        await town.wait(1.5)  # a poll
        assert await evict(town, first) == 3
        town.ledger.time = slow  # type: ignore[method-assign]
        await town.wait(2)
        town.ledger.time = time  # type: ignore[method-assign]
        await town.wait(6 * LATE_S)
        assert worker.node.id != first
        assert town.calls("worker") == 3
        assert await town.states() == {"delivered": 3}

    in_town(story, hears=False, api=API, worker=FIRST_ONLY)


@pytest.mark.parametrize("evicted", [False, True])
def test_what_a_former_life_took_out_of_parking_is_not_sent_for_it_in_the_next(evicted: bool) -> None:
    async def story(house: House) -> None:
        endpoint = await house.endpoint()
        await house.set(endpoint, status="paused")
        await house.publish(3)
        await house.wait(1)
        first = house.engine.node.id
        late(house, "unpark", first)
        await house.set(endpoint, status="active")
        await house.wait(0.1)
        if evicted:
            assert await evict(house, first) == 3
        await house.wait(3)
        assert len(house.receivers.calls) == 3 * evicted
        await house.wait(3 * LATE_S)
        assert len(house.receivers.calls) == 3
        assert await house.states() == {"delivered": 3}

    in_house(story)


def test_what_a_former_life_missed_is_not_lost_in_the_next() -> None:
    """It looks at 0.1, 0.3, 0.8, 1.8 and 3.8 s. The row is leased unheard before the fourth, freed by the eviction, and on its
    way to the next life at the fifth."""

    async def story(town: Town) -> None:
        await town.endpoint()
        worker = town.engines["worker"]
        first = worker.node.id
        claim = town.ledger.claim

        async def slow(*args: Any, **named: Any) -> Any:
            rows = [] if named["node"] == first else await claim(*args, **named)
            await asyncio.sleep(2 if rows else 0)
            return rows

        town.ledger.claim = slow  # type: ignore[method-assign]
        worker.reconciler._holdings.suspect()
        await town.publish()
        await town.wait(1.7)
        now = town.clock.now()
        assert len(await claim(FIRST, node=first, limit=1, due_by=now, now=now)) == 1
        await town.wait(0.15)
        assert await evict(town, first) == 1
        await town.wait(20)
        assert worker.node.id != first
        assert worker.reconciler.released == 0
        assert town.calls("worker") == 1

    in_town(story, hears=False, api=API, worker=FIRST_ONLY)


TROUBLE = {"engine.failed", "engine.stop_failed", "loop.failed"}


def test_a_node_that_others_evict_while_it_leaves_ends_in_order() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(200, after=3.0)
        await house.endpoint(policy=PATIENT)
        await house.publish(3)
        await house.wait(0.1)
        leaving = asyncio.ensure_future(house.engine.stop())
        await house.wait(0.5)
        assert await evict(house, house.engine.node.id) == 3
        await leaving
        assert house.engine.failure is None
        assert not TROUBLE & set(house.facts.names)

    in_house(story, stops=False)


def test_a_beat_that_meets_the_nodes_own_eviction_is_no_failure() -> None:
    """Loops go on until it is written that the node has left."""

    async def story(house: House) -> None:
        evicting = house.ledger.evict

        async def slowly(*args: Any, **named: Any) -> Any:
            try:
                return await evicting(*args, **named)
            finally:
                await house.wait(3)

        house.ledger.evict = slowly
        await house.engine.stop()
        assert house.engine.failure is None
        assert not TROUBLE & set(house.facts.names)

    in_house(story, stops=False)
