"""Nobody waits for what somebody else is owed: memory in rows and bytes, turns by tenant, claims."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from lab.ledger.ledger import MemoryLedger
from surehook.core.model import FIRST, Delivery
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.memory import Memory
from surehook.delivery.settings import EngineSettings
from surehook.delivery.slots import LaneState
from surehook.delivery.turns import Turns

from .house import TENANT, House, answers, in_house
from .nodes import API, WORKER, Town, in_town

A, B = "https://a.example/hook", "https://b.example/hook"
KIB = 1 << 10


class Stub(SimpleNamespace):
    """What memory sees of a route: each is its own."""

    __hash__ = object.__hash__


def memory(*tenants: str, **settings: Any) -> Memory:
    directory: Any = SimpleNamespace(tenants=dict.fromkeys(tenants))
    return Memory(EngineSettings(**settings), directory)


def route(tenant: str) -> Any:
    return Stub(endpoint=SimpleNamespace(tenant=tenant), held=0, held_bytes=0)


def delivery(number: int, *, size: int = 100, event: int | None = None) -> Delivery:
    of_event = number if event is None else event
    body = b"%d" % of_event
    return Delivery(
        number.to_bytes(16, "big"), of_event.to_bytes(16, "big"), b"e", "t", "a", FIRST, 1, 0, 0, body.ljust(size)
    )  # fmt: skip


def fill(kept: Memory, by: Any, *, size: int = 100, begin: int = 0) -> int:
    """Hold new events until the endpoint may hold no more; how many those were."""
    count = 0
    while kept.has_share(by):
        kept.hold(by, delivery(begin + count, size=size))
        count += 1
    return count


async def crowd_and_other(house: House, *, after: float = 1.0, apart: float = 0.0) -> None:
    """A tenant with a hundred endpoints, which answer so late and so far apart, and another one with B."""
    for number in range(100):
        url = f"https://a{number}.example/hook"
        house.receivers.scripts[url] = answers(200, after=after + number % 10 * apart)
        await house.endpoint(url)
    await house.tenant("other")
    await house.endpoint(B, tenant="other")


# -- memory -------------------------------------------------------------------------------------------------


def test_a_body_counts_once_however_many_deliveries_need_it() -> None:
    kept = memory("a", "b", memory_bytes=1000 * KIB)
    routes = [route("a") for _ in range(50)]
    rows = [delivery(number, size=100 * KIB, event=7) for number in range(50)]
    for one, row in zip(routes, rows, strict=True):
        kept.hold(one, row)
    assert (kept.held, kept.held_bytes) == (50, 100 * KIB)
    assert len({id(row.body) for row in rows}) == 1, "copies that a claim brought are given up"
    for one, row in zip(routes[:-1], rows[:-1], strict=True):
        kept.let_go(one, row)
    assert (kept.held, kept.held_bytes) == (1, 100 * KIB)
    kept.let_go(routes[-1], rows[-1])
    assert (kept.held, kept.held_bytes) == (0, 0)


def test_what_is_published_again_never_lends_its_bytes_to_the_first() -> None:
    """A repeat is in memory until the ledger knows it for one; its event's own rows may be claimed meanwhile."""
    kept = memory("a", "b")
    repeat, first = delivery(1, event=7), delivery(2, event=7)
    repeat.body = b"later " + first.body
    own, size = first.body, len(repeat.body) + len(first.body)
    kept.hold(one := route("a"), repeat)
    kept.hold(two := route("a"), first)
    assert (first.body, kept.held_bytes) == (own, size)
    kept.let_go(one, repeat)
    kept.let_go(two, first)
    assert (kept.held, kept.held_bytes) == (0, 0)


def test_one_endpoint_may_hold_less_than_half_of_the_bytes() -> None:
    kept = memory("a", "b", memory_bytes=1000 * KIB)
    slow = route("a")
    assert 41 <= fill(kept, slow, size=10 * KIB) <= 43
    assert kept.has_share(route("a"))


def test_an_endpoint_that_holds_nothing_is_promised_no_more_than_it_may_hold() -> None:
    """What is taken back beyond that is parked again, and taken back again."""
    for accepts in (True, False):
        kept = memory("a", "b", memory_deliveries=100, endpoint_share=5, accepts=accepts)
        slow = route("a")
        promised = kept.share(slow)
        assert 0 < promised < 100
        assert fill(kept, slow) <= promised


def test_a_tenant_with_many_endpoints_leaves_half_of_the_bytes_and_rows() -> None:
    for bounds in ({"memory_bytes": 1000 * KIB}, {"memory_deliveries": 100, "endpoint_share": 5}):
        kept = memory("a", "b", **bounds)
        for number in range(200):
            fill(kept, route("a"), size=10 * KIB, begin=1000 * number)
        assert 50 <= kept.held <= 51
        assert kept.has_share(route("b"))


def test_however_many_tenants_are_greedy_the_next_one_finds_room() -> None:
    kept = memory(*"abcdefghij", memory_bytes=1000 * KIB)
    for number, tenant in enumerate("abcdefghi"):
        for turn in range(20):
            fill(kept, route(tenant), begin=1_000_000 * number + 10_000 * turn)
    assert fill(kept, route("i"), begin=20_000_000) == 0
    assert fill(kept, route("j"), begin=30_000_000) >= 4


def test_the_first_delivery_of_a_tenant_fits_however_large() -> None:
    kept = memory("a", "b", memory_bytes=10 * KIB)
    kept.hold(one := route("a"), delivery(1, size=9 * KIB))
    assert not kept.has_share(one)
    assert kept.has_share(route("b"))
    kept.hold(route("b"), delivery(2, size=200 * KIB))
    assert not kept.has_room()


def test_a_lone_tenant_may_fill_everything() -> None:
    kept = memory("a", memory_deliveries=100, endpoint_share=5)
    for number in range(200):
        fill(kept, route("a"), begin=1000 * number)
    assert kept.held == 100


# -- turns --------------------------------------------------------------------------------------------------


def test_turns_go_by_tenant_and_then_by_endpoint() -> None:
    turns = Turns()
    routes = {name: route("few" if name == "few" else "many") for name in ("0", "1", "2", "few")}
    for one in routes.values():
        turns.add(one)
    order = []
    for _ in range(8):
        taken = turns.take()
        order += [name for name, one in routes.items() if one is taken]
        turns.add(taken)
    assert order == ["0", "few", "1", "few", "2", "few", "0", "few"]


def test_a_tenant_with_many_endpoints_has_one_tenants_turn() -> None:
    settings = EngineSettings(slots_first=4)

    async def story(house: House) -> None:
        for number in range(50):
            url = f"https://a{number}.example/hook"
            house.receivers.scripts[url] = answers(200, after=0.5)
            await house.endpoint(url)
        await house.tenant("other")
        await house.endpoint(B, tenant="other")
        await house.publish(4)
        await house.publish(3, tenant="other")
        await house.wait(1.6)
        assert len(house.receivers.at(B)) == 3

    in_house(story, settings=settings)


def test_what_a_slow_receiver_is_owed_in_bytes_stops_nobody_else() -> None:
    """The size of what waits is far beyond memory: rows are few, so that only bytes can tell."""
    settings = EngineSettings(memory_bytes=1 << 20)

    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(200, after=1.5)
        await house.endpoint(A)
        await house.tenant("other")
        await house.endpoint(B, tenant="other")
        await house.publish(250, size=20 * KIB)
        kept = house.engine.dispatch.memory
        assert kept.held_bytes < (1 << 20) / 2
        before = house.clock.now()
        await house.publish(50, tenant="other")
        await house.wait(0.5)
        assert len(house.receivers.at(B)) == 50
        assert house.clock.now() - before < 600
        await house.wait(30)
        assert len(house.receivers.at(A)) == 250

    in_house(story, settings=settings)


def test_one_event_to_many_endpoints_stops_nobody_else() -> None:
    settings = EngineSettings(memory_bytes=1 << 20, memory_deliveries=200, endpoint_share=20)

    async def story(house: House) -> None:
        await crowd_and_other(house)
        await house.publish(5, size=100 * KIB)
        assert house.engine.dispatch.memory.held_bytes <= 600 * KIB
        await house.publish(20, tenant="other")
        await house.wait(0.5)
        assert len(house.receivers.at(B)) == 20
        await house.wait(60)
        assert len(house.receivers.calls) == 520

    in_house(story, settings=settings)


class WhileTakingBack(MemoryLedger):
    """Calls what a test has put there when rows are out of parking, and not in memory yet."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.then: Callable[[], None] = lambda: None
        self.out: set[bytes] = set()
        self.again: set[bytes] = set()

    async def unpark(self, *args: Any, **options: Any) -> list[Delivery]:
        rows = await super().unpark(*args, **options)
        self.out |= {row.id for row in rows}
        self.then()
        return rows

    async def park(self, deliveries: Sequence[Delivery], reason: str, **options: Any) -> None:
        self.again |= self.out & {row.id for row in deliveries}
        await super().park(deliveries, reason, **options)


def test_what_was_taken_back_is_kept_although_a_claim_took_its_room_meanwhile() -> None:
    """Both count on the room that is free: of a few rows it went round and round (world 50000071)."""
    settings = EngineSettings(memory_deliveries=20, endpoint_share=10)

    async def story(house: House) -> None:
        assert isinstance(house.ledger, WhileTakingBack)
        memory, loop = house.engine.dispatch.memory, asyncio.get_running_loop()
        house.receivers.scripts[A] = answers(200, after=0.1)
        await house.endpoint(A)
        (route,) = house.engine.directory.routes.values()

        def claimed() -> None:
            rows = [delivery(1 << 20 | number) for number in range(20 - memory.held)]
            for row in rows:
                memory.hold(route, row)
            loop.call_later(0.05, memory.let_all_go, [(route, row) for row in rows])

        house.ledger.then = claimed
        await house.publish(100)
        await house.wait(60)
        assert len(house.receivers.calls) == 100
        assert house.ledger.out
        assert not house.ledger.again

    in_house(story, settings=settings, ledger=WhileTakingBack)


def test_large_bodies_leave_in_slices() -> None:
    """Between two slices whatever else is ready has its turn."""

    async def story(house: House) -> None:
        for number in range(40):
            await house.endpoint(f"https://a{number}.example/hook")
        dispatch = house.engine.dispatch
        for number, one in enumerate(house.engine.directory.routes.values()):
            row = structs.replace(
                delivery(number, size=100 * KIB),
                endpoint=one.endpoint.id, tenant=TENANT, due_at=house.clock.now(), born_at=house.clock.now(),
            )  # fmt: skip
            dispatch.memory.hold(one, row)
            dispatch.push(one, row)
        house.engine.pump.pump()
        assert len(house.receivers.calls) == 6, "512 KiB and what goes beyond"
        await house.wait(0.01)
        assert len(house.receivers.calls) == 40

    in_house(story, stops=False)


@pytest.mark.parametrize(("waited_for", "starts"), [(0, 8), (1, 2)])
def test_a_turn_of_the_loop_starts_one_slice_however_many_pump(waited_for: int, starts: int) -> None:
    """A start costs about 0.1 ms, and a request from outside passes several turns of the loop: the fewer in each, while
    somebody waits for the answer to one."""

    async def story(house: House) -> None:
        await house.tenant("other")  # whom long turns would keep waiting
        for number in range(40):
            await house.endpoint(f"https://a{number}.example/hook")
        dispatch = house.engine.dispatch
        for number, one in enumerate(house.engine.directory.routes.values()):
            row = structs.replace(
                delivery(number, size=10),
                endpoint=one.endpoint.id, tenant=TENANT, due_at=house.clock.now(), born_at=house.clock.now(),
            )  # fmt: skip
            dispatch.memory.hold(one, row)
            dispatch.push(one, row)
        dispatch.waited_for = waited_for
        for _ in range(5):  # accept, claim, timers and answers
            house.engine.pump.pump()
        assert len(house.receivers.calls) == starts
        await house.wait(0.01)
        assert len(house.receivers.calls) == 40

    in_house(story, stops=False)


@pytest.mark.parametrize("others", [0, 1])
def test_a_lane_that_somebody_fills_at_one_instant_has_a_slot_for_who_comes_next(others: int) -> None:
    """Its slow requests all began together, and all end together: whoever found no slot would wait for that."""

    async def story(house: House) -> None:
        for number in range(60):
            url = f"https://a{number}.example/hook"
            house.receivers.scripts[url] = answers(200, after=1.0)
            await house.endpoint(url)
        for number in range(others):
            await house.tenant(f"other{number}")
            await house.endpoint(B, tenant=f"other{number}")
        await house.publish(1)
        await house.wait(0.3)
        assert len(house.receivers.calls) == (28 if others else 32)
        for number in range(others):
            await house.publish(3, tenant=f"other{number}")
        await house.wait(0.1)
        assert len(house.receivers.at(B)) == 3 * others
        await house.wait(3)
        assert len(house.receivers.calls) == 60 + 3 * others
        assert house.engine.dispatch.lanes[FIRST].tenants_busy == {}

    in_house(story, settings=EngineSettings(slots_first=32))


def test_of_several_who_fill_a_lane_none_takes_the_last_slot() -> None:
    lane = LaneState(512)
    greedy, used = ["a", "b", "c"], {"a": 0, "b": 0, "c": 0}
    while takers := [name for name in greedy if lane.has_part(name)]:
        for name in takers:
            if lane.has_part(name):
                lane.take_slot(name)
                used[name] += 1
    assert max(used.values()) - min(used.values()) <= 1
    assert lane.slots - lane.busy >= 20
    lane.give_slot("a")
    assert lane.has_part("a")


# -- claims -------------------------------------------------------------------------------------------------


class Waiting:
    """An endpoint in line. `Waiting.asked` counts how often anybody was asked what it could start."""

    asked = 0

    def __init__(self, tenant: str, queued: int, *, slots: int = 32, flying: int = 0) -> None:
        self.endpoint = SimpleNamespace(tenant=tenant)
        self.limits = (SimpleNamespace(now=slots),)
        self.flying = [flying]
        self._queued = queued

    @property
    def queues(self) -> tuple[range]:
        Waiting.asked += 1
        return (range(self._queued),)


def in_line(*waiting: Any) -> Dispatch:
    directory: Any = SimpleNamespace(tenants={})
    dispatch = Dispatch(EngineSettings(), directory)
    for one in waiting:
        dispatch.lanes[FIRST].ring.add(one)
    return dispatch


def test_what_could_start_is_counted_by_tenant() -> None:
    dispatch = in_line(
        Waiting("a", 5),
        Waiting("a", 50, flying=2),
        Waiting("b", 9, slots=4),
        Waiting("c", 9, slots=1, flying=8),
    )
    assert dispatch.startable(FIRST, of_all=544) == {"a": 35, "b": 4, "c": 0}, (
        "a limit that shrank takes nothing from others"
    )
    assert (dispatch.has_startable(FIRST, 39), dispatch.has_startable(FIRST, 40)) == (True, False)


@pytest.mark.parametrize(("tenants", "endpoints"), [(1, 5_000), (10, 500), (500, 3)])
def test_a_look_costs_what_the_lane_has_use_for_however_many_wait(tenants: int, endpoints: int) -> None:
    dispatch = in_line(*(Waiting(f"t{number % tenants}", 3) for number in range(tenants * endpoints)))
    Waiting.asked = 0
    counts = dispatch.startable(FIRST, of_all=100)
    assert len(counts) == tenants
    assert all(count * tenants >= 100 for count in counts.values()), "each has enough"
    assert dispatch.has_startable(FIRST, 100)
    assert Waiting.asked <= 100


def test_nobody_waits_behind_a_slow_endpoints_due_rows() -> None:
    """API and worker apart: the worker finds a backlog, and then what others publish beside it."""

    async def story(town: Town) -> None:
        town.receivers.scripts[A] = answers(200, after=1.5)
        await town.endpoint(A)
        await town.tenant("other")
        await town.endpoint(B, tenant="other")
        town.engines["worker"].dispatch.paused = True
        await town.publish(3000)
        before = town.clock.now()
        await town.publish(20, tenant="other")
        town.engines["worker"].dispatch.paused = False
        town.engines["worker"].claim_looks.wake()
        await town.wait(0.3)
        assert len(town.sent["worker"].at(B)) == 20
        for _ in range(10):
            await town.wait(0.2)
            await town.publish(1, tenant="other")
            await town.wait(0.02)
            assert len(town.sent["worker"].at(B)) > 20
        assert len(town.sent["worker"].at(B)) == 30
        assert town.clock.now() - before < 5000
        assert town.engines["worker"].dispatch.memory.held < 600, "the rest stays where it was"

    in_town(story, api=API, worker=WORKER, stops=False)


def test_who_hints_while_a_look_past_others_is_under_way_is_looked_for_at_once() -> None:
    """That look may have begun too early to see it, and the next one of its own accord is up to a tenth of a second away."""

    async def story(town: Town) -> None:
        town.receivers.scripts[A] = answers(200, after=1.5)
        await town.endpoint(A)
        await town.tenant("other")
        await town.endpoint(B, tenant="other")
        await town.publish(3000)
        await town.wait(0.5)
        looks: list[float] = []

        def hint_within(step: str) -> None:
            if step == "after claim_others":
                looks.append(town.clock.boot())
                if len(looks) % 2:
                    town.engines["worker"].claim_looks.woken(FIRST)

        town.faults = hint_within
        await town.wait(1.0)
        after_hints = [after - before for before, after in zip(looks[::2], looks[1::2], strict=False)]
        assert len(after_hints) >= 5
        assert max(after_hints) < 0.07, "64 ms is what a hint waits where those before it led to nothing"
        assert after_hints[0] < 0.001

    in_town(story, api=API, worker=WORKER, stops=False)


def test_a_hint_does_not_wait_for_a_crowds_claims() -> None:
    """One after another fills the slots that a crowd has use for. In between, what was hinted at is looked for past the
    crowd's rows, which are due earlier."""

    async def story(town: Town) -> None:
        async def takes_its_time() -> None:
            await town.wait(0.002)

        await crowd_and_other(town)
        town.engines["worker"].dispatch.paused = True
        await town.publish(30)
        town.engines["worker"].dispatch.paused = False
        steps: list[str] = []
        town.faults = steps.append
        await town.wait(0.2)
        town.ledger._checkpoint = takes_its_time
        town.engines["worker"].claim_looks.wake()
        while "after claim" not in steps:
            await town.wait(0.001)
        await town.publish(1, tenant="other")
        begun = steps.count("before claim")
        while not town.sent["worker"].at(B):
            await town.wait(0.001)
        assert steps.count("before claim") <= begun + 1

    in_town(story, api=API, worker=WORKER, stops=False)


def test_what_lies_far_behind_a_crowd_is_looked_through_at_a_pace() -> None:
    """However often slots become free: whoever hints waits for such a look. What is fresh is looked at each time."""

    async def story(town: Town) -> None:
        await crowd_and_other(town, after=0.3, apart=0.01)
        await town.publish(100)
        looks: list[bool] = []
        claim_others = town.ledger.claim_others

        async def seen(*args: Any, fresh: bool = False, **asked: Any) -> list[Delivery]:
            looks.append(fresh)
            return await claim_others(*args, fresh=fresh, **asked)

        town.ledger.claim_others = seen  # type: ignore[method-assign]
        await town.wait(1.0)
        assert 5 <= looks.count(False) <= 21
        assert looks.count(True) > 10

    in_town(story, api=API, worker=WORKER, stops=False)


def test_a_tenant_with_a_thousand_endpoints_takes_its_part_of_a_claim() -> None:
    async def story(town: Town) -> None:
        await crowd_and_other(town)
        town.engines["worker"].dispatch.paused = True
        await town.publish(30)
        await town.publish(20, tenant="other")
        town.engines["worker"].dispatch.paused = False
        town.engines["worker"].claim_looks.wake()
        await town.wait(1.6)
        assert len(town.sent["worker"].at(B)) >= 15
        await town.wait(400)
        assert len(town.sent["worker"].calls) == 3020

    in_town(story, api=API, worker=WORKER, settings={"slots_first": 16}, stops=False)


def test_a_backlog_of_large_bodies_comes_in_pieces() -> None:
    settings = EngineSettings(memory_bytes=1 << 20, claim_rows=500)

    async def story(house: House) -> None:
        await house.tenant("other")
        await house.endpoint(A)
        house.engine.dispatch.paused = True
        kept = house.engine.dispatch.memory
        await house.publish(30, size=200 * KIB)
        assert kept.held_bytes < 800 * KIB
        house.engine.dispatch.paused = False
        house.engine.pump.pump()
        highest = 0
        for _ in range(200):
            await house.wait(0.05)
            highest = max(highest, kept.held_bytes)
        assert highest < 800 * KIB
        assert len(house.receivers.at(A)) == 30

    in_house(story, settings=settings)


def test_a_full_worker_claims_as_its_memory_becomes_free() -> None:
    """It found memory full when it was about to look again, and does not wait for the next poll."""

    async def story(town: Town) -> None:
        await town.endpoint()
        await town.publish(200)
        await town.wait(10)
        assert town.calls("worker") == 200

    in_town(story, hears=False, api=API, worker={**WORKER, "memory_deliveries": 4})


def test_a_worker_looks_again_when_what_filled_its_memory_is_parked() -> None:
    """A claim of somebody's large rows fills it, and most of them are over that tenant's share."""

    async def story(town: Town) -> None:
        await town.tenant("other")
        town.receivers.scripts[A] = answers(200, after=1.0)
        await town.endpoint(A)
        await town.endpoint(B, tenant="other")
        await town.publish(60, size=8 * KIB)
        await town.publish(tenant="other")
        await town.wait(3)
        sent = town.sent["worker"]
        assert sent.at(B)[0].at < sent.at(A)[0].at + 0.5

    worker = {**WORKER, "memory_bytes": 32 * KIB, "slots_first": 2}
    in_town(story, hears=False, stops=False, api=API, worker=worker)
