"""Under a policy that is not adaptive: a receiver that is slow, and one that is slow because it is asked too much."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from surehook.ports.transport import Answer
from tests.delivery.house import Call, House, answers, in_house

A = "https://a.example/hook"
POLICY: dict[str, Any] = {"profile": "yousign", "breaker": None}
MINUTES = 5
ANSWERED = Answer(status=200, total_us=100_000)
HUNG = Answer(failure="timeout", unknown=True, total_us=1_000_000)


class OneAtATime:
    """A receiver whose only worker does what it was asked in turn, also what nobody waits for any more."""

    def __init__(self, work_s: float) -> None:
        self.work_s = work_s
        self.in_time: list[
            tuple[float, bool]
        ] = []  # when it was asked, and whether that was answered in time
        self._free_at = 0.0

    def __call__(self, call: Call) -> tuple[float, Answer]:
        now = asyncio.get_running_loop().time()
        self._free_at = max(now, self._free_at) + self.work_s
        after_s = self._free_at - now
        self.in_time.append((now, after_s < call.timeout_s))
        return (after_s, ANSWERED) if after_s < call.timeout_s else (call.timeout_s, HUNG)


async def a_stream(house: House, *, a_second: float) -> None:
    for _ in range(int(MINUTES * 60 * a_second)):
        await house.publish()
        await house.wait(1 / a_second)


def first_calls(house: House, *, since: float) -> list[Call]:
    return [
        call for call in house.receivers.calls if call.at >= since and call.headers["webhook-attempt"] == "1"
    ]


@pytest.mark.parametrize("takes_s", [(2.0,), (0.7, 1.3)], ids=["always", "half of the time"])
def test_a_slow_one_has_its_first_calls_as_fast_as_events_come(takes_s: tuple[float, ...]) -> None:
    """Ten a second, where four under way would make four or five."""

    async def story(house: House) -> None:
        scripts = [answers(200, after=seconds) for seconds in takes_s]
        house.receivers.scripts[A] = lambda call: scripts[len(house.receivers.calls) % len(scripts)](call)
        endpoint = await house.endpoint(A, policy=POLICY)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await a_stream(house, a_second=10)
        assert len(first_calls(house, since=began)) > MINUTES * 600 - 30
        assert house.route(endpoint).limits[0].now <= 16

    in_house(story, stops=False)


@pytest.mark.parametrize(("a_second", "least"), [(4, 0.95), (6, 0.6)])
def test_one_that_is_overwhelmed_is_asked_so_little_that_it_answers_in_time(
    a_second: float, least: float
) -> None:
    """It can do five in a second, and begins with a hundred at once."""

    async def story(house: House) -> None:
        receiver = house.receivers.scripts[A] = OneAtATime(0.2)
        await house.endpoint(A, policy={**POLICY, "schedule": {"fixed": [3600]}})
        await house.publish(100)
        await a_stream(house, a_second=a_second)
        since = asyncio.get_running_loop().time() - 60
        last_minute = [in_time for at, in_time in receiver.in_time if at >= since]
        assert len(last_minute) >= 200
        assert sum(last_minute) >= least * len(last_minute)

    in_house(story, stops=False)
