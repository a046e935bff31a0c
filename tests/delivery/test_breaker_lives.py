"""A breaker lives as long as an endpoint has its URL and a policy heeds it, and has the numbers of its oldest one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab.health import LocalHealth
from surehook.core.model import BreakerRow, EventType
from surehook.core.policy import BreakerPolicy
from surehook.delivery import deliveries, endpoints, testcall
from surehook.delivery.breakers import AHEAD_MS
from surehook.ports.health import BreakerUpdate, View
from tests.delivery.house import REFUSES, House, answers, in_house
from tests.delivery.nodes import ALL, Town, in_town

A = "https://a.example/hook"
B = "https://b.example/hook"
PLACE = ("acme", A)
BREAKS: dict[str, Any] = {
    "profile": "standard",
    "breaker": {"calls": 3, "probe_after": 3600},
    "schedule": {"fixed": [1] * 9},
    "jitter": None,
}
HEEDS_NONE = {**BREAKS, "breaker": None}


async def opened(house: House, *, count: int = 3, url: str = A) -> bytes:
    """An endpoint whose breaker is open."""
    house.receivers.scripts[A] = REFUSES
    endpoint = await house.endpoint(url, policy=BREAKS)
    await house.publish(count)
    await house.wait(5)
    assert house.engine.directory.breakers[PLACE].state == "open"
    assert [row.key for row in await house.ledger.breakers()] == [A]
    return endpoint


async def leave(house: House, endpoint: bytes, how: str) -> None:
    if how == "url":
        await house.set(endpoint, url=B)
    else:
        await house.ledger.remove_endpoint(endpoint)
        await house.engine.changed()
    await house.wait(2)


def is_remembered(house: House) -> bool:
    breakers = house.engine.directory.breakers
    return breakers.get(PLACE) is not None or bool(breakers.unclosed)


async def in_store(health: LocalHealth, house: House, key: str = A) -> str | None:
    word = await health.exchange(node=b"x", counted=(), updates=(), busy=(), since=0, now=house.clock.now())
    return next((view.state for view in word.views if view.key == key), None)


@pytest.mark.parametrize("how", ["url", "delete"])
def test_a_breaker_dies_with_its_last_endpoint(how: str) -> None:
    async def story(house: House) -> None:
        endpoint = await opened(house)
        await leave(house, endpoint, how)
        assert not is_remembered(house)
        assert all(view.url != A for view in house.engine.breakers())
        assert await house.ledger.breakers() == []
        assert "breaker.closed" not in await house.notices(), "nobody is called again"

    in_house(story)


@pytest.mark.parametrize("how", ["url", "delete"])
def test_it_lives_on_while_another_endpoint_has_its_url(how: str) -> None:
    async def story(house: House) -> None:
        endpoint = await opened(house)
        await house.endpoint(A + "?id=2", policy=BREAKS)
        await leave(house, endpoint, how)
        assert house.engine.directory.breakers[PLACE].state == "open"
        (view,) = [view for view in house.engine.breakers() if view.url == A]
        assert len(view.endpoints) == 1
        assert len(await house.ledger.breakers()) == 1

    in_house(story)


def test_an_endpoint_that_comes_later_with_its_url_begins_closed() -> None:
    async def story(house: House) -> None:
        endpoint = await opened(house)
        await leave(house, endpoint, "delete")
        house.receivers.scripts.clear()
        await house.endpoint(A, policy=BREAKS)
        await house.publish(3)
        await house.wait(1)
        assert (await house.states())["delivered"] == 3
        assert house.engine.directory.breakers[PLACE].counts(house.clock.now()) == (3, 0)

    in_house(story)


@pytest.mark.parametrize("how", ["url", "delete"])
def test_it_dies_on_every_node_and_in_what_they_share(how: str) -> None:
    health = LocalHealth()

    async def story(town: Town) -> None:
        endpoint = await opened(town)
        assert await in_store(health, town) == "open"
        await leave(town, endpoint, how)
        await town.wait(15)
        for engine in town.engines.values():
            assert engine.directory.breakers.get(PLACE) is None
            assert engine.directory.breakers.unclosed == []
        assert await town.ledger.breakers() == []
        assert await in_store(health, town) == "closed"

    in_town(story, health=lambda: health, one=ALL, two=ALL)


def test_what_was_counted_dies_with_it_too() -> None:
    health = LocalHealth()

    async def story(town: Town) -> None:
        town.receivers.scripts[A] = REFUSES
        endpoint = await town.endpoint(A, policy=BREAKS)
        await town.publish(2)
        await town.wait(0.5)
        await leave(town, endpoint, "delete")
        await town.endpoint(A, policy={**BREAKS, "schedule": {"fixed": [600]}})
        await town.publish(1)
        await town.wait(3)
        assert town.engine.directory.breakers[PLACE].counts(town.clock.now()) == (1, 1)

    in_town(story, health=lambda: health, one=ALL, two=ALL)


def test_a_row_of_a_breaker_without_endpoint_is_gone_after_a_start() -> None:
    async def story(house: House) -> None:
        await opened(house)
        node = house.engine.node.id
        row = BreakerRow(
            "acme",
            B,
            "open",
            "failures",
            house.clock.now(),
            house.clock.now() + 9_000,
            3,
            3,
            house.clock.now(),
        )
        await house.ledger.record([], node=node, health=[], breakers=[row], notices=[], now=house.clock.now())
        await house.engine.stop()
        house.engine = house.another()
        await house.engine.start()
        await house.wait(1)
        assert [row.key for row in await house.ledger.breakers()] == [A]
        assert house.engine.directory.breakers[PLACE].state == "open"
        assert house.engine.directory.breakers.get(("acme", B)) is None

    in_house(story)


# -- policies ----------------------------------------------------------------------------------------------


async def without(house: House, endpoint: bytes) -> None:
    await house.set(endpoint, policy=json.dumps(HEEDS_NONE).encode())


def test_null_for_the_last_one_that_had_one_closes_the_breaker() -> None:
    async def story(house: House) -> None:
        endpoint = await opened(house)
        house.receivers.scripts.clear()
        await without(house, endpoint)
        await house.wait(2)
        assert house.engine.directory.breakers[PLACE].is_closed
        assert await house.ledger.breakers() == []
        assert await house.states() == {"delivered": 3}
        assert (await house.notices()).count("breaker.closed") == 1

    in_house(story)


def test_null_for_one_of_two_leaves_it_open_for_the_other() -> None:
    async def story(house: House) -> None:
        endpoint = await opened(house)
        await house.endpoint(A, policy=BREAKS)
        await without(house, endpoint)
        await house.wait(2)
        assert house.engine.directory.breakers[PLACE].state == "open"
        assert house.route(endpoint).block_reason is None

    in_house(story)


def test_null_is_told_once_by_several_nodes() -> None:
    health = LocalHealth()

    async def story(town: Town) -> None:
        endpoint = await opened(town)
        await without(town, endpoint)
        await town.wait(15)
        for engine in town.engines.values():
            assert engine.directory.breakers[PLACE].is_closed
        assert await in_store(health, town) == "closed"
        assert await town.ledger.breakers() == []
        assert (await town.notices()).count("breaker.closed") == 1

    in_town(story, health=lambda: health, one=ALL, two=ALL, three=ALL)


def test_an_opening_by_a_node_with_older_configuration_holds_nobody() -> None:
    health = LocalHealth()

    async def story(town: Town) -> None:
        await town.endpoint(A, policy=HEEDS_NONE)
        now = town.clock.now()
        turn = BreakerUpdate("acme", A, "open", "failures", now, now + 3_600_000, now)
        await health.exchange(node=b"x", counted=(), updates=[turn], busy=(), since=0, now=now)
        await town.wait(5)
        assert town.engine.directory.breakers[PLACE].is_closed
        assert await in_store(health, town) == "closed"

    in_town(story, health=lambda: health, one=ALL)


def test_key_trouble_that_another_node_found_holds_without_a_breaker_too() -> None:
    health = LocalHealth()

    async def story(town: Town) -> None:
        endpoint = await town.endpoint(A, policy=HEEDS_NONE)
        now = town.clock.now()
        turn = BreakerUpdate("acme", A, "open", "key", now, now + 3_600_000, now)
        await health.exchange(node=b"x", counted=(), updates=[turn], busy=(), since=0, now=now)
        await town.wait(5)
        assert town.route(endpoint).block_reason == "key"

    in_town(story, health=lambda: health, one=ALL)


WRONG_KEY = answers(
    401,
    headers=b"content-type: application/problem+json\r\n",
    body=b'{"retryable": false, "code": "bad_signature"}',
)


async def _rotates(house: House, endpoint: bytes) -> None:
    await endpoints.rotate_secret(house.engine, endpoint, overlap_s=0)


async def _resumes(house: House, endpoint: bytes) -> None:
    await endpoints.change(house.engine, None, endpoint, {"status": "active"})  # type: ignore[arg-type]


async def _tests(house: House, endpoint: bytes) -> None:
    assert (await testcall.call(house.engine, endpoint)).outcome == "delivered"


async def _resends(house: House, endpoint: bytes) -> None:
    view, *_ = await house.deliveries()
    await deliveries.resend(house.engine, view.id)


@pytest.mark.parametrize("mends", [_rotates, _resumes, _tests, _resends])
@pytest.mark.parametrize("trouble", [WRONG_KEY, REFUSES])
def test_who_mends_an_endpoint_need_not_wait_for_its_probe(trouble: Any, mends: Any) -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = trouble
        endpoint = await house.endpoint(A, policy=BREAKS)
        await house.publish(5)
        await house.wait(60)
        assert not house.route(endpoint).breaker.is_closed
        house.receivers.scripts.clear()
        await mends(house, endpoint)
        await house.wait(5)
        assert await house.states() == {"delivered": 5}

    in_house(story)


def test_a_probe_in_haste_that_fails_leaves_the_breaker_open_for_its_time() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = WRONG_KEY
        endpoint = await house.endpoint(A, policy=BREAKS)
        await house.publish(5)
        await house.wait(60)
        before = len(house.receivers.calls)
        await _rotates(house, endpoint)
        await house.wait(200)
        assert len(house.receivers.calls) == before + 1
        assert house.route(endpoint).block_reason == "key"

    in_house(story)


def test_null_does_not_close_what_the_key_opened() -> None:
    async def story(house: House) -> None:
        endpoint = await house.endpoint(A, policy=BREAKS)
        house.route(endpoint).breaker.trip("key", house.clock.now())
        await without(house, endpoint)
        assert (house.route(endpoint).block_reason, house.route(endpoint).breaker.state) == ("key", "open")

    in_house(story)


async def type_policy(house: House, policy: Any) -> None:
    given = None if policy is None else json.dumps(policy).encode()
    await house.ledger.change_event_type("doc.signed", {"policy": given})
    await house.engine.changed()


@pytest.mark.parametrize(("filters", "released"), [(("doc.signed",), True), (("doc.*",), False)])
def test_null_on_an_event_type_releases_endpoints_that_take_nothing_else(
    filters: tuple[str, ...], released: bool
) -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = REFUSES
        endpoint = await house.endpoint(A, types=filters)
        await house.ledger.add_event_type(EventType("doc.signed", None, None, "2020-12", None, 0))
        await type_policy(house, BREAKS)
        await house.publish(30)
        await house.wait(10)
        route = house.route(endpoint)
        assert route.breaker.state == "open"
        house.receivers.scripts.clear()
        await type_policy(house, HEEDS_NONE)
        await house.wait(2)
        assert route.breaker.is_closed is released
        assert (await house.states() == {"delivered": 30}) is released
        await type_policy(house, None)
        assert route.breaker_policy is not None, "the type has no policy any more: that of `standard`"

    in_house(story)


def test_of_several_policies_that_of_the_oldest_endpoint_with_one_holds() -> None:
    def with_calls(calls: int) -> dict[str, Any]:
        return {**BREAKS, "breaker": {"calls": calls}}

    async def story(house: House) -> None:
        oldest = await house.endpoint(A, policy=HEEDS_NONE)
        await house.wait(0.1)  # ids carry the time
        second = await house.endpoint(A, policy=with_calls(5))
        await house.wait(0.1)
        third = await house.endpoint(A, policy=with_calls(7))
        breaker = house.engine.directory.breakers[PLACE]

        def calls() -> int | None:
            return breaker.policy.calls if isinstance(breaker.policy, BreakerPolicy) else None

        assert calls() == 5
        await house.set(third, description="touched last")
        assert calls() == 5
        await house.set(oldest, policy=json.dumps(with_calls(9)).encode())
        assert calls() == 9
        await house.set(oldest, policy=json.dumps(HEEDS_NONE).encode())
        await house.set(second, url=B)
        assert calls() == 7
        await house.set(third, policy=json.dumps(HEEDS_NONE).encode())
        assert calls() is None

    in_house(story)


# -- others know an endpoint first -------------------------------------------------------------------------


def test_an_opening_that_is_heard_before_the_endpoint_holds_from_its_first_moment() -> None:
    health = LocalHealth()

    async def story(town: Town) -> None:
        now = town.clock.now()
        turn = BreakerUpdate("acme", A, "open", "failures", now, now + 3_600_000, now)
        await health.exchange(node=b"x", counted=(), updates=[turn], busy=(), since=0, now=now)
        await town.wait(2)
        assert list(town.engine.breakers()) == []
        town.receivers.scripts[A] = answers(200)
        await town.endpoint(A, policy=BREAKS)
        assert town.engine.directory.breakers[PLACE].state == "open"
        await town.publish(1)
        await town.wait(1)
        assert town.calls("one") == 0

    in_town(story, health=lambda: health, one=ALL)


def test_what_is_heard_of_a_url_without_endpoint_is_forgotten_after_a_minute() -> None:
    async def story(house: House) -> None:
        breakers = house.engine.directory.breakers
        now = house.clock.now()
        breakers.hear(View("acme", A, "open", "failures", now, now + 1, 7), now)
        breakers.forget_heard(now + AHEAD_MS)
        await house.endpoint(A, policy=BREAKS)
        assert breakers[PLACE].is_closed

    in_house(story)
