"""What is costly waits for its turn, and what is small does not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from surehook.api.turns import READ, SMALL_COST
from tests.api.house import KEY, House
from tests.api.test_ingest import TENANT, Door, at_the_door

LONG = "x" * (SMALL_COST // READ)
# Each event costs the more by it the more values it has.
SLOW = {"items": {"allOf": [{"maximum": number} for number in range(1, 2_000)]}}


async def waits(turns: Any, call: Callable[[], Awaitable[Any]]) -> bool:
    """Whether a call is not answered before somebody else's turn is over."""
    await turns._enter(b"somebody", 0)
    answer = asyncio.ensure_future(call())
    for _ in range(300):
        await asyncio.sleep(0)
    was_answered = answer.done()
    turns._leave(0.0)
    async with asyncio.timeout(10):
        await answer
    return not was_answered


@pytest.mark.parametrize(
    ("path", "body", "is_costly"),
    [
        ("/v1/events", {"type": "plain", "data": 1}, False),
        ("/v1/events", {"type": "plain", "data": LONG}, True),
        ("/v1/events", {"type": "plain", "data": [[[]]] * 1_500}, True),
        ("/v1/events", {"type": "judged", "data": [1]}, False),
        ("/v1/events", {"type": "judged", "data": [1] * 50}, True),
        ("/v1/events/batch", [{"type": "plain", "data": 1}] * 50, False),
        ("/v1/events/batch", [{"type": "plain", "data": "x" * 500}] * 50, True),
        ("/v1/events/batch", [{"type": "judged", "data": [1]}] * 100, True),
    ],
)
def test_of_events_those_that_are_long_to_read_or_to_judge(path: str, body: Any, is_costly: bool) -> None:
    async def story(door: Door) -> None:
        await door.register(SLOW, "judged")
        items = body if isinstance(body, list) else [body]
        whole = [{"tenant": TENANT, **item} for item in items]
        assert (
            await waits(door.turns, lambda: door.post(path, whole if isinstance(body, list) else whole[0]))
            is is_costly
        )

    at_the_door(story)


@pytest.mark.parametrize(("data", "is_small"), [(1, True), (LONG, False), ([1] * 50, False)])
def test_a_publish_that_waits_for_no_turn_is_told_of(data: Any, is_small: bool) -> None:
    async def story(door: Door) -> None:
        await door.register(SLOW)
        assert (await door.one(data))[0] == 202
        assert (door.turns._passed_at == door.house.clock.boot()) is is_small

    at_the_door(story)


@pytest.mark.parametrize(
    ("method", "path", "body", "is_costly"),
    [
        ("GET", "/v1/policies", None, False),
        ("GET", "/metrics", None, True),
        ("POST", "/v1/tenants", {"id": "small", "name": "small"}, False),
        ("POST", "/v1/tenants", {"id": "large", "name": LONG}, True),
        ("POST", "/v1/policies/preview", {"policy": "standard"}, True),
        ("POST", "/v1/event-types", {"name": "without.schema"}, False),
        ("POST", "/v1/event-types", {"name": "with.schema", "schema": {}}, True),
        ("PATCH", "/v1/event-types/doc.signed", {"schema": {}}, True),
        ("PATCH", "/v1/event-types/doc.signed", {"description": "new"}, False),
    ],
)
def test_of_management_calls_those_that_are_long_to_read_or_to_answer(
    house: House, method: str, path: str, body: Any, is_costly: bool
) -> None:
    house.post("/v1/event-types", {"name": "doc.signed"}, 201)

    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(app=house.door)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            content = None if body is None else json.dumps(body)
            return await client.request(
                method, path, headers={"authorization": f"Bearer {KEY}"}, content=content
            )

    assert house.run(waits(house.services.turns, call)) is is_costly
