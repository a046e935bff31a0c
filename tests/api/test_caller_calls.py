"""Outgoing calls that a request starts: bounded for endpoint, tenant and process, and their places come back."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from surehook.core import ids
from surehook.core.errors import Problem, TooManyCalls
from surehook.delivery import testcall
from surehook.delivery.caller_calls import BOUNDS, CallerCalls
from surehook.ports.transport import Answer
from tests.api.house import House

pytestmark = pytest.mark.usefixtures("a_tenant")

TEST, CHECK = BOUNDS["test"], BOUNDS["check"]
OAUTH = {
    "type": "oauth2",
    "token_url": "https://tokens.example.com/t",
    "client_id": "i",
    "client_secret": "s",
}


async def begin(house: House, endpoints: list[str], count: int) -> list[asyncio.Task[Any]]:
    """So many test calls of each endpoint, which hang; those that were refused are done."""
    engine = house.engine
    tasks = [
        asyncio.ensure_future(testcall.call(engine, ids.parse(ids.ENDPOINT, each)))
        for each in endpoints
        for _ in range(count)
    ]
    for _ in range(10):
        await asyncio.sleep(0)
    return tasks


def refused(tasks: list[asyncio.Task[Any]]) -> list[TooManyCalls]:
    errors = [task.exception() for task in tasks if task.done() and not task.cancelled()]
    return [error for error in errors if isinstance(error, TooManyCalls)]


async def end(house: House, tasks: list[asyncio.Task[Any]]) -> None:
    waiting, house.engine.transport.open = house.engine.transport.open or [], []
    for done in waiting:
        done(Answer(status=200))
    await asyncio.gather(*tasks, return_exceptions=True)


def test_test_calls_are_bounded_for_endpoint_tenant_and_process(house: House) -> None:
    others = [house.tenant(f"t{number}") for number in range(6)]
    mine = [house.endpoint()["id"] for _ in range(6)]
    theirs = [house.endpoint(tenant)["id"] for tenant in others for _ in range(6)]
    transport, calls = house.engine.transport, house.engine.caller_calls
    transport.open = []

    async def story() -> None:
        one = await begin(house, mine[:1], 20)
        assert TEST.endpoint is not None
        assert (len(transport.sent), len(refused(one))) == (TEST.endpoint, 20 - TEST.endpoint)
        tenant = await begin(house, mine, TEST.endpoint)
        assert len(transport.sent) == TEST.tenant == calls.under_way["test"]
        everybody = await begin(house, theirs, TEST.endpoint)
        assert len(transport.sent) == TEST.process == calls.under_way["test"] == calls.begun["test"]
        assert set(calls.refused) == {("test", scope) for scope in ("endpoint", "tenant", "process")}
        assert "of this process" in refused(everybody)[-1].detail
        await end(house, [*one, *tenant, *everybody])
        assert calls.under_way["test"] == 0

    house.run(story())
    assert not calls._held, "nothing is kept of what is over"


def test_the_answer_says_when_to_ask_again_and_what_to_do(house: House) -> None:
    made = house.endpoint()["id"]
    house.engine.transport.open = []

    async def story() -> httpx.Response:
        tasks = await begin(house, [made], TEST.endpoint or 0)
        transport = httpx.ASGITransport(app=house.door)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            key = {"authorization": "Bearer a-key-of-the-tests"}
            response = await client.post(f"/v1/endpoints/{made}/test", headers=key)
        await end(house, tasks)
        return response

    response = house.run(story())
    assert (response.status_code, response.json()["code"]) == (429, "too_many_calls")
    assert response.headers["retry-after"] == "5" and response.json()["hint"]
    assert ("refusals.began", {"code": "too_many_calls"}) in house.engine.telemetry.told


def test_a_caller_who_hangs_up_leaves_the_place_and_one_that_fetches_a_token_keeps_it(house: House) -> None:
    plain = house.endpoint()["id"]
    with_token = house.endpoint(authentication=OAUTH)["id"]
    transport, calls = house.engine.transport, house.engine.caller_calls
    transport.open = []

    async def story() -> None:
        for endpoint, held in ((plain, 0), (with_token, 1)):
            (task,) = await begin(house, [endpoint], 1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert calls.under_way["test"] == held
        await end(house, [])
        assert calls.under_way["test"] == 0

    house.run(story())
    assert len(transport.sent) == 2, "the second is the fetch, which goes on"


def test_checks_of_urls_are_bounded_for_tenant_and_process_and_leave_when_refused(house: House) -> None:
    answer = asyncio.Event()

    async def hangs(url: str, *, tenant: str) -> None:
        await answer.wait()
        raise Problem("address_forbidden", "no", field="url")

    house.engine.transport.check = hangs  # type: ignore[method-assign]
    calls = house.engine.caller_calls

    async def story() -> list[int]:
        transport = httpx.ASGITransport(app=house.door)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            body = {"tenant": "acme", "url": "https://a.example.com/", "event_types": ["*"]}
            key = {"authorization": "Bearer a-key-of-the-tests"}
            asked = [
                asyncio.ensure_future(client.post("/v1/endpoints", json=body, headers=key))
                for _ in range(CHECK.tenant + 3)
            ]
            refused = asyncio.as_completed(asked)
            async with asyncio.timeout(10):
                for _ in range(3):
                    assert (await next(refused)).status_code == 429
            assert calls.under_way["check"] == CHECK.tenant
            answer.set()
            return sorted([response.status_code for response in await asyncio.gather(*asked)])

    assert house.run(story()) == [422] * CHECK.tenant + [429] * 3
    assert calls.under_way["check"] == 0 and calls.refused["check", "tenant"] == 3


def test_a_place_is_left_once() -> None:
    calls = CallerCalls()
    one, two = calls.enter("test", tenant="a"), calls.enter("test", tenant="a")
    one.leave()
    one.leave()
    assert calls.under_way["test"] == 1
    two.leave()
    assert calls.under_way["test"] == 0
