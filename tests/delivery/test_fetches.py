"""Tokens are fetched so many at a time, however many credentials a tenant has and however long its token servers take."""

from __future__ import annotations

from collections import Counter

from surehook.core.authentication import ClientCredentials
from surehook.delivery.credential import Credential
from surehook.delivery.fetches import BESIDE, FAILING, LAST, OF_PROCESS, OF_TENANT, Fetches
from tests.delivery.house import TENANT, House, in_house
from tests.delivery.test_tokens import SHORT, TOKEN_URL, TokenServer


def grant(tenant: str, number: int = 0) -> Credential:
    return Credential(tenant, ClientCredentials(TOKEN_URL, f"client{number}", "hush"))


def over(fetches: Fetches, one: Credential) -> None:
    fetches.over(one)
    fetches.begin_next()


def asked(fetches: Fetches, tenants: int, each: int) -> None:
    for number in range(each):
        for tenant in range(tenants):
            fetches.ask(grant(f"t{tenant}", number))


def test_a_tenant_fetches_so_many_at_once_and_the_others_in_turn() -> None:
    begun: list[Credential] = []
    fetches = Fetches(begun.append)
    asked(fetches, 1, 40)
    assert len(begun) == OF_TENANT
    for number in range(40):
        over(fetches, begun[number])
        assert len(begun) == min(40, OF_TENANT + number + 1)
    assert [one.client.client_id for one in begun] == [f"client{number}" for number in range(40)]
    assert fetches.under_way == 0


def test_all_together_fetch_no_more_than_the_process_may() -> None:
    begun: list[Credential] = []
    fetches = Fetches(begun.append)
    asked(fetches, 1_000, 2)
    assert fetches.under_way == len(begun) == OF_PROCESS


def test_tenants_that_fetch_at_length_leave_places_for_who_fetches_nothing() -> None:
    begun: list[Credential] = []
    fetches = Fetches(begun.append)
    asked(fetches, 20, OF_TENANT)
    assert len(begun) == OF_PROCESS - LAST
    fetches.ask(grant("late"))
    assert begun[-1].tenant == "late"


def test_lines_take_turns_by_tenant() -> None:
    begun: list[Credential] = []
    fetches = Fetches(begun.append)
    asked(fetches, 8, OF_TENANT * 2)
    under_way = begun[:]
    del begun[:]
    for one in under_way[:64]:
        over(fetches, one)
    counts = Counter(one.tenant for one in begun)
    assert len(counts) == 8 and max(counts.values()) - min(counts.values()) <= 1


def test_a_token_server_that_fetches_nothing_finds_a_place_beside_one_that_hangs() -> None:
    begun: list[Credential] = []
    fetches = Fetches(begun.append)
    asked(fetches, 1, 1_000)
    for number in range(BESIDE + 1):
        fetches.ask(Credential("t0", ClientCredentials(f"https://{number}.example/token", "c", "hush")))
    assert len(begun) == OF_TENANT + BESIDE
    over(fetches, begun[0])
    assert len(begun) == OF_TENANT + BESIDE + 1, (
        "whose server fetches nothing comes before a line of one server"
    )
    assert begun[-1].client.token_url == f"https://{BESIDE}.example/token"


def test_what_failed_comes_last_and_has_few_places() -> None:
    begun: list[Credential] = []
    fetches = Fetches(begun.append)
    for number in range(100):
        failing = grant("t0", number)
        failing.is_failing = True
        fetches.ask(failing)
    assert len(begun) == FAILING
    asked(fetches, 1, OF_TENANT)
    assert len(begun) == OF_TENANT
    over(fetches, begun[0])
    assert not begun[-1].is_failing


def test_what_nobody_waits_for_is_not_fetched() -> None:
    begun: list[Credential] = []
    fetches = Fetches(begun.append)
    grants = [grant("t0", number) for number in range(OF_TENANT + 3)]
    for one in grants:
        fetches.ask(one)
    assert not fetches.drop(grants[0]), "it is under way"
    assert fetches.drop(grants[OF_TENANT]) and not fetches.drop(grants[OF_TENANT])
    assert fetches.in_line == 2
    over(fetches, begun[0])
    assert begun[-1] is grants[OF_TENANT + 1]
    assert fetches.drop(grants[OF_TENANT + 2])
    assert not fetches._lines


def test_a_tenants_own_hanging_token_server_keeps_its_healthy_one_waiting_for_nothing() -> None:
    """And the line is no longer than the requests that wait in it."""

    async def story(house: House) -> None:
        hangs = "https://hangs.example/token"
        house.receivers.scripts[hangs] = TokenServer(house, after=1e9)
        house.receivers.scripts[TOKEN_URL] = TokenServer(house)
        for number in range(100):
            made = await house.endpoint(f"https://a{number}.example/hook", policy=SHORT)
            await house.set(made, authentication=ClientCredentials(hangs, f"c{number}", "hush"))
        good = await house.endpoint("https://good.example/hook", policy=SHORT)
        await house.set(good, authentication=ClientCredentials(TOKEN_URL, "me", "hush"))
        await house.publish()
        await house.wait(1)
        assert len(house.receivers.at("https://good.example/hook")) == 1
        await house.wait(120)
        assert house.engine.tokens._fetches.in_line == 0, "all attempts are over"
        (view,) = [view for view in await house.deliveries() if view.endpoint == made]
        story = await house.story(view)
        assert {entry.error for entry in story} == {"token_timeout"}

    in_house(story)


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
