"""Without `auto_retry` nothing is retried, wherever it waits, except once a first call that timed out, wherever it stood."""

from __future__ import annotations

import json
from typing import Any

import pytest

from surehook.delivery.retry_end import end_pending_retries
from surehook.delivery.settings import EngineSettings
from surehook.ports.transport import Answer
from tests.delivery.house import House, Script, answers, in_house

A = "https://a.example/hook"
BREAKER = {"window": 600, "failure_ratio": 0.4, "calls": 2, "probe_after": 60}
RETRIED: dict[str, Any] = {"profile": "yousign", "schedule": {"fixed": [1, 3600]}, "breaker": BREAKER}
NOT_RETRIED = {**RETRIED, "auto_retry": False}


def fails(failure: str) -> Script:
    return lambda call: (0.5, Answer(failure=failure, total_us=500_000))  # type: ignore[arg-type]


async def switch_off(house: House, endpoint: bytes) -> None:
    await house.set(endpoint, policy=json.dumps(NOT_RETRIED).encode())


@pytest.mark.parametrize(
    "failure", ["timeout", "dns_timeout", "connect_timeout", "tls_timeout", "token_timeout"]
)
def test_a_first_call_that_timed_out_is_retried_once_wherever_it_stood(failure: str) -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = fails(failure)
        await house.endpoint(A, policy={**NOT_RETRIED, "breaker": None})
        await house.publish()
        await house.wait(10)
        assert [call.timeout_s for call in house.receivers.calls] == [1.0, 10.0]
        assert await house.states() == {"dead": 1}

    in_house(story)


@pytest.mark.parametrize("failure", ["dns_nxdomain", "connect_refused", "tls_expired", "reset"])
def test_one_that_failed_otherwise_is_not(failure: str) -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = fails(failure)
        await house.endpoint(A, policy={**NOT_RETRIED, "breaker": None})
        await house.publish()
        await house.wait(10)
        assert len(house.receivers.calls) == 1

    in_house(story)


async def behind_a_breaker(house: House, script: Script, *, untried: int = 0) -> bytes:
    """Three deliveries that failed once and were parked before their second call, and some that were never sent."""
    house.receivers.scripts[A] = script
    endpoint = await house.endpoint(A, policy=RETRIED)
    await house.publish(3)
    await house.wait(0.9)
    house.route(endpoint).breaker.trip("failures", house.clock.now())
    house.engine.parking.heed(house.route(endpoint).breaker)
    await house.publish(untried)
    await house.wait(5)
    assert await house.states() == {"parked:breaker": 3 + untried}
    return endpoint


def test_switched_off_it_ends_retries_that_a_breaker_has_parked() -> None:
    async def story(house: House) -> None:
        endpoint = await behind_a_breaker(house, answers(500), untried=2)
        await switch_off(house, endpoint)
        await end_pending_retries(house.engine, endpoint=endpoint)
        assert await house.states() == {"dead": 3, "parked:breaker": 2}
        assert (await house.notices()).count("delivery.dead") == 3
        house.receivers.scripts[A] = answers(200)
        await house.wait(120)
        assert await house.states() == {"dead": 3, "delivered": 2}
        assert len(house.receivers.calls) == 5

    in_house(story)


@pytest.mark.parametrize("failure", ["timeout", "connect_timeout"])
def test_switched_off_it_leaves_the_one_retry_of_a_first_call_that_timed_out(failure: str) -> None:
    async def story(house: House) -> None:
        endpoint = await behind_a_breaker(house, fails(failure))
        await switch_off(house, endpoint)
        await end_pending_retries(house.engine, endpoint=endpoint)
        assert await house.states() == {"parked:breaker": 3}
        house.receivers.scripts[A] = answers(200)
        await house.wait(120)
        assert await house.states() == {"delivered": 3}

    in_house(story)


def test_trouble_of_our_own_after_a_first_call_that_timed_out_does_not_take_its_retry_away() -> None:
    async def story(house: House) -> None:
        scripts = [fails("timeout"), fails("no_resources"), answers(200)]
        house.receivers.scripts[A] = lambda call: scripts[len(house.receivers.calls) - 1](call)
        endpoint = await house.endpoint(A, policy=RETRIED)
        await house.publish()
        await house.wait(4)
        await switch_off(house, endpoint)
        await end_pending_retries(house.engine, endpoint=endpoint)
        await house.wait(10)
        assert await house.states() == {"delivered": 1}

    in_house(story)


def test_what_a_process_held_as_the_walk_went_by_ends_where_it_would_be_sent() -> None:
    """A retry that waits for its endpoint's slot is nobody's to end but its holder's."""

    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(500, after=4)
        given = {
            **RETRIED,
            "timeouts": {"first": 5, "retry": 10},
            "breaker": None,
            "schedule": {"fixed": [1, 1]},
        }
        endpoint = await house.endpoint(A, policy=given)
        await house.publish(4)
        await house.wait(16.5)
        assert len(house.receivers.calls) == 5, "one slot: each has had its first call, and one its second"
        await house.set(endpoint, policy=json.dumps({**given, "auto_retry": False}).encode())
        await end_pending_retries(house.engine, endpoint=endpoint)
        await house.wait(60)
        assert await house.states() == {"dead": 4}
        assert len(house.receivers.calls) == 5

    in_house(story, settings=EngineSettings(endpoint_slots=1))


@pytest.mark.parametrize("state", ["dead", "dropped"])
def test_what_is_given_up_is_told(state: str) -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(500)
        rule = "drop" if state == "dropped" else "dead_letter"
        await house.endpoint(A, policy={**NOT_RETRIED, "on_exhausted": rule})
        await house.publish(2)
        await house.wait(5)
        assert await house.states() == {state: 2}
        assert (await house.notices()).count(f"delivery.{state}") == 2
        assert house.facts.names.count(f"delivery.{state}") == 2

    in_house(story)
