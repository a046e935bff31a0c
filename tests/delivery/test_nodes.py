"""Several nodes on one ledger: who sends what, what they tell each other, and what holds when one is gone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from surehook.core.model import FIRST, RETRY
from surehook.delivery.retry_end import end_pending_retries
from surehook.delivery.unserved import Unserved
from surehook.ports.reading import LaneCount, NoticeFilter
from tests.delivery.house import REFUSES, Facts, answers
from tests.delivery.nodes import ALL, API, FIRST_ONLY, RETRY_ONLY, WORKER, Town, in_town

A = "https://a.example/hook"
SHORT = {"profile": "standard", "schedule": {"fixed": [2, 4]}, "jitter": None, "breaker": None}
BREAKS = {
    "profile": "standard",
    "breaker": {"calls": 5, "probe_after": 30},
    "schedule": {"fixed": [3600]},
}


def test_an_api_node_sends_nothing_and_a_worker_sends_it_at_once() -> None:
    async def story(town: Town) -> None:
        await town.endpoint()
        await town.publish(20)
        await town.wait(0.1)
        assert (town.calls("api"), town.calls("worker")) == (0, 20)
        await town.wait(1)
        assert await town.states() == {"delivered": 20}

    in_town(story, api=API, worker=WORKER)


def test_without_hints_a_worker_finds_work_within_a_poll() -> None:
    async def story(town: Town) -> None:
        await town.endpoint()
        await town.wait(2)
        await town.publish(1)
        began = asyncio.get_running_loop().time()
        await town.wait(3)
        (call,) = town.sent["worker"].calls
        assert call.at - began <= 1.1

    in_town(story, hears=False, api=API, worker=WORKER)


def test_a_node_that_accepts_and_delivers_keeps_its_own_work() -> None:
    async def story(town: Town) -> None:
        await town.endpoint()
        await town.publish(50)
        await town.wait(1)
        assert (town.calls("one"), town.calls("two")) == (50, 0)

    in_town(story, one=ALL, two=ALL)


def test_what_is_over_one_nodes_memory_another_sends() -> None:
    async def story(town: Town) -> None:
        town.receivers.scripts[A] = answers(200, after=1.5)
        await town.endpoint(policy=SHORT)
        await town.publish(12)
        await town.wait(1)
        assert town.calls("one") <= 5
        assert town.calls("one") + town.calls("two") >= 8
        await town.wait(20)
        assert await town.states() == {"delivered": 12}

    in_town(story, settings={"memory_deliveries": 4, "endpoint_share": 4}, one=ALL, two=ALL)


def test_each_lane_is_sent_by_its_own_worker() -> None:
    async def story(town: Town) -> None:
        town.receivers.scripts[A] = answers(500)
        await town.endpoint(policy=SHORT)
        await town.publish(10)
        await town.wait(20)
        assert await town.states() == {"dead": 10}
        assert (town.calls("first"), town.calls("retry")) == (10, 20)
        assert {call.headers["webhook-attempt"] for call in town.sent["first"].calls} == {"1"}

    in_town(story, api=API, first=FIRST_ONLY, retry=RETRY_ONLY)


def test_a_slow_endpoints_deliveries_move_to_the_other_lanes_worker_with_its_patience() -> None:
    async def story(town: Town) -> None:
        town.receivers.scripts[A] = answers(200, after=3.0)
        endpoint = await town.endpoint()
        await town.publish(12)
        await town.wait(40)
        assert town.engines["first"].directory.routes[endpoint].pace.is_slow
        before = town.calls("first"), town.calls("retry")
        await town.publish(10)
        await town.wait(10)
        assert town.calls("first") == before[0]
        later = town.sent["retry"].calls[before[1] :]
        assert [call.timeout_s for call in later] == [15.0] * 10
        assert await town.states() == {"delivered": 22}

    in_town(story, api=API, first=FIRST_ONLY, retry=RETRY_ONLY)


def test_what_a_pause_parked_goes_to_the_worker_of_its_lane() -> None:
    async def story(town: Town) -> None:
        endpoint = await town.endpoint()
        await town.set(endpoint, status="paused")
        await town.publish(100)
        await town.wait(15)
        assert (town.calls("first"), town.calls("retry")) == (0, 0)
        await town.set(endpoint, status="active")
        await town.wait(15)
        assert (town.calls("first"), town.calls("retry")) == (100, 0)

    in_town(story, api=API, first=FIRST_ONLY, retry=RETRY_ONLY)


def test_the_patient_worker_probes_and_both_lanes_drain_when_it_goes_well() -> None:
    async def story(town: Town) -> None:
        town.receivers.scripts[A] = REFUSES
        await town.endpoint(policy=BREAKS)
        await town.publish(5)
        await town.wait(1)
        await town.publish(20)
        await town.wait(20)
        assert town.calls("first") == 5
        assert (await town.states())["parked:breaker"] == 20
        town.receivers.scripts[A] = answers(200)
        await town.wait(60)
        assert (await town.states())["delivered"] == 20
        assert town.calls("retry") == 1
        assert town.sent["retry"].calls[0].timeout_s == 15.0

    in_town(story, api=API, first=FIRST_ONLY, retry=RETRY_ONLY)


@pytest.mark.parametrize("hears", [True, False])
def test_a_pause_on_one_node_holds_on_the_others_within_a_second(hears: bool) -> None:
    async def story(town: Town) -> None:
        town.receivers.scripts[A] = answers(500)
        endpoint = await town.endpoint(policy=SHORT)
        await town.publish(1)
        await town.wait(0.9)
        await town.set(endpoint, status="paused")
        await town.wait(0.05 if hears else 1.0)
        assert town.engines["worker"].directory.routes[endpoint].status == "paused"
        await town.wait(10)
        assert town.calls("worker") == 1

    in_town(story, hears=hears, api=API, worker=WORKER)


def test_a_stopped_workers_retries_are_sent_by_another_at_their_time() -> None:
    async def story(town: Town) -> None:
        town.receivers.scripts[A] = answers(200, after=0.5)
        await town.endpoint()
        await town.publish(300)
        await town.wait(0.3)
        stops = max(("one", "two"), key=lambda name: town.engines[name].dispatch.memory.held)
        stays = "two" if stops == "one" else "one"
        stopping = town.engines.pop(stops)
        assert stopping.dispatch.memory.held > 32
        began = asyncio.get_running_loop().time()
        await stopping.stop()
        await town.wait(0.1)
        assert [call.at for call in town.sent[stays].calls if call.at - began < 1.5]
        await town.wait(20)
        assert await town.states() == {"delivered": 200}  # one page of the list
        assert (
            len({call.headers["webhook-id"] for name in ("one", "two") for call in town.sent[name].calls})
            == 300
        )
        assert town.calls("one") + town.calls("two") == 300

    in_town(story, api=API, one=WORKER, two=WORKER)


@pytest.mark.parametrize(("is_seen", "within_s"), [(False, 16.0), (True, 2.0)])
def test_a_silent_nodes_work_goes_on_within_sixteen_seconds_and_sooner_where_its_process_is_seen_to_be_gone(
    is_seen: bool, within_s: float
) -> None:
    async def story(town: Town) -> None:
        town.receivers.scripts[A] = lambda call: None  # never answers
        await town.endpoint()
        await town.publish(3)
        await town.wait(0.5)
        dead = town.engines.pop("one") if town.calls("one") else town.engines.pop("two")
        other = next(name for name in town.engines if name != "api")
        for task in dead.loops.tasks:
            task.cancel()
        dead.deliver.halt()
        if is_seen:
            town.places[other].gone = {name for name in ("one", "two") if name != other}
        town.receivers.scripts[A] = answers(200)
        before = town.calls(other)
        began = asyncio.get_running_loop().time()
        await town.wait(20)
        rescued = town.sent[other].calls[before:]
        assert len(rescued) == 3
        assert max(call.at for call in rescued) - began <= within_s

    in_town(story, settings={"beat_s": 0.3, "beat_gap_s": 3.0}, api=API, one=WORKER, two=WORKER, stops=False)


def test_a_node_takes_its_time_from_the_ledger_and_not_from_its_wall_clock() -> None:
    async def story(town: Town) -> None:
        town.receivers.scripts[A] = answers(500)
        await town.make("wrong", WORKER, offset_ms=3_600_000).start()
        await town.endpoint(policy=SHORT)
        await town.publish(1)
        await town.wait(0.5)
        town.receivers.scripts[A] = answers(200)
        town.clocks["wrong"].step(-7_200_000)
        await town.wait(10)
        calls = sorted(call.at for name in ("right", "wrong") for call in town.sent[name].calls)
        assert len(calls) == 2
        assert 2.0 <= calls[1] - calls[0] <= 2.1

    in_town(story, api=API, right=WORKER)


def test_an_overdue_delivery_is_told_of_once_by_however_many_nodes() -> None:
    async def story(town: Town) -> None:
        town.receivers.scripts[A] = answers(500)
        await town.endpoint(policy={**SHORT, "schedule": {"fixed": [3600]}, "escalate_after": 5})
        await town.publish(3)
        await town.wait(60)
        assert (await town.notices()).count("delivery.overdue") == 3
        told = [engine.watch.notices.get("delivery.overdue", 0) for engine in town.engines.values()]
        assert sum(told) == 3

    in_town(story, one=ALL, two=ALL, three=WORKER)


def test_idle_workers_ask_seldom_while_another_takes_all_the_work() -> None:
    async def story(town: Town) -> None:
        await town.endpoint()
        asked: dict[str, int] = {}
        for name, engine in town.engines.items():
            watch_claims(engine, name, asked)
        for _ in range(400):
            await town.publish(1)
            await town.wait(0.005)
        await town.wait(1)
        assert sum(town.calls(name) for name in town.engines) == 400
        in_vain = sum(asked.values()) - 400
        assert in_vain < 3 * 16 * 4, asked

    in_town(story, api=API, one=WORKER, two=WORKER, three=WORKER)


def watch_claims(engine: object, name: str, asked: dict[str, int]) -> None:
    """Count the engine's claims of the first lane."""
    claim = engine.claim  # type: ignore[attr-defined]
    inner = claim._ledger

    class Counting:
        def __getattr__(self, call: str) -> object:
            return getattr(inner, call)

        async def claim(self, lane: int, **named: object) -> object:
            if lane == FIRST:
                asked[name] = asked.get(name, 0) + 1
            return await inner.claim(lane, **named)

    claim._ledger = Counting()


def test_one_worker_does_not_hoard_what_another_could_send() -> None:
    async def story(town: Town) -> None:
        for number in range(20):
            await town.endpoint(f"https://r{number}.example/hook")
            town.receivers.scripts[f"https://r{number}.example/hook"] = answers(200, after=1.0)
        await town.publish(10)  # 200 deliveries
        await town.wait(0.5)
        assert min(town.calls("one"), town.calls("two")) >= 40

    in_town(story, settings={"slots_first": 64}, api=API, one=WORKER, two=WORKER)


def test_a_one_lane_node_shows_slots_of_its_lane_only() -> None:
    async def story(town: Town) -> None:
        assert town.engines["retry"].lanes()[FIRST] == 0
        assert town.engines["retry"].lanes()[RETRY] == 512
        assert list(town.engines["api"].lanes()) == [0, 0]

    in_town(story, api=API, retry=RETRY_ONLY)


@pytest.mark.parametrize("phase", range(10))
def test_work_for_an_endpoint_that_a_worker_does_not_know_yet_is_not_taken_for_a_deleted_ones(
    phase: int,
) -> None:
    async def story(town: Town) -> None:
        await town.wait(2 + phase / 10)
        await town.endpoint()
        await town.publish(5)
        await town.wait(20)
        assert await town.states() == {"delivered": 5}

    in_town(story, hears=False, settings={"poll_s": 0.2}, api=API, worker=WORKER)


def test_what_is_parked_for_an_endpoint_that_memory_does_not_know_yet_stays() -> None:
    async def story(town: Town) -> None:
        endpoint = await town.endpoint()
        await town.set(endpoint, status="paused")
        await town.publish(5)
        worker = town.engines["worker"]
        worker.directory.routes.pop(endpoint, None)
        await worker.unpark.look()
        assert await town.states() == {"parked:paused": 5}

    in_town(story, hears=False, api=API, worker=WORKER)


def test_failures_on_one_node_do_not_add_up_over_successes_on_another() -> None:
    async def story(town: Town) -> None:
        endpoint = await town.endpoint(policy={**SHORT, "auto_disable": {"consecutive_failures": 4}})
        one, two = town.engines["one"], town.engines["two"]
        for _ in range(5):
            town.engine, town.receivers.scripts[A] = one, answers(500)
            await town.publish(1)
            await town.wait(0.1)
            town.engine, town.receivers.scripts[A] = two, answers(200)
            await town.publish(1)
            await town.wait(0.1)
        assert (await town.ledger.endpoint(endpoint)).status == "active"  # type: ignore[union-attr]
        town.receivers.scripts[A] = answers(500)
        await town.publish(4)
        await town.wait(0.5)
        assert (await town.ledger.endpoint(endpoint)).status == "inactive"  # type: ignore[union-attr]

    in_town(story, one=ALL, two=ALL)


class Meanwhile:
    """A ledger in which something happens just after a call of one kind, before its answer is heard."""

    def __init__(self, inner: Any, call: str, happens: Callable[[], Awaitable[Any]]) -> None:
        self._inner = inner
        self._call = call
        self._happens = happens

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name != self._call:
            return method

        async def call(*args: Any, **named: Any) -> Any:
            answer = await method(*args, **named)
            await self._happens()
            return answer

        return call


def test_age_ends_nothing_by_a_policy_that_another_node_has_just_changed() -> None:
    breaks = {"calls": 5, "probe_after": 3600}
    policy = {"profile": "standard", "breaker": breaks, "schedule": {"fixed": [7200]}, "max_age": 60}

    async def story(town: Town) -> None:
        town.receivers.scripts[A] = REFUSES
        endpoint = await town.endpoint(policy=policy)
        await town.publish(5)
        await town.wait(1)
        await town.publish(3)
        await town.wait(62)  # the look that follows is the first to find them too old
        assert (await town.states())["parked:breaker"] == 3
        worker = town.engines["worker"]
        patient = json.dumps({**policy, "max_age": None}).encode()

        async def change() -> None:
            await town.ledger.change_endpoint(endpoint, {"policy": patient}, now=town.clock.now())

        worker.looks.ageing._ledger = Meanwhile(town.ledger, "parked_aged", change)  # type: ignore[assignment]
        await town.wait(30)
        assert (await town.states())["parked:breaker"] == 3

    in_town(story, api=API, worker=WORKER)


def test_a_walk_that_ends_retries_stops_where_another_node_has_switched_them_on_again() -> None:
    async def story(town: Town) -> None:
        town.receivers.scripts[A] = answers(500)
        given = {**SHORT, "schedule": {"fixed": [1, 3600]}}
        endpoint = await town.endpoint(policy={**given, "auto_retry": False})
        await town.set(endpoint, policy=json.dumps(given).encode())
        await town.publish(3)
        await town.wait(5)
        await town.set(endpoint, policy=json.dumps({**given, "auto_retry": False}).encode())
        engine = town.engine

        async def change() -> None:
            raw = json.dumps(given).encode()
            await town.ledger.change_endpoint(endpoint, {"policy": raw}, now=town.clock.now())

        engine.ledger = Meanwhile(town.ledger, "open_delivery", change)  # type: ignore[assignment]
        await end_pending_retries(engine, endpoint=endpoint)
        engine.ledger = town.ledger
        assert await town.states() == {"retrying": 3}
        await town.set(endpoint, policy=json.dumps({**given, "auto_retry": False}).encode())
        await end_pending_retries(engine, endpoint=endpoint)
        assert await town.states() == {"dead": 3}

    in_town(story, api=API, worker=WORKER)


def test_a_lane_that_nobody_serves_is_told_of_until_somebody_does() -> None:
    async def story(town: Town) -> None:
        await town.endpoint()
        api = town.engines["api"]
        assert isinstance(api.telemetry, Facts)
        await town.publish(3)
        await town.wait(25)
        assert api.warning() is None, "a worker may have died a moment ago"
        await town.wait(20)
        assert (api.warning() or "").startswith("no process serves the lane first (3 deliveries are due)")
        assert api.ready() is None
        await town.make("first", FIRST_ONLY).start()
        await town.wait(15)
        assert api.warning() is None
        assert [name for name in api.telemetry.names if name.startswith("lane.")] == [
            "lane.unserved",
            "lane.served",
        ]
        page = await api.ledger.notices(NoticeFilter(), limit=10, after=None)
        kept = [notice for notice in page.data if notice.kind.startswith("lane.")]
        assert [(notice.kind, notice.tenant) for notice in kept] == [
            ("lane.served", ""),
            ("lane.unserved", ""),
        ], "one of each, although two nodes have seen it"

    in_town(story, api=API, retry=RETRY_ONLY)


def test_what_waited_while_nobody_ran_is_no_lane_that_nobody_serves() -> None:
    unserved = Unserved(facts := Facts())
    overdue = LaneCount(0, 3, 0, 0, 1_000_000 - 600_000)
    idle = LaneCount(0, 0, 0, 0, None)
    for at_s in (0, 29):
        unserved.look([overdue, idle], now=1_000_000 + at_s * 1000)
        assert unserved.warning() is None
    unserved.look([overdue, idle], now=1_000_000 + 30_000)
    assert unserved.warning() is not None
    assert facts.names == ["lane.unserved"]


def test_a_count_that_is_given_again_makes_no_lane_an_unserved_one() -> None:
    """A count that took long is: the row may have been delivered long ago."""
    unserved = Unserved(facts := Facts())
    idle = LaneCount(0, 0, 0, 0, None)
    for at_s in (0, 30, 60, 90):
        unserved.look([LaneCount(0, 1, 0, 0, 1_000_000, 1_000_000), idle], now=1_000_000 + at_s * 1000)
        assert facts.names == []
    unserved.look([LaneCount(0, 1, 0, 0, 1_000_000, 1_100_000), idle], now=1_100_000)
    assert facts.names == ["lane.unserved"], "counted anew, it stands as it stood"


def test_what_is_left_of_an_endpoint_that_was_deleted_at_a_node_without_lanes_is_ended_there() -> None:
    async def story(town: Town) -> None:
        endpoint = await town.endpoint()
        api = town.engines["api"]
        await town.publish(3)
        await town.ledger.remove_endpoint(endpoint)
        await api.changed()
        api.endpoint_removed(endpoint)
        await town.wait(25)
        assert set(await town.states()) == {"cancelled:deleted"}

    in_town(story, api=API)


def test_a_clock_that_was_set_back_silences_nobody_who_looks_for_unserved_lanes() -> None:
    """It was silent for as long as the jump."""
    unserved = Unserved(facts := Facts())
    now, idle = 1_000_000, LaneCount(0, 0, 0, 0, None)
    unserved.look([idle, idle], now=now + 86_400_000)
    overdue = LaneCount(0, 3, 0, 0, now)
    unserved.look([overdue, idle], now=now)
    unserved.look([overdue, idle], now=now + 30_000)
    assert facts.names == ["lane.unserved"]


def test_rows_of_an_endpoint_that_is_not_known_yet_go_back_once() -> None:
    """While a slow ledger tells what has changed, they are not claimed again and again."""

    async def story(town: Town) -> None:
        changes, claim = town.ledger.changes, town.ledger.claim
        taken = 0

        async def slow(*args: Any, **named: Any) -> Any:
            await asyncio.sleep(3)
            return await changes(*args, **named)

        async def counted(*args: Any, **named: Any) -> Any:
            nonlocal taken
            rows = await claim(*args, **named)
            taken += len(rows)
            return rows

        town.ledger.claim = counted  # type: ignore[method-assign]
        await town.endpoint()
        town.ledger.changes = slow  # type: ignore[method-assign]
        await town.publish(3)
        await town.wait(20)
        assert town.calls("worker") == 3
        assert taken == 6

    in_town(story, hears=False, api=API, worker={**WORKER, "memory_deliveries": 3})
