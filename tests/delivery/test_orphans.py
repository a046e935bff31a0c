"""Deliveries of a deleted endpoint that come back to the book behind the walk that ends them: none waits for its time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lab.ledger.ledger import MemoryLedger
from surehook.core.errors import LedgerUnavailable
from surehook.delivery import endpoints
from surehook.delivery.chores import Chores
from tests.delivery.house import REFUSES, House, answers, in_house
from tests.delivery.nodes import ALL, Town, in_town

A = "https://a.example/hook"
LATER = {"profile": "standard", "schedule": {"fixed": [36_000]}}  # the next attempt is ten hours away
LOOKED_S = 25  # two looks


class Slow(MemoryLedger):
    """A ledger in which calls of some names take five seconds, as beside a standby that is away."""

    slow: tuple[str, ...] = ()

    async def record(self, *args: Any, **named: Any) -> Any:
        await self._stand("record")
        return await super().record(*args, **named)

    async def release(self, *args: Any, **named: Any) -> Any:
        await self._stand("release")
        return await super().release(*args, **named)

    async def _stand(self, name: str) -> None:
        if name in self.slow:
            await asyncio.sleep(5)


async def delete(house: House, endpoint: bytes) -> None:
    """As the door does."""
    chores = Chores()
    await endpoints.remove(house.engine, chores, endpoint)
    await chores.idle()


def slow(house: House, *names: str) -> None:
    assert isinstance(house.ledger, Slow)
    house.ledger.slow = names


def test_a_retry_whose_result_was_being_written_as_its_endpoint_was_deleted_is_cancelled() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(500)
        endpoint = await house.endpoint(A, policy=LATER)
        slow(house, "record")
        await house.publish(3)
        await house.wait(1)
        await delete(house, endpoint)
        assert await house.states() == {"sending": 3}
        await house.wait(5)
        assert await house.states() == {"retrying": 3}
        await house.wait(LOOKED_S)
        assert await house.states() == {"cancelled:deleted": 3}
        assert house.engine.watch.finished_by_state == {"cancelled": 3}

    in_house(story, ledger=Slow)


def test_a_retry_that_a_node_wrote_before_it_heard_of_the_deletion_is_cancelled() -> None:
    async def story(town: Town) -> None:
        town.receivers.scripts[A] = answers(500, after=0.1)
        endpoint = await town.endpoint(A, policy=LATER)
        await town.engines["two"].changed()
        town.engine = town.engines["two"]
        await town.publish()
        town.engine = town.engines["one"]
        await town.wait(0.05)
        await delete(town, endpoint)
        await town.wait(0.1)
        assert endpoint in town.engines["two"].directory.routes
        assert await town.states() == {"retrying": 1}
        await town.wait(LOOKED_S)
        assert await town.states() == {"cancelled:deleted": 1}

    in_town(story, hears=False, one=ALL, two=ALL)


def test_what_was_being_handed_back_as_its_endpoint_was_deleted_is_cancelled() -> None:
    async def story(house: House) -> None:
        endpoint = await house.endpoint(A)
        await house.set(endpoint, status="paused")
        await house.publish(3)
        house.clock.step(-3_600_000)  # so that nothing of it is due for an hour
        slow(house, "release")
        await house.set(endpoint, status="active")
        await house.wait(1)
        assert await house.states() == {"sending": 3}
        await delete(house, endpoint)
        await house.wait(5)
        assert await house.states() == {"scheduled": 3}
        await house.wait(LOOKED_S)
        assert await house.states() == {"cancelled:deleted": 3}

    in_house(story, ledger=Slow)


def test_what_a_dead_node_held_as_its_endpoint_was_deleted_is_cancelled() -> None:
    async def story(town: Town) -> None:
        town.receivers.scripts[A] = answers(200, after=500.0)
        endpoint = await town.endpoint(A)
        await town.engines["dead"].changed()
        living, town.engine = town.engine, town.engines["dead"]
        await town.publish(3)
        await town.wait(1)
        dead, town.engine = town.engines.pop("dead"), living
        for task in dead.loops.tasks:
            task.cancel()
        dead.deliver.halt()
        for clock in (town.clock, *town.clocks.values()):
            clock.step(-3_600_000)  # so that nothing of it is due for an hour
        await delete(town, endpoint)
        assert await town.states() == {"sending": 3}
        await town.wait(16 + LOOKED_S)
        assert await town.states() == {"cancelled:deleted": 3}

    in_town(story, living=ALL, dead=ALL, stops=False)


def test_a_retry_that_a_node_wrote_and_died_before_it_looked_is_cancelled() -> None:
    async def story(town: Town) -> None:
        town.receivers.scripts[A] = answers(500, after=0.1)
        endpoint = await town.endpoint(A, policy=LATER)
        await town.engines["dead"].changed()
        living, town.engine = town.engine, town.engines["dead"]
        await town.publish()
        dead, town.engine = town.engines.pop("dead"), living
        await town.wait(0.05)
        await delete(town, endpoint)
        await town.wait(0.1)
        assert await town.states() == {"retrying": 1}
        for task in dead.loops.tasks:
            task.cancel()
        await town.wait(16 + LOOKED_S)
        assert await town.states() == {"cancelled:deleted": 1}

    in_town(story, hears=False, stops=False, living=ALL, dead=ALL)


@pytest.mark.parametrize("call", ["end_endpoint", "changes"])
@pytest.mark.parametrize("is_full", [False, True])
def test_a_deletion_that_meets_trouble_after_its_commit_leaves_nothing_behind(
    call: str, is_full: bool
) -> None:
    """The endpoint is gone, so asking again is answered 404: nobody else would end what it has."""

    async def story(house: House) -> None:
        def faults(step: str) -> None:
            if step == f"before {call}":
                raise LedgerUnavailable("no answer")

        house.receivers.scripts[A] = answers(500)
        endpoint = await house.endpoint(A, policy=LATER)
        await house.publish(3)
        await house.wait(1)
        chores = Chores()
        if is_full:
            await chores.stop()
        house.faults = faults
        if call == "changes":
            with pytest.raises(LedgerUnavailable):
                await endpoints.remove(house.engine, chores, endpoint)
        else:
            await endpoints.remove(house.engine, chores, endpoint)
        house.faults = lambda step: None
        await house.wait(LOOKED_S)
        assert await house.states() == {"cancelled:deleted": 3}
        await chores.stop()

    in_house(story)


def test_a_ledger_that_is_away_at_the_look_is_asked_again() -> None:
    async def story(house: House) -> None:
        def faults(step: str) -> None:
            if step == "before end_endpoint":
                raise LedgerUnavailable("no answer")

        house.receivers.scripts[A] = REFUSES
        endpoint = await house.endpoint(A, policy=LATER)
        slow(house, "record")
        await house.publish()
        await house.wait(1)
        await delete(house, endpoint)
        house.faults = faults
        await house.wait(5 + LOOKED_S)
        assert await house.states() == {"retrying": 1}
        house.faults = lambda step: None
        await house.wait(LOOKED_S)
        assert await house.states() == {"cancelled:deleted": 1}

    in_house(story, ledger=Slow)


def test_endpoints_that_are_there_are_not_asked_for() -> None:
    async def story(house: House) -> None:
        steps: list[str] = []
        house.receivers.scripts[A] = answers(500)
        await house.endpoint(A, policy=LATER)
        await house.publish(3)
        house.faults = steps.append
        await house.wait(LOOKED_S)
        assert await house.states() == {"retrying": 3}
        assert "before record" in steps
        assert "before endpoint" not in steps
        assert "before end_endpoint" not in steps

    in_house(story)
