"""While somebody waits for the answer to a publish, sending and what is large give way, for a while."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from surehook.core.model import FIRST, Delivery
from surehook.delivery.giving_way import GIVEN_S, STARTS
from surehook.delivery.tenant_activity import CALM_COST, NEAR_S, pause

from .house import TENANT, House, in_house

ENDPOINTS = 40


async def owed(house: House) -> None:
    """One tenant, which rushes, has work for many endpoints in memory; there is another."""
    await house.tenant("other")
    house.engine.accept._activity.seen(TENANT, 10 * CALM_COST, asyncio.get_running_loop().time())
    for number in range(ENDPOINTS):
        await house.endpoint(f"https://a{number}.example/hook")
    dispatch, now = house.engine.dispatch, house.clock.now()
    for number, route in enumerate(house.engine.directory.routes.values()):
        row = Delivery(
            number.to_bytes(16, "big"), b"event", route.endpoint.id, TENANT, "a", FIRST, 1, now, now, b"{}"
        )  # fmt: skip
        dispatch.memory.hold(route, row)
        dispatch.push(route, row)


async def beside_a_publish(house: House, *, begun: list[int]) -> None:
    """Note what is begun until a publish of the other tenant has its answer, whose commit takes a while."""
    accept = house.ledger.accept

    async def slow(*args: Any, **named: Any) -> Any:
        await house.clock.sleep(GIVEN_S * 0.9)
        begun.append(len(house.receivers.calls))
        return await accept(*args, **named)

    house.ledger.accept = slow  # type: ignore[method-assign]
    await house.publish(1, tenant="other")


def test_little_is_begun_for_others_between_a_publish_and_its_commit() -> None:
    """Forty requests cost the event loop as long as the commit would need; it waits for both."""

    async def story(house: House) -> None:
        await owed(house)
        begun: list[int] = []
        await beside_a_publish(house, begun=begun)
        assert begun == [STARTS]
        await house.wait(GIVEN_S)
        assert len(house.receivers.calls) == ENDPOINTS

    in_house(story, stops=False)


def test_who_sends_little_does_not_notice() -> None:
    async def story(house: House) -> None:
        await owed(house)
        mine = "https://mine.example/hook"
        await house.endpoint(mine, tenant="other")
        house.engine.dispatch.publish_waits(gives_way=True)
        await house.publish(STARTS, tenant="other")
        assert len(house.receivers.at(mine)) == STARTS
        house.engine.dispatch.publish_answered()

    in_house(story, stops=False)


def test_publishes_without_a_gap_hold_sending_up_for_half_of_the_time() -> None:
    async def story(house: House) -> None:
        await owed(house)
        dispatch = house.engine.dispatch
        dispatch.publish_waits(gives_way=True)
        house.engine.pump.pump()
        await house.wait(GIVEN_S * 0.9)
        assert len(house.receivers.calls) == STARTS
        await house.wait(GIVEN_S)
        assert len(house.receivers.calls) == ENDPOINTS, "although it still waits"
        dispatch.publish_answered()

    in_house(story, stops=False)


def test_where_nobody_rushes_no_way_is_given() -> None:
    async def story(house: House) -> None:
        await owed(house)
        await house.wait(NEAR_S)
        house.engine.dispatch.paused = False
        begun: list[int] = []
        await beside_a_publish(house, begun=begun)
        assert begun == [ENDPOINTS]

    in_house(story, stops=False)


@pytest.mark.parametrize("is_large", [False, True])
def test_what_is_large_goes_on_when_way_is_given_no_more(is_large: bool) -> None:
    async def story(house: House) -> None:
        await house.tenant("other")
        dispatch = house.engine.dispatch
        dispatch.publish_waits(gives_way=True)
        paused = asyncio.ensure_future(pause(dispatch, is_large=is_large))
        await house.wait(GIVEN_S * 0.9)
        assert paused.done() is not is_large
        await house.wait(GIVEN_S * 0.2)
        assert paused.done(), "it waits for no longer than that, whoever waits"
        dispatch.publish_answered()

    in_house(story)
