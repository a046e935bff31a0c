"""A breaker that a person probes or closes, and what resends and tests do behind an open one."""

from __future__ import annotations

from typing import Any

import pytest

from surehook.core.errors import Problem
from surehook.delivery import breaker_board, deliveries, testcall
from surehook.ports.transport import Answer
from tests.delivery.house import TENANT, House, Script, answers, in_house
from tests.delivery.nodes import ALL, API, Town, in_town
from tests.delivery.test_share import Store

A = "https://a.example/hook"
FAILS = answers(500)
KEY_TROUBLE = Answer(
    status=401,
    headers=b"content-type: application/problem+json\r\n",
    body=b'{"retryable":false,"code":"unknown_key"}',
    total_us=1000,
)
BREAKER = {"window": 600, "failure_ratio": 0.4, "calls": 20, "probe_after": 300}
POLICY: dict[str, Any] = {
    "profile": "standard",
    "schedule": {"fixed": [1] * 50},
    "jitter": None,
    "breaker": BREAKER,
}


def refuses_the_key(call: Any) -> tuple[float, Answer]:
    return 0.001, KEY_TROUBLE


async def behind_an_open_one(house: House, script: Script = FAILS) -> bytes:
    house.receivers.scripts[A] = script
    endpoint = await house.endpoint(A, policy=POLICY)
    await house.publish(30)
    await house.wait(10)
    assert house.route(endpoint).breaker.state == "open"
    assert not any(state.startswith(("retrying", "scheduled")) for state in await house.states())
    return endpoint


def calls(house: House) -> int:
    return len(house.receivers.calls)


@pytest.mark.parametrize("script", [FAILS, refuses_the_key], ids=["failures", "key"])
def test_one_that_is_closed_sends_what_was_parked_and_says_so(script: Script) -> None:
    async def story(house: House) -> None:
        await behind_an_open_one(house, script)
        house.receivers.scripts[A] = answers(200)
        view = await breaker_board.close(house.engine, TENANT, A + "?any=query")
        assert (view.state, view.url, view.probe_at) == ("closed", A, None)
        await house.wait(5)
        assert await house.states() == {"delivered": 30}
        assert (await house.notices()).count("breaker.closed") == 1
        assert [row.state for row in await house.ledger.breakers([(TENANT, A)])] in ([], ["closed"])

    in_house(story)


def test_the_backlog_behind_it_begins_slowly() -> None:
    async def story(house: House) -> None:
        endpoint = await behind_an_open_one(house)
        house.receivers.scripts[A] = answers(200, after=1)
        before = calls(house)
        await breaker_board.close(house.engine, TENANT, A)
        assert house.route(endpoint).limits[1].now == 1
        await house.wait(0.5)
        assert calls(house) - before <= 2, "one a lane"

    in_house(story)


def test_a_receiver_that_still_fails_opens_it_again() -> None:
    async def story(house: House) -> None:
        endpoint = await behind_an_open_one(house)
        before = calls(house)
        await breaker_board.close(house.engine, TENANT, A)
        await house.wait(30)
        assert house.route(endpoint).breaker.state == "open"
        assert 20 <= calls(house) - before < 60, "what a closed breaker counts, and no more"

    in_house(story)


def test_one_that_is_probed_by_hand_asks_with_one_delivery_at_once() -> None:
    async def story(house: House) -> None:
        await behind_an_open_one(house)
        before = calls(house)
        view = await breaker_board.probe(house.engine, TENANT, A)
        assert (view.state, view.probe_at) == ("open", house.clock.now())
        await house.wait(3)
        assert calls(house) == before + 1
        house.receivers.scripts[A] = answers(200)
        await breaker_board.probe(house.engine, TENANT, A)
        await house.wait(10)
        assert await house.states() == {"delivered": 30}

    in_house(story)


def test_one_that_is_closed_stays_closed_and_a_url_of_nobody_has_none() -> None:
    async def story(house: House) -> None:
        await house.endpoint(A)
        for act in (breaker_board.probe, breaker_board.close):
            assert (await act(house.engine, TENANT, A)).state == "closed"
            for tenant, url in ((TENANT, "https://b.example/hook"), ("other", A)):
                with pytest.raises(Problem) as refused:
                    await act(house.engine, tenant, url)
                assert refused.value.code == "not_found"
        assert await house.notices() == []

    in_house(story)


def test_whoever_is_asked_all_nodes_hear_of_the_closing() -> None:
    async def story(town: Town) -> None:
        town.receivers.scripts[A] = answers(500)
        await town.endpoint(A, policy=POLICY)
        await town.publish(30)
        await town.wait(15)
        held = {engine.directory.breakers[TENANT, A].state for engine in town.engines.values()}
        assert held == {"open"}
        town.receivers.scripts[A] = answers(200)
        await breaker_board.close(town.engine, TENANT, A)
        await town.wait(15)
        assert await town.states() == {"delivered": 30}
        assert (await town.notices()).count("breaker.closed") == 1

    in_town(story, health=Store(), api=API, one=ALL, two=ALL)


def test_a_resend_of_what_is_finished_hastens_the_probe_as_well() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(200)
        endpoint = await house.endpoint(A, policy=POLICY)
        await house.publish()
        await house.wait(1)
        (done,) = await house.deliveries()
        house.route(endpoint).breaker.trip("failures", house.clock.now())
        _, is_new = await deliveries.resend(house.engine, done.id)
        assert is_new
        await house.wait(3)
        assert await house.states() == {"delivered": 2}
        assert house.route(endpoint).breaker.is_closed

    in_house(story)


def test_a_test_that_arrives_closes_nothing_and_hastens_the_probe() -> None:
    async def story(house: House) -> None:
        endpoint = await behind_an_open_one(house)
        house.receivers.scripts[A] = answers(200)
        assert (await testcall.call(house.engine, endpoint)).outcome == "delivered"
        assert house.route(endpoint).breaker.state == "open"
        await house.wait(10)
        assert await house.states() == {"delivered": 30}

    in_house(story)
