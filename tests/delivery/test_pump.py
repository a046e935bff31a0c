"""Who asks for a pump gets one slice in the next turn of the loop, and what waits for endpoints that are gone is ended."""

from __future__ import annotations

import asyncio

from surehook.core.model import Delivery
from tests.delivery.house import House, in_house

A = "https://a.example/hook"


async def held(house: House, endpoint: bytes) -> Delivery:
    """One delivery of this endpoint, taken out of its queue."""
    house.engine.dispatch.pause()
    await house.publish()
    (row,) = house.engine.dispatch.drain(house.route(endpoint))
    return row


def test_a_delivery_of_an_endpoint_that_is_gone_is_ended_although_sending_has_stopped() -> None:
    """Nobody would look for it among queues: what waits for a token, or for a slot, would wait for ever."""

    async def story(house: House) -> None:
        endpoint = await house.endpoint(A)
        row, route = await held(house, endpoint), house.route(endpoint)
        await house.ledger.remove_endpoint(endpoint)
        await house.engine.changed()
        house.engine.dispatch.push(route, row)
        assert row.id in house.engine.reconciler.in_memory()
        await house.wait(0.1)
        assert house.engine.dispatch.memory.held == 0
        assert await house.states() == {"cancelled:deleted": 1}
        assert not house.receivers.calls

    in_house(story)


def test_however_often_a_pump_is_asked_for_there_is_one_and_not_at_once() -> None:
    async def story(house: House) -> None:
        endpoint = await house.endpoint(A)
        dispatch, row = house.engine.dispatch, await held(house, endpoint)
        dispatch.go_on()
        dispatch.push(house.route(endpoint), row)
        for _ in range(3):
            dispatch.pump_soon()
        house.engine.pump.pump()
        assert dispatch.is_due and not house.receivers.calls
        await asyncio.sleep(0.001)
        assert not dispatch.is_due and len(house.receivers.calls) == 1

    in_house(story)


def test_who_waits_for_a_pump_lets_others_have_a_turn_even_where_one_is_due() -> None:
    async def story(house: House) -> None:
        dispatch = house.engine.dispatch
        others = 0

        async def count() -> None:
            nonlocal others
            while True:
                others += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        for turn in range(1, 5):
            dispatch.pump_soon()
            await dispatch.pump_is_due()
            assert others >= turn
        counting.cancel()

    in_house(story)
