"""What is costly waits for its turn, and what is small does not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from surehook.api.ingest import _line
from surehook.api.turns import BEGIN_S, READ, SMALL_COST, WAITING_MOST
from surehook.core.envelope import EventIn
from tests.api.house import KEY, House
from tests.api.test_ingest import KEY as DOOR_KEY
from tests.api.test_ingest import TENANT, Door, at_the_door

LONG = "x" * (SMALL_COST // READ)
# Each event costs the more by it the more values it has.
SLOW = {"items": {"allOf": [{"maximum": number} for number in range(1, 2_000)]}}


async def waits(turns: Any, call: Callable[[], Awaitable[Any]]) -> bool:
    """Whether a call is not answered before somebody else's turn is over."""
    await turns._enter(b"somebody", 0, begins=True)
    answer = asyncio.ensure_future(call())
    for _ in range(300):
        await asyncio.sleep(0)
    was_answered = answer.done()
    turns._leave(b"somebody", 0.0)
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


def test_a_small_batch_that_is_all_faults_is_long_to_answer() -> None:
    async def story(door: Door) -> None:
        assert await waits(door.turns, lambda: door.post("/v1/events/batch", [1] * 1000))
        assert not await waits(door.turns, lambda: door.post("/v1/events/batch", [1] * 20))

    at_the_door(story)


def test_a_batch_that_was_taken_is_answered_however_much_waits() -> None:
    async def story(door: Door) -> None:
        taken = {"tenant": TENANT, "type": "plain", "data": 1}
        await door.turns._enter(b"somebody", 0, begins=True)
        crowd = [
            asyncio.ensure_future(door.turns._enter(b"%d" % n, 0, begins=True)) for n in range(WAITING_MOST)
        ]
        answer = asyncio.ensure_future(door.post("/v1/events/batch", [taken] + [{**taken, "id": "no"}] * 100))
        await asyncio.sleep(BEGIN_S + 1)
        assert not answer.done()
        door.turns._leave(b"somebody", 0.0)
        while not answer.done():
            await asyncio.sleep(0.01)
            door.turns._leave(b"somebody", 0.0)
        status, answers = answer.result()
        assert (status, len(answers), "id" in answers[0]) == (202, 101, True)
        await asyncio.gather(*crowd, return_exceptions=True)

    at_the_door(story)


def test_where_one_key_is_that_of_many_tenants_their_events_are_judged_in_turns_of_their_own() -> None:
    async def story(door: Door) -> None:
        await door.house.tenant("other")
        await door.register(SLOW, "judged")
        event = {"type": "judged", "data": [1] * 50}
        door.turns._resting.add(
            _line(f"Bearer {DOOR_KEY}".encode(), EventIn(tenant=TENANT, type="judged", data=b"1"))
        )
        rests = asyncio.ensure_future(door.post("/v1/events", {"tenant": TENANT, **event}))
        async with asyncio.timeout(1):
            await door.post("/v1/events", {"tenant": "other", **event})
        assert not rests.done()
        door.turns._rested(next(iter(door.turns._resting)))
        await rests

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
        ("POST", "/v1/event-types", {"name": "of.versions", "schemas": {"2": {}}}, True),
        ("PATCH", "/v1/event-types/doc.signed", {"schemas": {"2": {}}}, True),
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
