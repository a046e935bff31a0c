"""Lists are read a few at a time, and callers take turns."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from surehook.api.list_turns import AT_ONCE, WAITING_MOST, ListTurns
from surehook.core.errors import TenantOverloaded
from tests.api.house import KEY, House

LOUD, CALM = b"loud", b"calm"


class Reader:
    """Reads lists that end when the test says so."""

    def __init__(self) -> None:
        self.turns = ListTurns()
        self.begun: list[bytes] = []
        self.ends: list[asyncio.Event] = []
        self.calls: list[asyncio.Task[None]] = []

    async def ask(self, *callers: bytes) -> None:
        self.calls += [asyncio.ensure_future(self._read(caller)) for caller in callers]
        await settle()

    async def end(self, count: int) -> None:
        for _ in range(count):
            self.ends.pop(0).set()
            await settle()

    async def _read(self, caller: bytes) -> None:
        async with self.turns.turn(caller):
            self.begun.append(caller)
            end = asyncio.Event()
            self.ends.append(end)
            await end.wait()
            if caller == b"broken":
                raise ValueError

    async def is_free(self) -> bool:
        """Nothing is left that could keep others: as many as ever begin at once, and no more."""
        self.begun.clear()
        await self.ask(*[b"later"] * (AT_ONCE + 1))
        return len(self.begun) == AT_ONCE


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_few_begin_and_the_others_wait_for_an_end() -> None:
    reader = Reader()
    await reader.ask(*[LOUD] * 10)
    assert len(reader.begun) == AT_ONCE
    for more in range(1, 9):
        await reader.end(1)
        assert len(reader.begun) == AT_ONCE + more
    await reader.end(AT_ONCE)
    assert await reader.is_free()


async def test_a_caller_waits_for_one_list_of_each_other_and_not_for_all() -> None:
    reader = Reader()
    await reader.ask(*[LOUD] * 50, *[CALM] * 2, b"third")
    await reader.end(6)
    assert reader.begun[AT_ONCE:] == [LOUD, CALM, b"third", LOUD, CALM, LOUD]


async def test_the_line_of_a_caller_is_bounded_and_that_of_another_is_not_touched() -> None:
    reader = Reader()
    await reader.ask(*[LOUD] * (AT_ONCE + WAITING_MOST))
    with pytest.raises(TenantOverloaded):
        await reader.turns.turn(LOUD).__aenter__()
    await reader.ask(CALM)
    await reader.end(2)
    assert reader.begun[AT_ONCE:] == [LOUD, CALM]
    await reader.ask(LOUD)
    assert not reader.calls[-1].done(), "there is room again"
    await reader.end(AT_ONCE + WAITING_MOST)
    assert await reader.is_free()


async def test_who_is_cancelled_costs_nobody_a_turn() -> None:
    reader = Reader()
    await reader.ask(LOUD, LOUD, *[LOUD] * 5, CALM)
    for waiting in reader.calls[2:7]:
        waiting.cancel()
    await reader.end(1)
    assert reader.begun[AT_ONCE:] == [CALM]
    reader.calls[1].cancel()
    await settle()
    await reader.end(2)
    assert await reader.is_free()


async def test_who_is_cancelled_as_his_turn_comes_gives_it_on() -> None:
    reader = Reader()
    await reader.ask(LOUD, LOUD, LOUD, CALM)
    reader.ends.pop(0).set()
    await asyncio.sleep(0)
    assert reader.calls[0].done() and len(reader.begun) == AT_ONCE
    reader.calls[2].cancel()
    await settle()
    assert reader.begun[AT_ONCE:] == [CALM]


async def test_a_list_that_fails_ends_its_turn() -> None:
    reader = Reader()
    await reader.ask(b"broken", b"broken", CALM)
    await reader.end(2)
    assert [isinstance(call.exception(), ValueError) for call in reader.calls[:2]] == [True, True]
    await reader.end(1)
    assert await reader.is_free()


@pytest.mark.parametrize(
    ("path", "waits"),
    [("/v1/deliveries", True), ("/v1/tenants", True), ("/v1/tenants/acme", False)],
)
def test_of_calls_lists_wait_for_a_turn(house: House, a_tenant: None, path: str, waits: bool) -> None:
    transport = httpx.ASGITransport(app=house.door)

    async def story() -> None:
        async with httpx.AsyncClient(
            transport=transport, base_url="http://test", headers={"authorization": f"Bearer {KEY}"}
        ) as client:
            async with house.services.lists.turn(b"other"), house.services.lists.turn(b"another"):
                answer = asyncio.ensure_future(client.get(path))
                for _ in range(300):
                    await asyncio.sleep(0)
                assert answer.done() is not waits
            assert (await answer).status_code == 200

    house.run(story())


async def lists(house: House, *paths: str) -> list[str]:
    """Ask for lists while others have all turns: the paths in the order in which they are answered."""
    answered: list[str] = []
    transport = httpx.ASGITransport(app=house.door)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://test", headers={"authorization": f"Bearer {KEY}"}
    ) as client:

        async def ask(path: str) -> None:
            assert (await client.get(path)).status_code == 200
            answered.append(path)

        async with house.services.lists.turn(b"other"), house.services.lists.turn(b"another"):
            asking = []
            for path in paths:
                asking.append(asyncio.ensure_future(ask(path)))
                for _ in range(100):
                    await asyncio.sleep(0)
        await asyncio.gather(*asking)
    return answered


def test_tenants_that_are_asked_for_with_one_key_take_turns(house: House) -> None:
    house.tenant("loud")
    house.tenant("calm")
    loud, calm = "/v1/deliveries?tenant=loud", "/v1/deliveries?tenant=calm"
    answered = house.run(lists(house, *[loud] * 10, calm))
    assert answered.index(calm) < 5
