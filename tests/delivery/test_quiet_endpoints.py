"""The cost of endpoints that are there and not called."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from pathlib import Path

from surehook.core.model import Tenant
from surehook.delivery.directory import Directory
from surehook.delivery.endpoint_state import EndpointState, QuietEndpointState
from surehook.delivery.loading import Loader
from surehook.ledgers.sqlite import SqliteLedger
from tests.delivery.house import HANGS, House, Receivers, in_house
from tests.delivery.test_loading import NOW, endpoint, endpoint_id, secret

ENDPOINTS = 2_000
BYTES_EACH = 2_048
POLICY = b'{"profile":"standard","schedule":{"fixed":[1,2,3]}}'

LATER = {"profile": "standard", "schedule": {"fixed": [3600]}}


class Indifferent:
    """`loading.Follower`: nothing follows."""

    def touched(self, route: EndpointState) -> None: ...

    def dropped(self, route: EndpointState) -> None: ...

    def settled(self) -> None: ...


def built(house: House) -> list[bytes]:
    """Endpoints that have their parts."""
    routes = house.engine.directory.routes.items()
    return [id for id, route in routes if not isinstance(route, QuietEndpointState)]


def test_an_endpoint_in_memory_takes_less_than_two_kilobytes(tmp_path: Path) -> None:
    """As read from a file: every row's texts are its own."""

    async def measure() -> float:
        ledger = SqliteLedger(str(tmp_path / "book.db"), inline=True)
        await ledger.open(now=NOW)
        await ledger.add_tenant(Tenant("acme", "acme", False, NOW))
        for number in range(ENDPOINTS):
            made = endpoint(
                number, url=f"https://h{number}.example.com/hooks/{number}", policy=POLICY if number % 2 else None,
                event_types=("document.*", "invoice.paid"), description="An endpoint of ours",
            )  # fmt: skip
            await ledger.add_endpoint(made, secret(number, endpoint_id(number)))
        directory = Directory(transport=Receivers(), slots=32)
        loader = Loader(registry=ledger, directory=directory, follower=Indifferent())
        gc.collect()
        tracemalloc.start()
        await loader.reload()
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        await ledger.close()
        assert len(directory.routes) == ENDPOINTS
        return taken / ENDPOINTS

    assert asyncio.run(measure()) < BYTES_EACH


def test_only_endpoints_that_had_work_have_queues() -> None:
    async def story(house: House) -> None:
        busy = await house.endpoint(types=("doc.signed",))
        for number in range(20):
            await house.endpoint(f"https://quiet.example/{number}", types=("other",))
        await house.publish()
        await house.wait(1)
        assert built(house) == [busy]
        assert [id for id, route in house.engine.directory.routes.items() if not route.is_quiet] == [busy]

    in_house(story)


def test_a_shutdown_and_an_eviction_build_nothing_for_endpoints_that_had_no_work() -> None:
    async def story(house: House) -> None:
        quiet = [
            await house.endpoint(f"https://quiet.example/{number}", types=("other",)) for number in range(20)
        ]
        busy = await house.endpoint(types=("doc.signed",), policy=LATER)
        house.receivers.scripts["https://a.example/hook"] = HANGS
        await house.publish(50)
        await house.wait(0.1)
        assert len(house.engine.shutdown.drain()) == 50 - len(house.receivers.calls)
        assert built(house) == [busy]
        house.engine.shutdown.forget()
        assert built(house) == [busy]
        assert not set(quiet) & set(built(house))

    in_house(story, stops=False)


def test_a_breaker_that_opens_builds_nothing_for_endpoints_of_its_url_that_had_no_work() -> None:
    async def story(house: House) -> None:
        for number in range(20):
            await house.endpoint(f"https://a.example/hook?{number}", types=("other",))
        (breaker,) = house.engine.directory.breakers
        breaker.trip("failures", house.clock.now())
        house.engine.parking.heed(breaker)
        assert built(house) == []

    in_house(story)


def test_what_is_held_is_looked_for_where_something_is_held() -> None:
    """However many endpoints have been in use since the start."""

    async def story(house: House) -> None:
        for number in range(20):
            await house.endpoint(f"https://once.example/{number}", types=("once",))
        await house.publish(type="once")
        await house.wait(1)
        busy = await house.endpoint(types=("doc.signed",))
        house.receivers.scripts["https://a.example/hook"] = HANGS
        await house.publish(50)
        await house.wait(0.1)
        memory = house.engine.dispatch.memory
        assert len(built(house)) == 21
        assert [route.endpoint.id for route in memory.holders] == [busy]
        assert len(house.engine.reconciler.in_memory()) == 50
        await house.ledger.remove_endpoint(busy)
        await house.engine.changed()
        await house.wait(100)
        assert not memory.holders

    in_house(story)


def test_an_endpoint_in_use_is_read_at_the_price_of_a_plain_object() -> None:
    """A class with `__getattr__` pays for it at every attribute, five times as much, also at those that are there."""

    async def story(house: House) -> None:
        busy = house.route(await house.endpoint(types=("doc.signed",)))
        quiet = house.route(await house.endpoint("https://quiet.example/hook", types=("other",)))
        await house.publish()
        assert not hasattr(type(busy), "__getattr__")
        assert hasattr(type(quiet), "__getattr__")
        assert quiet.parked == set()
        quiet.may_have_parked("paused")
        assert not quiet.is_quiet
        assert quiet.flying == [0, 0]
        assert quiet.parked == {"paused"}, "what was there before its other parts stays"

    in_house(story)


def test_a_route_is_told_what_may_be_parked_and_nobody_else_writes_it() -> None:
    async def story(house: House) -> None:
        route, other = [house.route(await house.endpoint()) for _ in range(2)]
        before = route.parked
        route.may_have_parked("share", "breaker")
        route.may_have_parked("share")
        assert (before, route.parked, other.parked) == (set(), {"share", "breaker"}, set())
        route.has_taken_back(["breaker", "key"])
        assert route.parked == {"share"}
        assert isinstance(route.parked, frozenset)

    in_house(story)


def test_an_equal_policy_is_spelled_out_once() -> None:
    async def story(house: House) -> None:
        policy = {"profile": "standard", "schedule": {"fixed": [1, 2]}}
        first, second = [await house.endpoint(policy=policy) for _ in range(2)]
        assert house.route(first).own_plan is house.route(second).own_plan
        await house.set(first, policy=None)
        await house.set(second, policy=None)
        assert not house.engine.directory._plans

    in_house(story)


def test_a_new_url_and_new_headers_hold_for_the_next_call() -> None:
    async def story(house: House) -> None:
        busy = await house.endpoint()
        await house.publish()
        await house.wait(1)
        await house.set(busy, url="https://b.example/hook", headers={"x-new": "1"})
        await house.publish()
        await house.wait(1)
        first, second = house.receivers.calls
        assert (first.url, second.url) == ("https://a.example/hook", "https://b.example/hook")
        assert "x-new" not in first.headers and second.headers["x-new"] == "1"

    in_house(story)


def test_a_quiet_endpoint_that_is_deleted_leaves_nothing_behind() -> None:
    async def story(house: House) -> None:
        quiet = await house.endpoint()
        route = house.route(quiet)
        await house.ledger.remove_endpoint(quiet)
        await house.engine.changed()
        assert quiet not in house.engine.directory.routes
        assert isinstance(route, QuietEndpointState)

    in_house(story)
