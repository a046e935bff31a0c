"""Lists are read a few at a time, and callers take turns."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from surehook.api import list_turns
from surehook.api.list_turns import AT_ONCE, WAITING_MOST, ListTurns
from surehook.core.errors import Overloaded, TenantOverloaded
from tests.api.house import KEY, House


class Reader:
    """Reads lists that end when the test says so. A caller is a key, or a key and a tenant: `key:tenant`."""

    def __init__(self) -> None:
        self.turns = ListTurns()
        self.begun: list[str] = []
        self.ends: list[asyncio.Event] = []
        self.calls: list[asyncio.Task[None]] = []

    async def ask(self, *callers: str) -> None:
        self.calls += [asyncio.ensure_future(self._read(caller)) for caller in callers]
        await settle()

    async def end(self, count: int) -> None:
        for _ in range(count):
            self.ends.pop(0).set()
            await settle()

    async def _read(self, caller: str) -> None:
        key, _, tenant = caller.partition(":")
        async with self.turns.turn(key.encode(), tenant):
            self.begun.append(caller)
            end = asyncio.Event()
            self.ends.append(end)
            await end.wait()
            if caller == "broken":
                raise ValueError

    @property
    def waited(self) -> list[str]:
        """Whose turn came after a wait, in order."""
        return self.begun[AT_ONCE:]

    async def is_free(self) -> bool:
        """Nothing is left that could keep others: as many as ever begin at once, and no more."""
        self.begun.clear()
        await self.ask(*["later"] * (AT_ONCE + 1))
        return len(self.begun) == AT_ONCE


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_few_begin_and_the_others_wait_for_an_end() -> None:
    reader = Reader()
    await reader.ask(*["loud"] * 10)
    assert len(reader.begun) == AT_ONCE
    for more in range(1, 9):
        await reader.end(1)
        assert len(reader.begun) == AT_ONCE + more
    await reader.end(AT_ONCE)
    assert await reader.is_free()


async def test_a_key_waits_for_one_list_of_each_other_and_not_for_all() -> None:
    reader = Reader()
    await reader.ask(*["loud"] * 50, *["calm"] * 2, "third")
    await reader.end(6)
    assert reader.waited == ["loud", "calm", "third", "loud", "calm", "loud"]


async def test_of_one_key_tenants_take_turns_and_another_key_waits_for_one_of_them() -> None:
    reader = Reader()
    await reader.ask(*["key:loud"] * 4, *[f"key:t{n}" for n in range(3)], "key", "calm:t0")
    await reader.end(7)
    assert reader.waited == ["key:loud", "calm:t0", "key:t0", "key:t1", "key:t2", "key", "key:loud"]


async def test_the_line_of_a_tenant_is_bounded_and_other_tenants_and_keys_find_room() -> None:
    reader, most = Reader(), 3 * WAITING_MOST // 4
    await reader.ask(*["key:loud"] * (AT_ONCE + most))
    with pytest.raises(TenantOverloaded):
        await reader.turns.turn(b"key", "loud").__aenter__()
    await reader.ask("key:calm", "other")
    await reader.end(3)
    assert reader.waited == ["key:loud", "other", "key:calm"]
    await reader.ask("key:loud")
    assert not reader.calls[-1].done(), "there is room again"
    await reader.end(len(reader.calls) - 3)
    assert await reader.is_free()


async def test_the_line_of_a_key_is_bounded_however_many_tenants_it_names() -> None:
    reader = Reader()
    await reader.ask(*[f"key:t{n}" for n in range(AT_ONCE + WAITING_MOST + 50)])
    refused = [call for call in reader.calls if call.done()]
    assert len(refused) == 50 and all(isinstance(call.exception(), TenantOverloaded) for call in refused)
    await reader.end(AT_ONCE + WAITING_MOST)
    assert await reader.is_free()


async def test_who_is_cancelled_costs_nobody_a_turn() -> None:
    reader = Reader()
    await reader.ask("loud", "loud", *["loud"] * 5, "calm")
    for waiting in reader.calls[2:7]:
        waiting.cancel()
    await reader.end(1)
    assert reader.waited == ["calm"]
    reader.calls[1].cancel()
    await settle()
    await reader.end(2)
    assert await reader.is_free()


async def test_who_is_cancelled_as_his_turn_comes_gives_it_on() -> None:
    reader = Reader()
    await reader.ask("loud", "loud", "loud", "calm")
    reader.ends.pop(0).set()
    await asyncio.sleep(0)
    assert reader.calls[0].done() and not reader.waited
    reader.calls[2].cancel()
    await settle()
    assert reader.waited == ["calm"]


async def test_a_list_that_fails_ends_its_turn() -> None:
    reader = Reader()
    await reader.ask("broken", "broken", "calm")
    await reader.end(2)
    assert [isinstance(call.exception(), ValueError) for call in reader.calls[:2]] == [True, True]
    await reader.end(1)
    assert await reader.is_free()


async def test_nobody_waits_for_ever_behind_lists_that_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_turns, "BEGIN_S", 0.0)
    reader = Reader()
    await reader.ask("loud", "loud", "loud", "calm")
    async with asyncio.timeout(10):
        await asyncio.wait(reader.calls[2:])
    assert [isinstance(call.exception(), Overloaded) for call in reader.calls[2:]] == [True, True]
    await reader.end(2)
    assert await reader.is_free()


async def test_who_gave_up_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_turns, "BEGIN_S", 0.0)
    reader = Reader()
    await reader.ask("key", "key", *[f"key:t{n % 4}" for n in range(WAITING_MOST)])
    async with asyncio.timeout(10):
        await asyncio.wait(reader.calls[2:])
    monkeypatch.undo()
    await reader.ask("key:t0", "key:other")
    await reader.end(2)
    assert reader.waited == ["key:t0", "key:other"]
    await reader.end(2)
    assert await reader.is_free()


@pytest.mark.parametrize(
    ("path", "waits"),
    [
        ("/v1/deliveries", True),
        ("/v1/tenants", True),
        ("/v1/tenants/acme", False),
        ("/v1/lanes", False),
        ("/v1/breakers", False),
        ("/v1/policies", False),
    ],
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


async def answered(house: House, *asked: tuple[str, str]) -> list[str]:
    """Ask for lists, each with what `Authorization` says, while others have all turns: in the order of their answers."""
    told: list[str] = []
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=house.door), base_url="http://test"
    ) as client:

        async def ask(authorization: str, path: str) -> None:
            await client.get(path, headers={"authorization": authorization})
            told.append(path)

        async with house.services.lists.turn(b"other"), house.services.lists.turn(b"another"):
            asking = []
            for one in asked:
                asking.append(asyncio.ensure_future(ask(*one)))
                for _ in range(100):
                    await asyncio.sleep(0)
        await asyncio.gather(*asking)
    return told


LOUD, CALM = "/v1/deliveries?tenant=acme", "/v1/deliveries?tenant=calm"


def test_tenants_that_are_asked_for_with_one_key_take_turns(house: House, a_tenant: None) -> None:
    house.tenant("calm")
    told = house.run(answered(house, *[(f"Bearer {KEY}", LOUD)] * 10, (f"Bearer {KEY}", CALM)))
    assert told.index(CALM) < 5


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(
            [(f"Bearer {KEY}", f"/v1/deliveries?tenant=none{n}") for n in range(12)], id="unknown tenants"
        ),
        pytest.param([(f"Bearer {' ' * n}{KEY}", LOUD) for n in range(12)], id="spellings of a key"),
    ],
)
def test_nobody_has_a_line_of_his_own_for_each_name(
    house: House, a_tenant: None, asked: list[tuple[str, str]]
) -> None:
    house.tenant("calm")
    told = house.run(answered(house, *asked, (f"Bearer {KEY}", CALM)))
    assert told.index(CALM) < 5
