"""Answers judge what they were asked of: the rows of the table in docs/delivery-contract.md, and the probe's token."""

from __future__ import annotations

import json
from typing import Any

import pytest

from surehook.core.authentication import Bearer
from surehook.core.model import EndpointTls, Secret
from surehook.delivery import endpoints
from surehook.delivery.chores import Chores
from surehook.ports.transport import Answer
from tests.delivery.house import REFUSES, Call, House, answers, in_house

OLD = "https://a.example/hook"
NEW = "https://b.example/hook"
LATE = 3.0  # seconds until the old one answers
PATIENT = {
    "profile": "standard",
    "timeouts": {"first": 5, "retry": 5},
    "schedule": {"fixed": [600, 600]},
    "jitter": None,
}
BREAKS = {**PATIENT, "breaker": {"calls": 3, "probe_after": 10}}


def late(answer: Answer) -> Any:
    def script(call: Call) -> tuple[float, Answer]:
        return LATE, answer

    return script


def broken(status: int) -> Any:
    return late(Answer(status=status, total_us=int(LATE * 1e6)))


async def rotate(house: House, endpoint: bytes) -> None:
    now = house.clock.now()
    secret = Secret(house.entropy.bits(16), endpoint, "v1", b"n" * 32, now, None)
    await house.ledger.rotate_secret(secret, old_expires_at=now + 60_000)
    await house.engine.changed()


CHANGES: dict[str, dict[str, Any]] = {
    "url": {"url": NEW},
    "query": {"url": OLD + "?id=2"},
    "tls": {"tls": EndpointTls(ca="a PEM text")},
    "method": {"method": "PUT"},
    "headers": {"headers": {"X-Way": "other"}},
    "authentication": {"authentication": Bearer("another")},
    "secret": {},
}
ASKED = sorted(CHANGES)  # whatever a request is made from


async def change(house: House, endpoint: bytes, what: str) -> None:
    if what == "secret":
        await rotate(house, endpoint)
    else:
        await house.set(endpoint, **CHANGES[what])


async def answered_late(
    house: House, script: Any, what: str, *, count: int = 3, policy: Any = BREAKS
) -> bytes:
    """Calls begin, the endpoint is changed under them, and they are answered."""
    house.receivers.scripts[OLD] = script
    endpoint = await house.endpoint(OLD, policy=policy)
    await house.publish(count)
    await house.wait(1)
    await change(house, endpoint, what)
    await house.wait(LATE)
    return endpoint


@pytest.mark.parametrize("what", ASKED)
def test_failures_of_what_is_not_asked_any_more_open_no_breaker(what: str) -> None:
    async def story(house: House) -> None:
        endpoint = await answered_late(house, broken(500), what)
        assert house.route(endpoint).breaker.is_closed
        assert house.route(endpoint).breaker.counts(house.clock.now()) == (0, 0)
        assert "breaker.opened" not in await house.notices()

    in_house(story)


@pytest.mark.parametrize("what", ASKED)
def test_failures_of_what_is_not_asked_any_more_count_for_no_endpoint(what: str) -> None:
    async def story(house: House) -> None:
        policy = {**PATIENT, "breaker": None, "auto_disable": {"consecutive_failures": 3}}
        endpoint = await answered_late(house, broken(500), what, policy=policy)
        found = await house.ledger.endpoint(endpoint)
        assert found is not None and (found.status, found.failure_count) == ("active", 0)
        assert house.route(endpoint).status == "active"

    in_house(story)


@pytest.mark.parametrize("what", ASKED)
def test_a_late_410_ends_the_delivery_and_leaves_the_endpoint_active(what: str) -> None:
    async def story(house: House) -> None:
        endpoint = await answered_late(house, broken(410), what, count=1)
        found = await house.ledger.endpoint(endpoint)
        assert found is not None and found.status == "active"
        assert house.route(endpoint).status == "active"
        assert await house.states() == {"dead": 1}
        assert "endpoint.disabled" not in await house.notices()

    in_house(story)


@pytest.mark.parametrize("what", ASKED)
def test_a_late_word_about_the_key_is_a_retry_that_was_spared(what: str) -> None:
    wrong = Answer(
        status=401,
        headers=b"content-type: application/problem+json\r\n",
        body=b'{"retryable": false, "code": "bad_signature"}',
    )

    async def story(house: House) -> None:
        endpoint = await answered_late(house, late(wrong), what, count=1)
        house.receivers.scripts.clear()
        assert house.route(endpoint).breaker.is_closed
        await house.wait(10)
        (view,) = await house.deliveries()
        first, *_ = await house.story(view)
        assert first.outcome == "rejected"

    in_house(story)


@pytest.mark.parametrize("what", ASKED)
def test_the_attempt_and_its_retry_are_recorded_all_the_same(what: str) -> None:
    async def story(house: House) -> None:
        await answered_late(house, broken(500), what, count=1)
        (view,) = await house.deliveries()
        assert (view.state, view.attempts) == ("retrying", 1)
        (entry,) = await house.story(view)
        assert (entry.outcome, entry.status) == ("refused", 500)
        assert view.due_at is not None and view.due_at > house.clock.now() + 590_000

    in_house(story)


@pytest.mark.parametrize("what", ASKED)
def test_a_late_success_is_a_delivery(what: str) -> None:
    async def story(house: House) -> None:
        await answered_late(house, broken(200), what)
        assert await house.states() == {"delivered": 3}

    in_house(story)


def test_a_new_url_begins_with_no_failures_and_full_slots() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[OLD] = answers(500)
        endpoint = await house.endpoint(OLD, policy={**PATIENT, "breaker": None})
        await house.publish(5)
        await house.wait(1)
        route = house.route(endpoint)
        assert route.failure_count == 5
        assert route.limits[0].now < route.slots or route.limits[1].now < route.slots
        await endpoints.change(house.engine, Chores(), endpoint, {"url": NEW})
        assert (route.failure_count, [limit.now for limit in route.limits]) == (0, [route.slots] * 2)

    in_house(story)


@pytest.mark.parametrize("policy", [{**PATIENT, "breaker": None}, PATIENT])
def test_what_follows_from_an_answer_is_for_the_policy_of_now(policy: Any) -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[OLD] = broken(500)
        before = {**PATIENT, "schedule": {"fixed": []}, "on_exhausted": "enter_failure"}
        endpoint = await house.endpoint(OLD, policy=before)
        await house.publish(1)
        await house.wait(1)
        await house.set(endpoint, policy=json.dumps(policy).encode())
        await house.wait(LATE)
        assert await house.states() == {"retrying": 1}
        assert house.route(endpoint).status == "active"
        counted = house.route(endpoint).breaker.counts(house.clock.now())
        assert counted == ((0, 0) if policy.get("breaker", 1) is None else (1, 1))

    in_house(story)


# -- probes ------------------------------------------------------------------------------------------------


async def half_open(house: House, *, others: int = 0) -> bytes:
    """A probe is under way and is answered late."""
    house.receivers.scripts[OLD] = REFUSES
    policy = {**BREAKS, "schedule": {"fixed": [1] * 20}}
    endpoint = await house.endpoint(OLD, policy=policy)
    for _ in range(others):
        await house.endpoint(OLD, policy=policy)
    await house.publish(3)
    await house.wait(5)
    assert house.route(endpoint).breaker.state == "open"
    house.receivers.scripts[OLD] = late(Answer(status=200))
    before = len(house.receivers.calls)
    while len(house.receivers.calls) == before:
        await house.wait(0.05)
    assert house.route(endpoint).breaker.is_probing
    return endpoint


def test_an_evicted_node_drops_its_probe() -> None:
    async def story(house: House) -> None:
        endpoint = await half_open(house)
        await house.ledger.evict([house.engine.node.id], now=house.clock.now())
        house.receivers.scripts[OLD] = answers(200)
        await house.wait(30)
        assert await house.states() == {"delivered": 3}
        assert house.route(endpoint).breaker.is_closed

    in_house(story)


@pytest.mark.parametrize("what", ["url", "delete"])
def test_a_probe_of_an_endpoint_that_left_holds_up_none_of_the_others(what: str) -> None:
    async def story(house: House) -> None:
        endpoint = await half_open(house, others=2)
        house.receivers.scripts[OLD] = answers(200)
        if what == "delete":
            await house.ledger.remove_endpoint(endpoint)
            await house.engine.changed()
        else:
            await change(house, endpoint, what)
        await house.wait(20)
        states = await house.states()
        assert states.get("parked:breaker") is None and states["delivered"] >= 6

    in_house(story)


def test_a_failing_probe_that_is_not_asked_any_more_is_asked_again_soon() -> None:
    async def story(house: House) -> None:
        endpoint = await half_open(house)
        await change(house, endpoint, "headers")
        house.receivers.scripts[OLD] = answers(200)
        house.receivers.calls[-1].answer(Answer(status=500))
        assert not house.route(endpoint).breaker.is_closed
        await house.wait(2)
        assert house.route(endpoint).breaker.is_closed

    in_house(story)


def test_a_probe_whose_answer_is_lost_is_taken_anew() -> None:
    async def story(house: House) -> None:
        endpoint = await half_open(house)
        house.receivers.calls[-1]._done = None
        house.receivers.scripts[OLD] = answers(200)
        await house.wait(110)
        assert house.route(endpoint).breaker.is_closed
        assert (await house.states())["delivered"] == 1

    in_house(story, stops=False)


def test_a_verdict_that_an_eviction_kept_from_the_ledger_does_not_stay_in_memory() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[OLD] = answers(410, after=0.5)
        endpoint = await house.endpoint(OLD, policy=PATIENT)
        await house.publish(1)
        await house.wait(0.4)
        await house.ledger.evict([house.engine.node.id], now=house.clock.now())
        house.receivers.scripts[OLD] = answers(200)
        await house.wait(30)
        assert house.route(endpoint).status == "active"
        assert await house.states() == {"delivered": 1}

    in_house(story)


def test_the_time_that_a_retry_was_parked_is_not_its_lateness() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[OLD] = answers(500)
        endpoint = await house.endpoint(OLD, policy={**PATIENT, "breaker": None, "schedule": {"fixed": [5]}})
        await house.publish(3)
        await house.wait(1)
        await house.set(endpoint, status="paused")
        await house.wait(3_600)
        house.receivers.scripts.clear()
        await house.set(endpoint, status="active")
        await house.wait(60)
        assert await house.states() == {"delivered": 3}
        lateness = house.engine.watch.lateness
        assert sum(lateness.buckets) == 3
        assert lateness.total < 60_000

    in_house(story)


def test_what_ages_behind_a_breaker_is_a_dead_letter_even_where_the_policy_drops() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[OLD] = REFUSES
        policy = {**BREAKS, "breaker": {"calls": 3, "probe_after": 3600}, "schedule": {"fixed": [1] * 9}}
        await house.endpoint(OLD, policy={**policy, "max_age": 900, "on_exhausted": "drop"})
        await house.publish(3)
        await house.wait(60)
        assert await house.states() == {"parked:breaker": 3}
        await house.wait(900)
        assert await house.states() == {"dead": 3}

    in_house(story)


def test_a_policy_without_breaker_sends_at_once_what_one_held_back() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[OLD] = REFUSES
        policy = {**BREAKS, "breaker": {"calls": 3, "probe_after": 3600}, "schedule": {"fixed": [1] * 9}}
        endpoint = await house.endpoint(OLD, policy=policy)
        await house.publish(5)
        await house.wait(5)
        assert await house.states() == {"parked:breaker": 5}
        house.receivers.scripts.clear()
        await house.set(endpoint, policy=json.dumps({**policy, "breaker": None}).encode())
        await house.wait(5)
        assert await house.states() == {"delivered": 5}

    in_house(story)
