"""Nodes that decide together: breakers on everybody's calls, one probe, an endpoint's slots in parts."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from lab.health import LocalHealth
from surehook.delivery.probe_requests import ASKING_MOST
from surehook.ports.health import BreakerUpdate, HealthAway, View
from tests.delivery.house import REFUSES, answers
from tests.delivery.nodes import ALL, API, Town, in_town

A = "https://a.example/hook"
KEY = ("acme", A)
BREAKS = {
    "profile": "standard",
    "breaker": {"calls": 20, "probe_after": 30},
    "schedule": {"fixed": [3600]},
    "jitter": None,
}

PROBES_SOON = {
    "profile": "standard",
    "breaker": {"calls": 5, "probe_after": 30},
    "schedule": {"fixed": [5, 5, 5]},
    "jitter": None,
}


class Store:
    """A store that may be away. Called, it gives one node its door."""

    def __init__(self) -> None:
        self.inner = LocalHealth()
        self.is_away = False

    def __call__(self) -> Store:
        return self

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def exchange(self, **asked: Any) -> Any:
        if self.is_away:
            raise HealthAway("away")
        return await self.inner.exchange(**asked)

    async def take_probe(self, tenant: str, key: str, **asked: Any) -> bool:
        if self.is_away:
            raise HealthAway("away")
        return await self.inner.take_probe(tenant, key, **asked)


THREE = {"one": ALL, "two": ALL, "three": ALL}


async def publish_everywhere(town: Town, each: int) -> None:
    first = town.engine
    for engine in town.engines.values():
        town.engine = engine
        await town.publish(each)
    town.engine = first


def breakers(town: Town) -> list[str]:
    return [engine.directory.breakers[KEY].state for engine in town.engines.values()]


def calls(town: Town) -> int:
    return sum(town.calls(name) for name in town.engines)


async def open_together(town: Town) -> None:
    """Eight failing calls on each of three nodes: too few for any of them alone, enough for all."""
    town.receivers.scripts[A] = REFUSES
    await town.endpoint(policy=BREAKS)
    await publish_everywhere(town, 8)
    await town.wait(3)


def test_calls_of_several_nodes_open_one_breaker_together() -> None:
    async def story(town: Town) -> None:
        await open_together(town)
        assert breakers(town) == ["open"] * 3
        assert (await town.notices()).count("breaker.opened") == 1

    in_town(story, health=Store(), **THREE)


def test_apart_none_of_them_opens() -> None:
    async def story(town: Town) -> None:
        await open_together(town)
        assert breakers(town) == ["closed"] * 3

    in_town(story, **THREE)


def test_one_node_that_opens_alone_is_followed_within_two_seconds() -> None:
    async def story(town: Town) -> None:
        town.receivers.scripts[A] = REFUSES
        await town.endpoint(policy=BREAKS)
        await town.publish(25)
        await town.wait(2)
        assert breakers(town) == ["open"] * 3
        before = calls(town)
        await publish_everywhere(town, 5)
        await town.wait(2)
        assert calls(town) == before

    in_town(story, health=Store(), **THREE)


def test_one_probe_goes_through_for_all_and_its_success_closes_for_all() -> None:
    async def story(town: Town) -> None:
        await open_together(town)
        await publish_everywhere(town, 5)
        before = calls(town)
        town.receivers.scripts[A] = answers(200, after=1.5)
        await town.wait(38)
        assert breakers(town) == ["closed"] * 3
        probe, second, *_ = sorted(call.at for sent in town.sent.values() for call in sent.calls)[before:]
        assert second >= probe + 1.5, "nobody sends until the one probe has its answer"
        await town.wait(30)
        assert (await town.states()).get("delivered") == 15
        assert (await town.notices()).count("breaker.closed") == 1

    in_town(story, health=Store(), **THREE)


@pytest.mark.parametrize("turn", ["closed", "open"])
def test_what_was_decided_by_a_node_that_died_before_it_wrote_that_comes_into_the_ledger(turn: str) -> None:
    """All have taken it as theirs and left the writing to that node; a person was told by none of them again."""

    async def story(town: Town) -> None:
        if turn == "closed":
            await open_together(town)
        else:
            await town.endpoint(policy=BREAKS)
        before = await town.notices()
        decided = town.clock.now() + 1_000
        view = View(
            tenant="acme", key=A, state=turn, reason=None if turn == "closed" else "failures", opened_at=decided,
            probe_at=decided + 300_000, generation=decided,
        )  # fmt: skip
        for engine in town.engines.values():
            engine.breaker_changes.hear(view)
        assert len(await town.ledger.breakers()) == (turn == "closed"), "as it was written before"
        await town.wait(25)
        rows = await town.ledger.breakers()
        assert [row.state for row in rows if row.generation >= decided] == ["open"] * (turn == "open")
        assert len(rows) == (turn == "open")
        assert await town.notices() == before

    in_town(story, health=Store(), **THREE)


def test_a_failed_probe_puts_the_next_one_off_for_all() -> None:
    async def story(town: Town) -> None:
        await open_together(town)
        await publish_everywhere(town, 5)
        before = calls(town)
        await town.wait(100)
        assert 2 <= calls(town) - before <= 3
        assert breakers(town) == ["open"] * 3

    in_town(story, health=Store(), **THREE)


async def open_for_minutes(town: Town) -> bytes:
    """An endpoint whose breaker is open on all nodes, and holds what was published since."""
    town.receivers.scripts[A] = REFUSES
    endpoint = await town.endpoint(policy=BREAKS | {"breaker": {"calls": 20, "probe_after": 300}})
    await publish_everywhere(town, 12)
    await town.wait(3)
    await town.publish(5)
    await town.wait(1)
    assert breakers(town) == ["open"] * 3
    return endpoint


@pytest.mark.parametrize("mend", ["resume", "policy"])
def test_mending_hastens_the_probe_on_whichever_node_delivers_retries(mend: str) -> None:
    """It was hastened in the memory of the node that was asked, and what all share refused that node the probe."""

    async def story(town: Town) -> None:
        endpoint = await open_for_minutes(town)
        town.receivers.scripts[A] = answers(200)
        if mend == "resume":
            town.engine.probe_now(endpoint)
        else:
            await town.set(endpoint, policy=json.dumps(BREAKS).encode())
            await town.wait(35)
        await town.wait(15)
        assert breakers(town) == ["closed"] * 3

    in_town(story, health=Store(), one=API, two=ALL, three=ALL)


def test_hastening_waits_for_a_store_that_is_away_and_not_for_a_probe_that_came_since() -> None:
    store = Store()

    async def story(town: Town) -> None:
        endpoint = await open_for_minutes(town)
        before = calls(town)
        store.is_away = True
        town.engine.probe_now(endpoint)
        await town.wait(5)
        store.is_away = False
        await town.wait(60)
        assert calls(town) == before + 1

    in_town(story, health=store, one=API, two=ALL, three=ALL)


async def fail_while_away(town: Town, store: Store) -> None:
    """The nodes have found the store away; then one of them publishes what a receiver refuses."""
    town.receivers.scripts[A] = REFUSES
    await town.endpoint(policy=BREAKS)
    store.is_away = True
    await town.wait(2)
    await town.publish(25)


def test_while_the_store_is_away_each_decides_alone_and_tells_it_later() -> None:
    store = Store()

    async def story(town: Town) -> None:
        await fail_while_away(town, store)
        await town.wait(2)
        assert breakers(town)[0] == "open"
        assert (await town.notices()).count("breaker.opened") == 1
        facts = town.engines["one"].telemetry.names  # type: ignore[attr-defined]
        assert facts.count("health.away") == 1
        store.is_away = False
        await town.wait(3)
        assert breakers(town) == ["open"] * 3
        assert facts.count("health.back") == 1
        assert (await town.notices()).count("breaker.opened") == 1

    in_town(story, health=store, **THREE)


def test_without_the_store_a_probe_still_goes_through() -> None:
    store = Store()

    async def story(town: Town) -> None:
        await open_together(town)
        await publish_everywhere(town, 2)
        store.is_away = True
        town.receivers.scripts[A] = answers(200)
        await town.wait(60)
        assert (await town.states()).get("delivered") == 6

    in_town(story, health=store, **THREE)


def test_a_store_that_forgot_everything_is_told_again() -> None:
    store = Store()

    async def story(town: Town) -> None:
        await open_together(town)
        store.inner.flush()
        await town.wait(12)
        word = await store.inner.exchange(
            node=b"x", counted=(), updates=(), busy=(), since=0, now=town.clock.now()
        )
        assert [view.state for view in word.views] == ["open"]
        assert breakers(town) == ["open"] * 3

    in_town(story, health=store, **THREE)


@pytest.mark.parametrize(("health", "most"), [(Store(), 34), (None, 96)])
def test_the_slots_of_an_endpoint_are_divided_among_those_who_want_them(health: Any, most: int) -> None:
    async def story(town: Town) -> None:
        town.receivers.scripts[A] = answers(200, after=8.0)
        await town.endpoint(policy={"profile": "insigner"})
        await publish_everywhere(town, 200)
        await town.wait(20)  # the first waves had every slot of each node
        flying = [len(engine.deliver.flights) for engine in town.engines.values()]
        assert sum(flying) <= most
        assert all(count >= 1 for count in flying)

    in_town(story, health=health, stops=False, **THREE)


def test_a_closing_that_the_store_has_forgotten_is_not_undone_by_who_had_not_heard_of_it() -> None:
    store = Store()

    async def story(town: Town) -> None:
        await open_together(town)
        one = town.engine.directory.breakers[KEY]
        opened = (one.reason, one.opened_at, one.probe_at, one.generation)
        town.receivers.scripts[A] = answers(200)
        await publish_everywhere(town, 1)
        await town.wait(40)
        assert breakers(town) == ["closed"] * 3
        store.inner.flush()
        late = BreakerUpdate("acme", A, "open", *opened, again=True)
        await store.inner.exchange(
            node=b"x", counted=(), updates=[late], busy=(), since=0, now=town.clock.now()
        )
        await publish_everywhere(town, 1)
        await town.wait(5)
        assert breakers(town) == ["closed"] * 3
        word = await store.inner.exchange(
            node=b"x", counted=(), updates=(), busy=(), since=0, now=town.clock.now()
        )
        assert [view.state for view in word.views] == ["closed"], "who knew better has told it"

    in_town(story, health=store, **THREE)


def test_who_has_not_heard_of_a_closing_that_the_store_has_forgotten_hears_it_from_the_ledger() -> None:
    """It told the store of the opening for ever, which nobody else saw, and parked what came to it: no probe was to come, since
    for all the others the breaker was closed."""
    store = Store()

    async def story(town: Town) -> None:
        await open_together(town)
        stood = await town.ledger.breakers()
        town.receivers.scripts[A] = answers(200)
        await publish_everywhere(town, 1)
        await town.wait(40)
        assert breakers(town) == ["closed"] * 3
        store.inner.flush()
        town.engines["three"].breaker_changes.restore(stood)
        assert breakers(town) == ["closed", "closed", "open"]
        await town.wait(25)
        assert breakers(town) == ["closed"] * 3
        word = await store.inner.exchange(
            node=b"x", counted=(), updates=(), busy=(), since=0, now=town.clock.now()
        )
        assert [view.state for view in word.views] == ["closed"]
        assert await town.ledger.breakers() == []

    in_town(story, health=store, **THREE)


def test_while_the_store_is_away_openings_and_closings_are_heard_from_the_ledger() -> None:
    store = Store()

    async def story(town: Town) -> None:
        await fail_while_away(town, store)
        await town.wait(12)
        assert breakers(town) == ["open"] * 3
        assert len(await town.ledger.breakers()) == 1
        await town.publish(1)
        town.receivers.scripts[A] = answers(200)
        await town.wait(60)
        assert breakers(town) == ["closed"] * 3
        assert await town.ledger.breakers() == []
        generations = {engine.directory.breakers[KEY].generation for engine in town.engines.values()}
        assert len(generations) == 1, "of one decision"

    in_town(story, health=store, **THREE)


def test_the_ledger_has_the_generation_that_all_nodes_know() -> None:
    store = Store()

    async def story(town: Town) -> None:
        await open_together(town)
        (row,) = await town.ledger.breakers()
        assert {engine.directory.breakers[KEY].generation for engine in town.engines.values()} == {
            row.generation
        }

    in_town(story, health=store, **THREE)


class Frozen(Store):
    """A store that may be frozen: an answer takes a second, and is none."""

    async def exchange(self, **asked: Any) -> Any:
        await self._thaw()
        return await super().exchange(**asked)

    async def take_probe(self, tenant: str, key: str, **asked: Any) -> bool:
        await self._thaw()
        return await super().take_probe(tenant, key, **asked)

    async def _thaw(self) -> None:
        if self.is_away:
            await asyncio.sleep(1.0)


class Slow(Store):
    """A store that answers, each question after a second."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = self.most = 0

    async def take_probe(self, tenant: str, key: str, **asked: Any) -> bool:
        self.asked += 1
        self.most = max(self.most, self.asked)
        await asyncio.sleep(1.0 if self.is_away else 0.0)
        self.asked -= 1
        return await self.inner.take_probe(tenant, key, **asked)

    async def exchange(self, **asked: Any) -> Any:
        return await self.inner.exchange(**asked)


@pytest.mark.parametrize("store", [Frozen(), Slow()], ids=["frozen", "slow"])
def test_questions_about_probes_hold_up_no_other_endpoints_taking_back(store: Store) -> None:
    """They were asked one after another in the loop that takes back: with 100 open breakers a frozen store made 0.5 s
    of a healthy endpoint's backlog into ten minutes."""

    async def story(town: Town) -> None:
        for n in range(30):
            town.receivers.scripts[f"https://b{n}.example/x"] = REFUSES
            await town.endpoint(f"https://b{n}.example/x", policy=PROBES_SOON, types=("doc.signed",))
        good = await town.endpoint(A, types=("doc.other",))
        await town.publish(8)
        await town.wait(3)
        assert len(town.engine.directory.breakers.unclosed) == 30
        await town.set(good, status="paused")
        for _ in range(3):
            await town.publish(500, type="doc.other")
        await town.wait(1)
        store.is_away = True
        await town.wait(27)  # probes are about to be due
        await town.set(good, status="active")
        await town.wait(10)
        assert len(town.sent["one"].at(A)) == 1500
        if isinstance(store, Slow):
            assert store.most == ASKING_MOST

    in_town(story, health=store, stops=False, one=ALL)


def test_who_knows_that_the_others_cannot_be_asked_does_not_ask_again() -> None:
    """Every probe of an outage waited a second to hear the same."""
    store = Frozen()

    async def story(town: Town) -> None:
        store.is_away = True
        await town.endpoint(A)
        await town.wait(3)
        share = town.engine.cluster_health
        assert share is not None
        assert share.is_away
        began = asyncio.get_running_loop().time()
        assert await share.may_probe(town.engine.directory.breakers[KEY], 30.0)
        assert asyncio.get_running_loop().time() == began

    in_town(story, health=store, one=ALL)


def test_urls_that_change_while_the_store_is_away_leave_nothing_behind() -> None:
    """Each change left an entry, and a breaker with it, for as long as the outage lasted."""
    store = Store()

    async def story(town: Town) -> None:
        endpoint = await town.endpoint("https://a.example/0")
        await town.wait(2)
        store.is_away = True
        for n in range(100):
            await town.publish(1)
            await town.wait(0.05)
            await town.set(endpoint, url=f"https://a.example/{n + 1}")
        await town.wait(5)
        share = town.engine.cluster_health
        assert share is not None
        assert len(share._reports._turned) <= 1

    in_town(story, health=store, one=ALL)
