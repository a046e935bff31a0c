"""A lane's slots are divided among tenants: whoever has nothing under way begins at once, however the others hold theirs."""

from __future__ import annotations

import pytest

from surehook.core.model import FIRST, RETRY
from surehook.delivery.settings import EngineSettings
from surehook.delivery.slots import FEW, LaneState, beyond

from .house import HANGS, House, answers, in_house

PATIENT = {"profile": "standard", "timeouts": {"first": 60, "retry": 60}, "breaker": None}
HEALTHY = "https://healthy.example/hook"
SLOW_S = 50.0


def takes_all(lane: LaneState, tenant: str) -> int:
    """How many slots a tenant gets that wants all."""
    count = 0
    while lane.has_part(tenant):
        lane.take_slot(tenant)
        count += 1
    return count


def together(lane: LaneState, tenants: list[str]) -> None:
    """All of them fill the lane at one instant, in turns."""
    while takers := [name for name in tenants if lane.has_part(name)]:
        for name in takers:
            if lane.has_part(name):
                lane.take_slot(name)


def greedy(count: int) -> list[str]:
    return [f"greedy{number}" for number in range(count)]


# -- the rule ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 20, 50])
def test_however_many_fill_a_lane_at_once_an_eighth_is_left(count: int) -> None:
    lane = LaneState(512)
    together(lane, greedy(count))
    assert abs(lane.slots - lane.busy - 64) <= count / 2, "whole slots"
    used = lane.tenants_busy.values()
    assert max(used) - min(used) <= 1
    assert takes_all(lane, "late") >= min(FEW, 448 // count)


@pytest.mark.parametrize("count", [1, 4, 20, 100])
def test_who_comes_after_tenants_that_came_one_by_one_still_begins_at_once(count: int) -> None:
    lane = LaneState(512)
    got = [takes_all(lane, name) for name in greedy(count)]
    assert min(got) >= 1, "each of them was the last to come"
    assert takes_all(lane, "late") >= 1
    assert lane.busy <= lane.slots + beyond(lane.slots)


def test_after_twenty_tenants_there_are_still_several_for_the_next() -> None:
    lane = LaneState(512)
    for name in greedy(20):
        takes_all(lane, name)
    assert takes_all(lane, "late") >= 4


def test_a_slot_that_becomes_free_goes_to_who_has_few() -> None:
    lane = LaneState(512)
    for name in greedy(20):
        takes_all(lane, name)
    few = takes_all(lane, "late")
    most = max(lane.tenants_busy, key=lane.tenants_busy.__getitem__)
    while not lane.has_part("late"):
        lane.give_slot(most)
        assert lane.has_part("late") or not lane.has_part(most)
    assert lane.tenants_busy["late"] == few


def test_a_lane_that_this_node_does_not_deliver_has_no_slots() -> None:
    assert not LaneState(0).has_part("a")


# -- in an engine -----------------------------------------------------------------------------------------


async def hold(house: House, tenants: int, *, endpoints: int, events: int) -> None:
    """Tenants, one after another, whose receivers take nearly all of the time there is."""
    for name in greedy(tenants):
        await house.tenant(name)
        for number in range(endpoints):
            url = f"https://{name}-{number}.example/hook"
            house.receivers.scripts[url] = answers(200, after=SLOW_S)
            await house.endpoint(url, policy=PATIENT, tenant=name)
    for name in greedy(tenants):
        await house.publish(events, tenant=name)
        await house.wait(0.2)


@pytest.mark.parametrize(("tenants", "endpoints"), [(1, 40), (4, 16), (20, 8)])
def test_receivers_that_use_all_of_their_time_hold_up_no_other_tenant(tenants: int, endpoints: int) -> None:
    async def story(house: House) -> None:
        await hold(house, tenants, endpoints=endpoints, events=40)
        await house.endpoint(HEALTHY, policy=PATIENT)
        lane = house.engine.dispatch.lanes[RETRY]
        assert lane.busy >= 448
        for number in range(1, 51):
            await house.publish()
            await house.wait(0.1)
            assert len(house.receivers.at(HEALTHY)) == number
        assert lane.busy <= lane.slots + beyond(lane.slots)

    in_house(story, stops=False)


def test_a_tenants_retries_begin_although_the_lane_is_full() -> None:
    """What is claimed finds a slot as what was just published does."""
    policy = {**PATIENT, "schedule": {"fixed": [5.0]}, "jitter": None}

    async def story(house: House) -> None:
        await house.endpoint(HEALTHY, policy=policy)
        house.receivers.scripts[HEALTHY] = answers(503)
        await house.publish(3)
        await house.wait(0.1)
        house.receivers.scripts[HEALTHY] = answers(200)
        await hold(house, 10, endpoints=8, events=40)
        await house.wait(4)
        assert len(house.receivers.at(HEALTHY)) == 6

    in_house(story, stops=False)


def test_a_suspect_of_a_tenant_with_little_under_way_begins_beside_the_suspects_of_others() -> None:
    """One timeout makes a suspect; the suspects' half of the lane may be somebody else's for as long as theirs last."""

    async def story(house: House) -> None:
        await house.tenant("hangs")
        for number in range(60):
            url = f"https://hangs{number}.example/hook"
            house.receivers.scripts[url] = HANGS
            await house.endpoint(url, tenant="hangs", policy=PATIENT)
        healthy = await house.endpoint(HEALTHY, policy=PATIENT)
        for route in house.engine.directory.routes.values():
            route.suspect = True
        lane = house.engine.dispatch.lanes[RETRY]
        await house.publish(1, tenant="hangs")
        await house.wait(0.1)
        assert lane.suspects_busy == 16
        house.receivers.scripts[HEALTHY] = answers(503, after=0.2)
        await house.publish(2 * FEW)
        await house.wait(0.1)
        assert 1 <= len(house.receivers.at(HEALTHY)) <= FEW
        for _ in range(2 * FEW):  # who could not begin stands with the suspects, and is called as its own end
            house.route(healthy).suspect = True
            await house.wait(0.25)
        assert len(house.receivers.at(HEALTHY)) == 2 * FEW

    in_house(story, settings=EngineSettings(slots_retry=32), stops=False)


def test_however_many_tenants_have_a_receiver_that_hangs_a_retry_of_another_begins() -> None:
    """Each of them was owed a first request, and together they took all that the lane has beyond its slots."""

    async def story(house: House) -> None:
        waits_once = {
            "profile": "standard",
            "schedule": {"fixed": [1, 1, 1, 1]},
            "jitter": None,
            "breaker": None,
        }
        for n in range(40):
            url = f"https://t{n}.example/hook"
            house.receivers.scripts[url] = HANGS
            await house.tenant(f"t{n}")
            await house.endpoint(url, policy=waits_once, tenant=f"t{n}")
            await house.publish(tenant=f"t{n}")
        await house.wait(10)
        lane = house.engine.dispatch.lanes[RETRY]
        assert lane.suspects_busy == lane.owed_suspects_most == 6
        house.receivers.scripts[HEALTHY] = answers(500)
        await house.endpoint(HEALTHY, policy=waits_once)
        await house.publish()
        await house.wait(0.5)
        house.receivers.scripts[HEALTHY] = answers(200)
        await house.wait(1)
        assert len(house.receivers.at(HEALTHY)) == 2

    in_house(story, settings=EngineSettings(slots_first=64, slots_retry=8), stops=False)


@pytest.mark.parametrize(("tenants", "events"), [(8, 10), (6, 20), (40, 4)])
def test_a_receiver_that_was_late_once_is_called_again_beside_many_that_hang(
    tenants: int, events: int
) -> None:
    """Its tenant is owed a place as they are: whoever has just had one rejoined first, and it waited for ever."""

    async def story(house: House) -> None:
        once = {"profile": "standard", "schedule": {"fixed": [1] * 40}, "jitter": None, "breaker": None}
        for n in range(tenants):
            url = f"https://t{n}.example/hook"
            house.receivers.scripts[url] = HANGS
            await house.tenant(f"t{n}")
            await house.endpoint(url, policy=once, tenant=f"t{n}")
            await house.publish(events, tenant=f"t{n}")
        await house.wait(20)
        house.receivers.scripts[HEALTHY] = HANGS
        await house.endpoint(HEALTHY, policy=once)
        await house.publish()
        await house.wait(3)
        house.receivers.scripts[HEALTHY] = answers(200)
        await house.wait(120)
        assert (await house.deliveries(tenant="acme"))[0].state == "delivered"

    in_house(story, settings=EngineSettings(slots_first=64, slots_retry=8), stops=False)


def test_where_nobody_may_begin_an_answer_costs_no_look_at_each_tenant() -> None:
    """Each was set aside and brought back with every answer: 10 ms of it with 20,000 tenants in line."""

    async def story(house: House) -> None:
        house.receivers.scripts = {f"https://t{n}.example/hook": HANGS for n in range(30)}
        for n in range(30):
            await house.tenant(f"t{n}")
            await house.endpoint(f"https://t{n}.example/hook", policy=PATIENT, tenant=f"t{n}")
        for n in range(30):
            await house.publish(2, tenant=f"t{n}")
        await house.wait(1)
        lane = house.engine.dispatch.lanes[RETRY]  # theirs, who may take so long
        assert lane.busy == lane.most
        house.engine.pump.pump()
        assert len(lane.ring.tenants) > 20 and len(lane.ring.aside) <= 1

    in_house(story, settings=EngineSettings(slots_first=8, slots_retry=8), stops=False)


def test_a_lone_tenant_has_the_lane_and_nothing_beyond() -> None:
    async def story(house: House) -> None:
        for number in range(60):
            url = f"https://a{number}.example/hook"
            house.receivers.scripts[url] = answers(200, after=1.0)
            await house.endpoint(url)
        await house.publish(1)
        await house.wait(0.3)
        assert house.engine.dispatch.lanes[FIRST].busy == 32

    in_house(story, settings=EngineSettings(slots_first=32))
