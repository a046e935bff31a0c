"""What is looked at from time to time: ageing to its end, endings that are counted, purposes that keep to themselves."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from surehook.core.errors import LedgerUnavailable
from surehook.core.model import EventType
from surehook.delivery import ageing, deliveries, endpoints
from surehook.delivery.chores import Chores
from surehook.delivery.retry_end import end_pending_retries
from surehook.delivery.settings import EngineSettings
from surehook.ports.reading import LaneCount
from tests.delivery.house import REFUSES, House, answers, in_house

A, B = "https://a.example/hook", "https://b.example/hook"
SHUT = {
    "profile": "standard", "max_age": 120, "schedule": {"fixed": [3600]},
    "breaker": {"calls": 3, "probe_after": 3600},
}  # fmt: skip


async def backlog(house: House, url: str, count: int) -> bytes:
    """An endpoint whose breaker stands open, with parked deliveries."""
    house.receivers.scripts[url] = REFUSES
    kind = f"for.{url[8]}"
    endpoint = await house.endpoint(url, policy=SHUT, types=(kind,))
    await house.publish(3, type=kind)
    await house.wait(1)
    await house.publish(count, type=kind)
    await house.wait(1)
    assert (await house.ledger.parked_counts())[endpoint, "breaker"] == count
    return endpoint


def test_ageing_goes_on_until_nothing_aged_is_left_and_each_end_is_counted_and_told() -> None:
    async def story(house: House) -> None:
        endpoint = await backlog(house, A, 2_000)
        await house.wait(135)
        assert (endpoint, "breaker") not in await house.ledger.parked_counts()
        assert house.engine.watch.finished_by_state == {"dead": 2_003}
        assert house.engine.watch.notices["delivery.dead"] == 2_003
        assert house.facts.names.count("delivery.dead") == 2_003

    in_house(story)


def test_a_small_backlog_does_not_wait_for_the_end_of_a_large_one() -> None:
    async def story(house: House) -> None:
        large = await backlog(house, A, 3_000)
        small = await backlog(house, B, 20)
        while (small, "breaker") in (counts := await house.ledger.parked_counts()):
            await house.wait(0.01)
        assert counts[large, "breaker"] > 2_500

    in_house(story)


def test_what_only_seems_old_is_walked_over_and_stays() -> None:
    async def story(house: House) -> None:
        endpoint = await backlog(house, A, 300)
        await house.set(endpoint, policy=None)  # standard: days
        early = json.dumps({"profile": "standard", "max_age": 60}).encode()
        await house.ledger.add_event_type(EventType("other", None, None, "1", early, house.clock.now()))
        await house.engine.changed()
        await house.wait(300)
        assert (await house.ledger.parked_counts())[endpoint, "breaker"] == 300
        assert house.engine.watch.finished_by_state == {"dead": 3}  # whose first attempt was the last in time

    in_house(story)


def test_a_backlog_that_only_seems_old_delays_the_end_of_no_other() -> None:
    """Each look at it takes a while, and all of them are in vain."""

    async def story(house: House) -> None:
        vain = await backlog(house, A, 1_000)
        old = await backlog(house, B, 20)
        await house.set(vain, policy=None)  # standard: days
        early = json.dumps({"profile": "standard", "max_age": 60}).encode()
        await house.ledger.add_event_type(EventType("other", None, None, "1", early, house.clock.now()))
        await house.engine.changed()
        aged = house.ledger.parked_aged

        async def slow(*args: Any, **named: Any) -> Any:
            await house.clock.sleep(1.0)
            return await aged(*args, **named)

        house.ledger.parked_aged = slow  # type: ignore[method-assign]
        await house.wait(120 + 25)
        counts = await house.ledger.parked_counts()
        assert (vain, "breaker") in counts
        assert (old, "breaker") not in counts

    in_house(story)


def test_a_group_that_rests_makes_ageing_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has grown old in it is not ended as long as it rests."""

    async def story(house: House) -> None:
        monkeypatch.setattr(ageing, "VAIN_ROW_S", 0.2)
        vain = await backlog(house, A, 300)
        await house.set(vain, policy=None)  # standard: days
        early = json.dumps({"profile": "standard", "max_age": 60}).encode()
        await house.ledger.add_event_type(EventType("other", None, None, "1", early, house.clock.now()))
        await house.engine.changed()
        await house.wait(75)
        assert house.engine.upkeep.late_s()["ageing"] == 0.0, "it was looked at some seconds ago"
        await house.wait(30)
        assert 20 < house.engine.upkeep.late_s()["ageing"] < 30
        await house.wait(35)
        assert house.engine.upkeep.late_s()["ageing"] < 10, "after a minute it was looked at again"

    in_house(story)


def test_endings_by_request_of_retries_and_with_the_endpoint_are_counted() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(500)
        engine, patient = (
            house.engine,
            {"profile": "standard", "schedule": {"fixed": [1, 3600]}, "breaker": None},
        )
        endpoint = await house.endpoint(A, policy=patient)
        await house.publish(12)
        await house.wait(5)
        seen = await house.deliveries(state="retrying")
        assert len(seen) == 12
        for view in seen[:3]:
            await deliveries.cancel(engine, view.id)
        assert engine.watch.finished_by_state == {"cancelled": 3}
        assert engine.watch.notices.get("delivery.dead") is None
        await endpoints.remove(engine, Chores(), endpoint)
        assert engine.watch.finished_by_state == {"cancelled": 12}

    in_house(story)


def test_the_end_of_pending_retries_is_counted_and_told() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(500)
        engine, patient = (
            house.engine,
            {"profile": "standard", "schedule": {"fixed": [1, 3600]}, "breaker": None},
        )
        endpoint = await house.endpoint(A, policy=patient)
        await house.publish(4)
        await house.wait(5)
        await house.set(endpoint, policy=json.dumps({**patient, "auto_retry": False}).encode())
        await end_pending_retries(engine, endpoint=endpoint)
        assert engine.watch.finished_by_state == {"dead": 4}
        assert engine.watch.notices["delivery.dead"] == 4

    in_house(story)


def test_a_policy_that_goes_on_retrying_begins_no_walk_over_what_waits() -> None:
    """Twenty changes of an age beside 100,000 parked deliveries took half a minute of a core."""

    async def story(house: House) -> None:
        engine, chores = house.engine, Chores()
        retrying = {"profile": "standard", "schedule": {"fixed": [3600]}, "breaker": None}
        endpoint = await house.endpoint(A, policy=retrying)
        house.receivers.scripts[A] = answers(500)
        await house.publish(4)
        await house.wait(5)
        for policy, goes_on in (
            (retrying | {"max_age": 7200}, True),
            (retrying | {"auto_retry": False}, False),
        ):
            await endpoints.change(engine, chores, endpoint, {"policy": json.dumps(policy).encode()})
            assert (not chores._running, engine.directory.may_call_off(endpoint=endpoint)) == (
                goes_on,
                not goes_on,
            )
        await chores.idle()
        assert engine.watch.finished_by_state == {"dead": 4}
        assert not engine.directory.may_call_off(event_type="doc.signed")

    in_house(story)


def test_what_was_parked_as_its_endpoint_was_deleted_is_cancelled_and_counted() -> None:
    async def story(house: House) -> None:
        endpoint = await backlog(house, A, 500)
        await house.ledger.remove_endpoint(endpoint)  # whoever did it died before it ended the backlog
        await house.engine.changed()
        await house.wait(25)
        assert (await house.ledger.parked_counts()) == {}
        assert house.engine.watch.finished_by_state["cancelled"] >= 500

    in_house(story)


def test_a_purpose_that_fails_is_late_and_stops_no_other() -> None:
    async def story(house: House) -> None:
        def faults(step: str) -> None:
            if step.endswith(" overdue"):
                raise LedgerUnavailable("no answer")

        house.faults = faults
        await backlog(house, A, 100)
        await house.wait(140)
        assert house.engine.watch.finished_by_state["dead"] == 103
        late = house.engine.upkeep.late_s()
        assert late.pop("overdue") > 100
        assert max(late.values()) < 1

    in_house(story)


def test_a_count_is_never_older_than_a_second() -> None:
    async def story(house: House) -> None:
        endpoint = await backlog(house, A, 50)
        await house.wait(1.1)
        assert house.engine.looks.parked_counts == {(endpoint, "breaker"): 50}

    in_house(story)


def test_who_asks_how_much_waits_does_not_wait_for_a_large_count() -> None:
    """Told by how many there were when they were counted last."""

    async def story(house: House) -> None:
        engine, counted = house.engine, [LaneCount(0, 200_000, 0, 200_000, None)]
        engine.looks.lane_counts, engine.looks.parked_counts = counted, {(b"e" * 16, "breaker"): 200_000}
        assert await engine.lane_counts() == counted
        assert sum((await engine.parked_counts()).values()) == 200_000
        await house.wait(2)  # the next count
        assert [lane.rows for lane in await engine.lane_counts()] == [0, 0]
        assert await engine.parked_counts() == {}

    in_house(story)


@pytest.mark.parametrize("slow", ["lane_counts", "parked_counts", "parked_groups"])
def test_a_node_that_starts_sends_what_is_ready_before_it_has_counted_what_waits(slow: str) -> None:
    async def story(house: House) -> None:
        await house.endpoint(A)
        await house.publish(3)
        await house.engine.stop()
        method, counted = getattr(house.ledger, slow), []

        async def call(*args: Any, **named: Any) -> Any:
            await asyncio.sleep(10)
            counted.append(slow)
            return await method(*args, **named)

        setattr(house.ledger, slow, call)
        house.settings = EngineSettings()
        house.engine = house.another()
        starting = asyncio.ensure_future(house.engine.start())
        await house.wait(1)
        assert len(house.receivers.calls) == 3
        assert not counted
        await starting
        await house.wait(15)
        assert counted

    in_house(story, settings=EngineSettings(lanes=()))
