"""A ledger that is away is one thing, however many meet it."""

from __future__ import annotations

import asyncio
from typing import Any

from surehook.core.errors import LedgerUnavailable
from surehook.delivery.outage import BACK_MS, QUIET_MS, Outage
from tests.api.house import HandClock
from tests.delivery.house import House, in_house

BACK_S = BACK_MS / 1000


class Told:
    def __init__(self) -> None:
        self.facts: list[tuple[str, dict[str, Any]]] = []

    def fact(self, name: str, **fields: Any) -> None:
        self.facts.append((name, fields))


def away(step: str) -> None:
    if step.startswith("before"):
        raise LedgerUnavailable("gone")


def test_an_outage_is_told_when_it_begins_and_when_it_is_over_with_what_it_refused() -> None:
    async def story(house: House) -> None:
        told = house.engine.outage.telemetry = Told()
        await house.wait(5)
        house.faults = away
        await house.wait(60)
        assert [name for name, _ in told.facts] == ["ledger.away"]
        assert told.facts[0][1]["error"] == "gone" and told.facts[0][1]["asked"]

        house.faults = lambda step: None
        await house.wait(BACK_S + 2)
        assert [name for name, _ in told.facts] == ["ledger.away", "ledger.back"]
        over = told.facts[1][1]
        assert 60 <= over["lasted_s"] <= 62
        assert over["refused"] == house.engine.outage.refused > 100

        await house.wait(60)
        assert len(told.facts) == 2

    in_house(story)


def test_a_ledger_that_comes_and_goes_is_away_once() -> None:
    async def story(house: House) -> None:
        told = house.engine.outage.telemetry = Told()
        for _ in range(5):
            house.faults = away
            await house.wait(10)
            house.faults = lambda step: None
            await house.wait(BACK_S - 1)
        await house.wait(BACK_S + 5)
        assert [name for name, _ in told.facts] == ["ledger.away", "ledger.back"]
        assert 55 <= told.facts[1][1]["lasted_s"] <= 60

    in_house(story)


def test_calls_that_are_refused_while_beats_go_on_do_not_make_it_away_and_are_told_by_themselves() -> None:
    """A list that a dashboard asked for every two seconds, over a locked table, was an outage for as long as it went on."""

    async def story(house: House) -> None:
        told = house.engine.outage.telemetry = Told()
        for _ in range(1_800):
            house.engine.outage.met("door", LedgerUnavailable("lock timeout"))
            await house.wait(2)
        assert told.facts == [("ledger.refusals_began", {"asked": "door", "error": "lock timeout"})]

        await house.wait(QUIET_MS / 1000 + 2)
        ((name, over),) = told.facts[1:]
        assert (name, over["refused"], round(over["lasted_s"])) == ("ledger.refusals_ended", 1_800, 3_598)
        assert house.engine.outage.refused == 1_800

    in_house(story)


def test_an_outage_among_calls_that_are_refused_anyway_is_told_with_its_own_length() -> None:
    async def story(house: House) -> None:
        told = house.engine.outage.telemetry = Told()

        async def dashboard() -> None:
            while True:
                house.engine.outage.met("door", LedgerUnavailable("lock timeout"))
                await house.wait(2)

        asked = asyncio.create_task(dashboard())
        await house.wait(600)
        house.faults = away
        await house.wait(60)
        house.faults = lambda step: None
        await house.wait(600)
        asked.cancel()
        assert [name for name, _ in told.facts] == ["ledger.refusals_began", "ledger.away", "ledger.back"]
        assert 60 <= told.facts[2][1]["lasted_s"] <= 62

    in_house(story)


def test_an_outage_is_as_long_as_no_beat_was_committed_however_seldom_a_call_was_refused() -> None:
    """A database that stands still keeps calls waiting: the first and the last that it refused were two seconds apart."""

    async def story(house: House) -> None:
        told = house.engine.outage.telemetry = Told()
        heartbeat = house.engine.heartbeat
        beat, since = heartbeat.beat, house.clock.boot() + 5

        async def stands_still() -> None:
            if 0 <= house.clock.boot() - since < 12:
                await house.wait(5)
                raise LedgerUnavailable("no answer in time")
            await beat()

        heartbeat.beat = stands_still  # type: ignore[method-assign]
        await house.wait(14)
        assert [name for name, _ in told.facts] == []
        house.engine.outage.met("door", LedgerUnavailable("no answer in time"))
        assert [name for name, _ in told.facts] == ["ledger.away"]
        await house.wait(20)
        assert [name for name, _ in told.facts] == ["ledger.away", "ledger.back"]
        assert 12 <= told.facts[1][1]["lasted_s"] <= 15

    in_house(story)


def test_a_process_that_stood_still_does_not_say_that_the_ledger_was_away() -> None:
    """What was under way is refused when it wakes up, and the next beat is committed."""
    clock, told = HandClock(), Told()
    outage = Outage(clock=clock, telemetry=told)
    outage.answered()
    clock.at += 20_000
    for _ in range(3):
        outage.met("door", LedgerUnavailable("no answer in time"))
        clock.at += 10
    outage.answered()
    assert told.facts == [("ledger.refusals_began", {"asked": "door", "error": "no answer in time"})]


def test_a_short_loss_of_connections_is_no_outage() -> None:
    async def story(house: House) -> None:
        told = house.engine.outage.telemetry = Told()
        await house.wait(5)
        house.faults = away
        await house.wait(1)
        house.faults = lambda step: None
        await house.wait(10)
        assert [name for name, _ in told.facts] == ["ledger.refusals_began"]

    in_house(story)


def test_it_is_not_over_before_the_ledger_has_answered() -> None:
    async def story(house: House) -> None:
        told = house.engine.outage.telemetry = Told()
        house.faults = away
        await house.wait(10)
        house.engine.heartbeat.beat = lambda: house.wait(30)  # type: ignore[method-assign]
        house.faults = lambda step: None
        await house.wait(20)
        assert [name for name, _ in told.facts] == ["ledger.away"]

    in_house(story)


def test_results_that_cannot_be_written_are_told_too() -> None:
    async def story(house: House) -> None:
        told = house.engine.outage.telemetry = Told()

        def unwritten(step: str) -> None:
            if step == "before record":
                raise LedgerUnavailable("no room for results")

        await house.endpoint()
        house.faults = unwritten
        await house.publish()
        await house.wait(5)
        assert told.facts == [("ledger.refusals_began", {"asked": "record", "error": "no room for results"})]
        house.faults = lambda step: None
        await house.wait(QUIET_MS / 1000 + 5)
        assert [name for name, _ in told.facts] == ["ledger.refusals_began", "ledger.refusals_ended"]

    in_house(story)
