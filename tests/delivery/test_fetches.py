"""Tokens are fetched so many at a time, however many credentials a tenant has and however long its token servers take."""

from __future__ import annotations

from collections import Counter

from surehook.core.authentication import ClientCredentials
from surehook.delivery.fetches import LAST, OF_PROCESS, OF_TENANT, Fetches
from surehook.delivery.tokens import Grant
from tests.delivery.house import TENANT, House, in_house
from tests.delivery.test_tokens import SHORT, TOKEN_URL, TokenServer


def grant(tenant: str, number: int = 0) -> Grant:
    return Grant(tenant, ClientCredentials(TOKEN_URL, f"client{number}", "hush"))


def asked(fetches: Fetches, tenants: int, each: int) -> None:
    for number in range(each):
        for tenant in range(tenants):
            fetches.ask(grant(f"t{tenant}", number))


def test_a_tenant_fetches_so_many_at_once_and_the_others_in_turn() -> None:
    begun: list[Grant] = []
    fetches = Fetches(begun.append)
    asked(fetches, 1, 40)
    assert len(begun) == OF_TENANT
    for number in range(40):
        fetches.over("t0")
        assert len(begun) == min(40, OF_TENANT + number + 1)
    assert [one.client.client_id for one in begun] == [f"client{number}" for number in range(40)]
    assert fetches.under_way == 0


def test_all_together_fetch_no_more_than_the_process_may() -> None:
    begun: list[Grant] = []
    fetches = Fetches(begun.append)
    asked(fetches, 1_000, 2)
    assert fetches.under_way == len(begun) == OF_PROCESS


def test_tenants_that_fetch_at_length_leave_places_for_who_fetches_nothing() -> None:
    begun: list[Grant] = []
    fetches = Fetches(begun.append)
    asked(fetches, 20, OF_TENANT)
    assert len(begun) == OF_PROCESS - LAST
    fetches.ask(grant("late"))
    assert begun[-1].tenant == "late"


def test_lines_take_turns_by_tenant() -> None:
    begun: list[Grant] = []
    fetches = Fetches(begun.append)
    asked(fetches, 8, OF_TENANT * 2)
    del begun[:]
    for number in range(64):
        fetches.over(f"t{number % 8}")
    counts = Counter(one.tenant for one in begun)
    assert len(counts) == 8 and max(counts.values()) - min(counts.values()) <= 1


def test_deliveries_with_many_credentials_fetch_in_turn_and_all_arrive() -> None:
    """What would have been a hundred connections at once."""

    async def story(house: House) -> None:
        server = TokenServer(house, after=0.05)
        for number in range(100):
            made = await house.endpoint(f"https://a{number}.example/hook", policy=SHORT)
            client = ClientCredentials(TOKEN_URL, f"client{number}", "hush")
            await house.set(made, authentication=client)
        await house.publish()
        await house.wait(0.04)
        assert len(server.asked) == OF_TENANT
        await house.wait(1)
        assert len(server.asked) == 100
        assert await house.states() == {"delivered": 100}

    in_house(story)


def test_a_tenant_whose_token_servers_hang_keeps_no_other_from_its_token() -> None:
    async def story(house: House) -> None:
        hangs = "https://hangs.example/token"
        server = TokenServer(house)
        house.receivers.scripts[hangs] = TokenServer(house, after=1e9)
        house.receivers.scripts[TOKEN_URL] = server
        await house.tenant("hangs")
        for number in range(100):
            made = await house.endpoint(f"https://a{number}.example/hook", policy=SHORT, tenant="hangs")
            await house.set(made, authentication=ClientCredentials(hangs, f"client{number}", "hush"))
        made = await house.endpoint("https://b.example/hook", policy=SHORT)
        await house.set(made, authentication=ClientCredentials(TOKEN_URL, "me", "hush"))
        await house.publish(tenant="hangs")
        await house.wait(0.1)
        await house.publish(tenant=TENANT)
        await house.wait(0.3)
        assert len(house.receivers.at("https://b.example/hook")) == 1
        await house.wait(60)

    in_house(story, stops=False)
