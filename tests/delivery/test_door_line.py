"""The line of events that wait for their commit: bounds, turns by tenant, and requests that are more than a flush."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from lab.sim.loop import run
from surehook.core import envelope
from surehook.core.envelope import EventIn
from surehook.core.errors import LedgerUnavailable, Overloaded, Problem, TenantOverloaded
from surehook.core.model import Tenant
from surehook.delivery.admission import Admission
from surehook.delivery.fair_batches import LOOK_S, FairBatches
from surehook.delivery.giving_way import GivingWay
from surehook.delivery.settings import EngineSettings
from surehook.delivery.tenant_activity import (
    BUCKETS,
    CALM_BURST,
    CALM_COST,
    COST_S,
    NEAR_S,
    PAUSE_TURNS,
    RETRY_COST,
    TenantActivity,
    pause,
)
from surehook.ports.ledger import Taken
from tests.delivery.house import House, answers, in_house


class Commits:
    """Stands in front of a house's ledger: keeps each transaction of `accept`, and lets it wait while `gate` is closed."""

    def __init__(self, house: House) -> None:
        self.batches: list[list[Any]] = []
        self.quick: list[bool] = []  # of each transaction
        self.begun = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.refuses: Callable[[list[Any]], Exception | None] = lambda batch: None
        self._accept = house.ledger.accept
        house.ledger.accept = self.accept  # type: ignore[method-assign]

    async def accept(self, batch: Any, **named: Any) -> Any:
        self.begun += 1
        refusal = self.refuses(batch)
        if refusal is not None:
            raise refusal
        await self.gate.wait()
        receipt = await self._accept(batch, **named)
        self.batches.append(list(batch))
        self.quick.append(named["is_quick"])
        return receipt

    def tenants(self) -> list[list[str]]:
        return [[item.event.tenant for item in batch] for batch in self.batches]


def event(tenant: str = "acme", n: int = 0) -> EventIn:
    return envelope.decode_event(b'{"tenant":"%b","type":"a","data":%d}' % (tenant.encode(), n))


def publish(house: House, *events: EventIn) -> asyncio.Task[list[Taken | Problem]]:
    return asyncio.get_running_loop().create_task(house.engine.take(events, [None] * len(events)))


async def another_tenant(house: House, name: str) -> None:
    await house.ledger.add_tenant(Tenant(name, name, False, house.clock.now()))
    await house.engine.changed()


def story(
    settings: EngineSettings | None = None,
) -> Callable[[Callable[[House, Commits], Awaitable[None]]], Callable[[], None]]:
    """Make a test of a story in a house whose commits are watched, with another tenant called `other`."""

    def decorate(tell: Callable[[House, Commits], Awaitable[None]]) -> Callable[[], None]:
        async def told(house: House) -> None:
            await another_tenant(house, "other")
            await tell(house, Commits(house))

        def test() -> None:
            in_house(told, settings=settings)

        test.__doc__ = tell.__doc__
        return test

    return decorate


# -- bounds ---------------------------------------------------------------------------------------------


def admission(**bounds: int) -> Admission:
    return Admission(EngineSettings(**bounds))


def test_a_tenant_may_have_three_times_as_much_waiting_as_it_leaves_free() -> None:
    line = admission(waiting_events=100)
    assert all(line.admit("a", 1, 0, 0) is None for _ in range(75))
    assert isinstance(line.admit("a", 1, 0, 0), TenantOverloaded)
    assert line.admit("b", 18, 0, 0) is None
    assert isinstance(line.admit("b", 5, 0, 0), TenantOverloaded)
    assert line.admit("c", 7, 0, 0) is None
    refusal = line.admit("d", 1, 0, 0)
    assert type(refusal) is Overloaded, "the line as a whole"


def test_bytes_count_as_events_do() -> None:
    line = admission(waiting_bytes=1_000)
    assert line.admit("a", 1, 0, 700) is None
    assert isinstance(line.admit("a", 1, 0, 100), TenantOverloaded)
    assert line.admit("b", 1, 0, 200) is None
    assert type(line.admit("c", 1, 0, 200)) is Overloaded


def test_deliveries_bound_a_tenant_alone_and_never_its_first_request() -> None:
    line = admission(waiting_deliveries=1_000)
    assert line.admit("a", 1_000, 2_614_000, 0) is None
    assert isinstance(line.admit("a", 1, 1, 0), TenantOverloaded)
    assert line.admit("b", 1, 900, 0) is None


def test_what_comes_into_an_empty_line_is_taken_and_what_leaves_makes_room() -> None:
    line = admission(waiting_events=2)
    assert line.admit("a", 3, 3, 30) is None
    assert line.admit("b", 1, 1, 10) is not None
    line.leave("a", 2, 2, 20)
    line.leave("a", 1, 1, 10)
    assert (line.events, line.size) == (0, 0)
    assert line.admit("b", 1, 1, 10) is None


@story(EngineSettings(waiting_events=4))
async def test_who_fills_the_line_is_refused_and_others_are_not(house: House, commits: Commits) -> None:
    await house.endpoint()
    commits.gate.clear()
    first = publish(house, event(), event(), event())
    await asyncio.sleep(0)
    with pytest.raises(TenantOverloaded):
        await publish(house, event())
    other = publish(house, event("other"))
    await asyncio.sleep(0)
    commits.gate.set()
    assert len(await first) == 3
    assert len(await other) == 1
    assert house.engine.accept.waiting == 0


@story(EngineSettings(waiting_events=4))
async def test_a_request_of_several_tenants_is_refused_for_one_of_them(
    house: House, commits: Commits
) -> None:
    commits.gate.clear()
    first = publish(house, event(), event(), event())
    await asyncio.sleep(0)
    both = publish(house, event(), event("other"))
    await asyncio.sleep(0)
    commits.gate.set()
    mine, others = await both
    assert isinstance(mine, Problem)
    assert (mine.code, mine.status) == ("tenant_overloaded", 429)
    assert isinstance(others, Taken)
    await first


# -- turns ----------------------------------------------------------------------------------------------


def turns(
    *waits: tuple[str, int], cost: int, items: int = 1_000, others: bool = False, gone: str = ""
) -> list[list[str]]:
    """The batches that come of what waits, in order: who has an item of which cost. Nobody waits for `gone`'s."""

    async def main() -> list[list[str]]:
        batches: list[list[str]] = []

        async def flush(batch: list[str]) -> None:
            batches.append(batch)

        line: FairBatches[str] = FairBatches(
            flush, items=items, cost=cost, turn=64, others=lambda: others, wanted=lambda who: who != gone
        )
        for who, each in waits:
            line.put(who, who, each)
        await line.drained()
        return batches

    return run(main())


def test_a_flush_takes_what_it_may_and_an_item_that_is_more_goes_alone() -> None:
    assert turns(("a", 4), ("a", 4), ("a", 4), ("a", 50), ("a", 1), cost=10) == [
        ["a", "a"], ["a"], ["a"], ["a"],
    ]  # fmt: skip
    assert turns(*[("a", 1)] * 5, cost=10, items=2) == [["a", "a"], ["a", "a"], ["a"]]


def test_a_flush_is_a_quarter_where_others_may_come_meanwhile() -> None:
    sizes = [len(flush) for flush in turns(*[("a", 1)] * 32, cost=1_000, items=16, others=True)]
    assert set(sizes) == {4}
    sizes = [len(flush) for flush in turns(*[("a", 10)] * 32, cost=160, others=True)]
    assert set(sizes) == {4}
    assert len(turns(*[("a", 1)] * 32, cost=1_000, items=16)) == 2


@pytest.mark.parametrize("seed", range(30))
def test_parts_of_an_item_wait_as_items_would(seed: int) -> None:
    """One item of many parts and as many items of one part come to the same flushes."""
    random = Random(seed)
    waits = [
        (random.choice("abc"), random.randint(1, 30), random.randint(1, 40))
        for _ in range(random.randint(1, 12))
    ]
    bounds: dict[str, Any] = {
        "items": random.randint(1, 60), "cost": random.randint(1, 300), "turn": random.randint(1, 64),
        "others": lambda: False,
    }  # fmt: skip

    async def main(is_whole: bool) -> list[list[tuple[int, int]]]:
        flushes: list[list[tuple[int, int]]] = []

        async def flush(batch: list[list[tuple[int, int]]]) -> None:
            flushes.append([part for item in batch for part in item])

        def cut(item: list[tuple[int, int]], count: int) -> list[tuple[int, int]]:
            first, item[:] = item[:count], item[count:]
            return first

        line: FairBatches[list[tuple[int, int]]] = FairBatches(flush, cut=cut, **bounds)
        for number, (who, cost, parts) in enumerate(waits):
            item = [(number, part) for part in range(parts)]
            for each in [item] if is_whole else [[part] for part in item]:
                line.put(who, each, cost, len(each))
        await line.drained()
        return flushes

    assert run(main(True)) == run(main(False))


def test_one_item_waits_for_no_more_than_a_turn_of_each_other_tenant() -> None:
    batches = turns(*[("busy", 10)] * 10_000, ("quiet", 1), cost=100)
    assert "quiet" in batches[0]


def test_what_nobody_waits_for_costs_its_tenant_no_turn() -> None:
    batches = turns(*[("gone", 10)] * 100, *[("b", 10)] * 10, cost=10, gone="gone")
    assert [batch.count("b") for batch in batches] == [1] * 10
    assert batches[0].count("gone") == 100


def test_tenants_share_by_cost_and_not_by_items() -> None:
    batches = turns(*[("dear", 500)] * 20, *[("cheap", 10)] * 1_000, cost=500)
    early = [who for batch in batches[:20] for who in batch]
    assert 4_000 <= early.count("dear") * 500 <= 6_000
    assert 4_000 <= early.count("cheap") * 10 <= 6_000


def test_who_comes_one_at_a_time_pays_for_what_went_before() -> None:
    async def main() -> list[str]:
        order: list[str] = []
        line: FairBatches[str]

        async def flush(batch: list[str]) -> None:
            order.extend(batch)
            if "dear" in batch and order.count("dear") < 3:
                line.put("dear", "dear", 1_000)  # answered, and back at once

        line = FairBatches(flush, items=10, cost=100, turn=64, others=lambda: False)
        line.put("dear", "dear", 1_000)
        for _ in range(500):
            line.put("cheap", "cheap", 10)
        await line.drained()
        return order

    order = run(main())
    second = order.index("dear", 1)
    assert order[:second].count("cheap") >= 90


# -- rests ----------------------------------------------------------------------------------------------


def when(*comes: tuple[float, str, int], rest_s: float = 0.01) -> list[tuple[str, float]]:
    """Who is flushed when, of those who come at some time with something of some cost; `rest_s` for one unit of it."""

    async def main() -> list[tuple[str, float]]:
        loop = asyncio.get_running_loop()
        began, flushed = loop.time(), []

        async def flush(batch: list[str]) -> None:
            flushed.extend([(who, round(loop.time() - began, 3)) for who in batch])

        line: FairBatches[str] = FairBatches(
            flush, items=10, cost=100, turn=64, others=lambda: True, rest=lambda cost: cost * rest_s
        )
        for at, who, cost in comes:
            await asyncio.sleep(began + at - loop.time())
            line.put(who, who, cost)
        await asyncio.sleep(60)
        await line.drained()
        return flushed

    return run(main())


def test_who_brings_much_rests_in_proportion() -> None:
    assert when(*[(0.0, "a", 100)] * 3) == [("a", 0.0), ("a", 1.0), ("a", 2.0)]
    assert when((0.0, "a", 50), (0.0, "a", 200), (0.0, "a", 100)) == [("a", 0.0), ("a", 0.5), ("a", 2.5)]


def test_who_comes_back_at_once_has_not_escaped_the_rest() -> None:
    assert when((0.0, "a", 100), (0.1, "a", 100)) == [("a", 0.0), ("a", 1.0)]
    assert when((0.0, "a", 100), (5.0, "a", 100)) == [("a", 0.0), ("a", 5.0)]


def test_who_has_brought_nothing_of_late_goes_at_once() -> None:
    flushed = when(*[(0.0, "a", 100)] * 3, (0.5, "b", 100), (1.7, "c", 1))
    assert ("b", 0.5) in flushed
    assert ("c", 1.7) in flushed


def test_however_many_are_greedy_all_of_them_together_have_one_share() -> None:
    lone = when(*[(0.0, "a", 100)] * 100)
    crowd = when(*[(0.0, f"t{n}", 100) for n in range(5) for _ in range(20)])
    within = [len([at for _, at in flushed if at <= 30.5]) for flushed in (lone, crowd)]
    assert within[0] == 31
    assert within[1] <= 31 + 5, "each has its first turn at once"


def test_what_is_cut_rests_as_single_items_do() -> None:
    """A run of several that do not fit into one flush: what is left of it waits for the end of the rest."""

    async def main() -> list[tuple[int, float]]:
        loop = asyncio.get_running_loop()
        began, flushed = loop.time(), []

        async def flush(batch: list[list[int]]) -> None:
            flushed.extend([(part, round(loop.time() - began, 3)) for item in batch for part in item])

        def cut(item: list[int], count: int) -> list[int]:
            first, item[:] = item[:count], item[count:]
            return first

        line: FairBatches[list[int]] = FairBatches(
            flush, items=10, cost=100, turn=64, others=lambda: True, rest=lambda cost: cost * 0.01, cut=cut
        )
        line.put("a", [1, 2, 3], 100, 3)
        await asyncio.sleep(10)
        return flushed

    assert run(main()) == [(1, 0.0), (2, 1.0), (3, 2.0)]


def test_nobody_rests_at_the_end() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()

        async def flush(batch: list[str]) -> None:
            pass

        line: FairBatches[str] = FairBatches(
            flush, items=10, cost=100, turn=64, others=lambda: True, rest=lambda cost: 100.0
        )
        for _ in range(10):
            line.put("a", "a", 100)
        await asyncio.sleep(1)
        began = loop.time()
        await line.drained()
        return loop.time() - began

    assert run(main()) == 0


def test_nobody_rests_on_for_those_who_have_gone() -> None:
    """Twenty have brought something large, and each rests for twenty times ten seconds. Then only one comes back."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        gone_at = loop.time() + 3.0
        last = asyncio.Event()

        async def flush(batch: list[str]) -> None:
            if "the last" in batch:
                last.set()

        line: FairBatches[str] = FairBatches(
            flush, items=10, cost=100, turn=64, others=lambda: True,
            rest=lambda cost: 10.0 if loop.time() < gone_at else 0.0,
        )  # fmt: skip
        for number in range(20):
            line.put(str(number), "one of many", 100)
        await asyncio.sleep(2.0)
        line.put("0", "the last", 100)
        await last.wait()
        return loop.time() - gone_at

    assert 0 <= run(main()) <= LOOK_S


def test_company_is_somebody_else_within_the_last_second() -> None:
    activity = TenantActivity(part=16)
    assert not activity.is_near(0.0)
    activity.seen("a", 1, 0.0)
    activity.seen("a", 1, 0.1)
    assert not activity.is_near(0.1), "a lone publisher makes room for nobody"
    activity.seen("b", 1, 0.2)
    assert activity.is_near(0.2)
    activity.seen("b", 1, 1.0)
    assert activity.is_near(1.0)
    activity.seen("b", 1, 1.2)
    assert not activity.is_near(1.2)


def test_who_publishes_more_than_a_pace_rushes_until_it_has_been_calm_for_a_while() -> None:
    activity = TenantActivity(part=16)
    assert activity.seen("a", CALM_BURST, 0.0), "a burst"
    assert not activity.is_rushed(0.0)
    assert not activity.seen("a", 1, 0.0)
    assert activity.is_rushed(0.9)
    assert not activity.is_rushed(1.0)
    assert activity.seen("b", 1, 0.0), "which says nothing about others"
    assert activity.seen("a", CALM_BURST - 1, 1.0)
    paced = [activity.seen("c", CALM_COST // 100, 2.0 + n / 100) for n in range(1_000)]
    assert all(paced)
    faster = [activity.seen("d", CALM_COST // 50, 20.0 + n / 100) for n in range(100)]
    assert faster.index(False) < 20
    assert not any(faster[20:])


def test_whoever_rushed_and_however_much_is_calm_a_second_later() -> None:
    activity = TenantActivity(part=16)
    activity.seen("a", 1_000_000, 0.0)
    assert activity.seen("a", 1, NEAR_S)


def test_who_has_very_much_tried_again_rushes_without_publishing() -> None:
    activity = TenantActivity(part=16)
    activity.tried_again("a", CALM_BURST // RETRY_COST, 0.0)
    assert not activity.is_rushed(0.0)
    activity.tried_again("a", 1, 0.0)
    assert activity.is_rushed(0.0)
    activity.seen("b", 1, 0.0)
    assert not activity.is_near(0.0), "what is large makes room for who publishes"
    assert not activity.seen("a", 1, 0.0)


def test_tenants_that_were_here_once_are_forgotten() -> None:
    activity = TenantActivity(part=16)
    for n in range(10_000):
        activity.seen(str(n), 1, n / 1_000)
    assert len(activity._buckets) <= BUCKETS + 2


def test_large_events_have_a_part_of_the_time_and_few_publishes_wait_for_long() -> None:
    """A publish that comes while a large event is written waits for the rest of it."""

    async def rests(cost: int) -> float:
        activity, now = TenantActivity(part=8), asyncio.get_running_loop().time()
        assert activity.rest(cost) == 0
        activity.seen("a", 1, now)
        activity.seen("b", 1, now)
        return activity.rest(cost)

    for cost in (1_000, 2_614, 5_000, 10_000):
        takes = cost * COST_S
        period = takes + run(rests(cost))
        assert takes / period <= 1 / 8
        assert max(0.0, takes - 0.010) / period <= 1 / 40


@pytest.mark.parametrize(
    ("waited_for", "is_large", "turns"), [(0, False, 1), (1, False, 1), (0, True, 1), (1, True, PAUSE_TURNS)]
)
def test_who_waits_has_several_turns_in_the_middle_of_something_large(
    waited_for: int, is_large: bool, turns: int
) -> None:
    async def main() -> int:
        dispatch: Any = SimpleNamespace(waited_for=waited_for, way=GivingWay(lambda: None))
        paused = asyncio.ensure_future(pause(dispatch, is_large=is_large))
        passed = -2  # the steps in which it begins and ends
        while not paused.done():
            passed += 1
            await asyncio.sleep(0)
        return passed

    assert asyncio.run(main()) == turns - 1


@story(EngineSettings(accept_cost=4, large_cost=4, large_part=10_000))
async def test_large_events_rest_while_others_publish_and_only_then(house: House, commits: Commits) -> None:
    for n in range(9):
        await house.endpoint(f"https://r{n}.example/hook")
    await publish(house, event(n=1), event(n=2), event(n=3))
    assert len(commits.batches) == 3, "nobody else is there: three in a row"
    await publish(house, event("other"))
    asked = publish(house, event(n=4), event(n=5))
    await house.wait(0.1)
    assert len(commits.batches) == 5, (
        "the second one rests for a second: ten rows at a ten-thousandth of the time"
    )
    await publish(house, event("other"))
    assert len(commits.batches) == 6, "which keeps nobody else"
    await house.wait(1.0)
    assert len(await asked) == 2


@story(EngineSettings(accept_rows=16))
async def test_a_publish_shares_the_next_transaction_with_a_tenant_that_has_hundreds(
    house: House, commits: Commits
) -> None:
    await house.endpoint()
    commits.gate.clear()
    many = publish(house, *[event(n=n) for n in range(300)])
    await house.wait(1)
    one = publish(house, event("other"))
    await house.wait(1)
    commits.gate.set()
    await asyncio.gather(one, many)
    assert len(commits.batches) == 76
    assert [n for n, tenants in enumerate(commits.tenants()) if "other" in tenants] == [1]


@story(EngineSettings(accept_rows=16))
async def test_a_calm_tenant_waits_for_no_flush_of_one_that_rushes(house: House, commits: Commits) -> None:
    await house.endpoint()
    commits.gate.clear()
    many = publish(house, *[event(n=n) for n in range(300)])
    await house.wait(0.5)
    assert commits.begun == 1
    one = publish(house, event("other"))
    await house.wait(0.5)
    assert commits.begun == 2, "it has a writer of its own"
    commits.gate.set()
    await asyncio.gather(one, many)
    assert [tenants for tenants in commits.tenants() if "other" in tenants] == [["other"]]
    assert commits.quick == [tenants == ["other"] for tenants in commits.tenants()]


@pytest.mark.parametrize(("wait_s", "is_quick"), [(0.01, True), (10.0, False)])
def test_a_calm_tenant_goes_before_one_whose_few_events_are_tried_again_and_again(
    wait_s: float, is_quick: bool
) -> None:
    @story()
    async def told(house: House, commits: Commits) -> None:
        policy = {"schedule": {"fixed": [wait_s] * 100}, "jitter": None, "breaker": None}
        for number in range(20):
            url = f"https://a{number}.example/hook"
            house.receivers.scripts[url] = answers(500, after=0.001)
            await house.endpoint(url, policy=policy)
        await house.publish(5)
        await house.wait(1)
        await house.publish(1, tenant="other")
        assert commits.quick[-1] is is_quick

    told()


@story(EngineSettings(accept_rows=16, turn_cost=8))
async def test_who_is_calm_and_has_much_waiting_takes_turns(house: House, commits: Commits) -> None:
    """What goes beside a line takes from its time, so it is bounded."""
    await house.endpoint()
    commits.gate.clear()
    asked = [publish(house, *[event(n=n) for n in range(300)])]
    await house.wait(0.5)
    asked += [publish(house, event("other")) for _ in range(20)]
    await house.wait(0.1)
    commits.gate.set()
    await asyncio.gather(*asked)
    counts = [
        (is_quick, tenants.count("other"))
        for is_quick, tenants in zip(commits.quick, commits.tenants(), strict=True)
    ]
    assert 0 < sum(count for is_quick, count in counts if is_quick) <= 8
    assert sum(count for _, count in counts) == 20


@story(EngineSettings(accept_rows=64))
async def test_where_nobody_rushes_all_share_a_transaction(house: House, commits: Commits) -> None:
    await house.endpoint()
    commits.gate.clear()
    asked = [publish(house, event(who)) for who in ("acme", "other", "acme", "other", "acme")]
    await house.wait(0.1)
    commits.gate.set()
    await asyncio.gather(*asked)
    assert [len(tenants) for tenants in commits.tenants()] == [1, 4]
    assert not any(commits.quick)


@story(EngineSettings(accept_rows=16))
async def test_only_who_is_calm_keeps_turns_of_the_loop_short(house: House, commits: Commits) -> None:
    """Else several tenants at full speed would all send in short turns, and each delivery would cost more."""
    await house.endpoint()
    dispatch = house.engine.dispatch
    commits.gate.clear()
    many = publish(house, *[event(n=n) for n in range(300)])
    await house.wait(0.1)
    assert dispatch.waited_for == 0
    one = publish(house, event("other"))
    await house.wait(0.1)
    assert dispatch.waited_for == 1
    commits.gate.set()
    await asyncio.gather(one, many)
    assert dispatch.waited_for == 0


# -- more than a flush ----------------------------------------------------------------------------------


@story(EngineSettings(accept_cost=48))
async def test_a_large_request_is_several_transactions_and_one_answer(house: House, commits: Commits) -> None:
    for n in range(5):
        await house.endpoint(f"https://r{n}.example/hook")
    answers = await publish(house, *[event(n=n) for n in range(7)])
    assert [len(batch) for batch in commits.batches] == [2, 2, 2, 1]
    assert all(len(item.deliveries) == 5 for batch in commits.batches for item in batch)
    assert [isinstance(answer, Taken) and answer.fan_out for answer in answers] == [5] * 7
    await house.wait(5)
    assert await house.states() == {"delivered": 35}


@story(EngineSettings(accept_cost=48))
async def test_it_is_not_answered_before_its_last_part(house: House, commits: Commits) -> None:
    for n in range(5):
        await house.endpoint(f"https://r{n}.example/hook")
    commits.refuses = lambda batch: commits.gate.clear() if commits.begun == 4 else None  # type: ignore[func-returns-value]
    asked = publish(house, *[event(n=n) for n in range(7)])
    await house.wait(5)
    assert len(commits.batches) == 3
    assert not asked.done()
    commits.gate.set()
    assert len(await asked) == 7


@story(EngineSettings(accept_cost=48))
async def test_a_part_that_fails_is_said_of_its_events_and_ends_the_request(
    house: House, commits: Commits
) -> None:
    for n in range(5):
        await house.endpoint(f"https://r{n}.example/hook")
    commits.refuses = lambda batch: LedgerUnavailable("away") if commits.begun == 2 else None
    answers = await publish(house, *[event(n=n) for n in range(7)])
    assert [isinstance(answer, Taken) for answer in answers] == [True, True, *[False] * 5]
    problems = [answer for answer in answers if isinstance(answer, Problem)]
    assert {(problem.code, problem.status) for problem in problems} == {("ledger_unavailable", 503)}
    assert commits.begun == 2, "what is left is not begun"
    assert house.engine.accept.waiting == 0


@story(EngineSettings(accept_rows=8))
async def test_what_nobody_waits_for_any_more_is_not_begun(house: House, commits: Commits) -> None:
    await house.endpoint()
    commits.gate.clear()
    asked = publish(house, *[event(n=n) for n in range(7)])
    await house.wait(1)
    asked.cancel()
    commits.gate.set()
    await house.wait(1)
    assert commits.begun == 1
    assert house.engine.accept.waiting == 0
    assert len(house.receivers.calls) == 2


def test_a_shutdown_does_not_wait_for_all_of_a_large_request() -> None:
    async def tell(house: House) -> None:
        await house.endpoint()
        accept = house.ledger.accept

        async def slowly(batch: Any, **named: Any) -> Any:
            await asyncio.sleep(0.5)
            return await accept(batch, **named)

        house.ledger.accept = slowly  # type: ignore[method-assign]
        asked = publish(house, *[event(n=n) for n in range(200)])
        await house.wait(1)
        began = asyncio.get_running_loop().time()
        await house.engine.stop()
        assert asyncio.get_running_loop().time() - began < 5
        answers = await asked
        refused = [answer for answer in answers if isinstance(answer, Problem)]
        assert {problem.code for problem in refused} == {"overloaded"}
        assert 0 < len(refused) < 200
        assert house.facts.names.count("engine.stop_failed") == 0

    in_house(tell, settings=EngineSettings(accept_rows=2), stops=False)


@story(EngineSettings(accept_rows=24))
async def test_answers_keep_their_places_whatever_stands_beside_them(house: House, commits: Commits) -> None:
    """Events of two tenants and of several sizes and fan-outs, in one request."""
    await house.endpoint()
    await house.endpoint("https://b.example/hook", types=("big.*",))
    names = [("acme", "other")[n % 5 == 3] for n in range(60)]
    raws = [
        b'{"tenant":"%b","type":"%b","data":"%b"}'
        % (name.encode(), b"big.one" if n % 7 == 0 else b"small", b"x" * (n * 997 % 5_000))
        for n, name in enumerate(names)
    ]
    answers = await publish(house, *[envelope.decode_event(raw) for raw in raws])
    written = {item.event.id: item.event for batch in commits.batches for item in batch}
    for n, (raw, answer) in enumerate(zip(raws, answers, strict=True)):
        assert isinstance(answer, Taken)
        event = written[answer.event]
        assert event.tenant == names[n]
        assert envelope.split_data(event.body) == json.loads(raw)["data"].join('""').encode()
        assert answer.fan_out == event.fan_out == (0 if names[n] == "other" else 1 + (n % 7 == 0))
    assert max(map(len, commits.batches)) <= 6
    await house.wait(5)


@story(EngineSettings(slice_rows=4))
async def test_an_endpoint_that_is_paused_between_two_slices_is_parked_for(
    house: House, commits: Commits
) -> None:
    """What events have in common holds for one slice of making them, and no longer."""
    endpoint = await house.endpoint()
    route = house.route(endpoint)
    asked = publish(house, *[event(n=n) for n in range(60)])
    while not route.held:
        await house.wait(0)
    route.status = "paused"
    await asked
    (batch,) = commits.batches
    born = [delivery.parked for item in batch for delivery in item.deliveries]
    assert born == [None] * born.count(None) + ["paused"] * born.count("paused")
    assert 0 < born.count(None) < 60
    route.status = "active"
    await house.wait(30)


@story(EngineSettings(large_cost=4))
async def test_an_event_with_a_large_fan_out_has_a_writer_of_its_own(house: House, commits: Commits) -> None:
    for n in range(9):
        await house.endpoint(f"https://r{n}.example/hook")
    slow, accept = asyncio.Event(), house.ledger.accept

    async def slowly(batch: Any, **named: Any) -> Any:
        if len(batch[0].deliveries) == 9:
            await slow.wait()
        return await accept(batch, **named)

    house.ledger.accept = slowly  # type: ignore[method-assign]
    large = publish(house, event())
    await house.wait(1)
    await publish(house, event("other"))
    assert not large.done()
    slow.set()
    await large
    await house.wait(1)
    assert len(house.receivers.calls) == 9


@story(EngineSettings(slice_rows=3))
async def test_the_loop_goes_on_between_slices(house: House, commits: Commits) -> None:
    for n in range(30):
        await house.endpoint(f"https://r{n}.example/hook")
    turns_of_the_loop = 0

    async def watch() -> None:
        nonlocal turns_of_the_loop
        while not asked.done():
            turns_of_the_loop += 1
            await asyncio.sleep(0)

    asked = publish(house, event())
    await watch()
    assert turns_of_the_loop >= 10
    await house.wait(5)
    assert len(house.receivers.calls) == 30
