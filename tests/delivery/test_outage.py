"""A ledger that is away is one thing, however many meet it."""

from __future__ import annotations

from typing import Any

from surehook.core.errors import LedgerUnavailable
from surehook.delivery.outage import QUIET_MS
from tests.delivery.house import House, in_house

QUIET_S = QUIET_MS / 1000


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
        await house.wait(QUIET_S + 2)
        assert [name for name, _ in told.facts] == ["ledger.away", "ledger.back"]
        over = told.facts[1][1]
        assert 58 <= over["lasted_s"] <= 60
        assert over["refused"] == house.engine.outage.refused > 100

        await house.wait(60)
        assert len(told.facts) == 2

    in_house(story)


def test_a_ledger_that_refuses_now_and_then_is_away_once() -> None:
    async def story(house: House) -> None:
        told = house.engine.outage.telemetry = Told()
        for _ in range(20):
            house.engine.outage.met("door", LedgerUnavailable("busy"))
            await house.wait(QUIET_S - 1)
        await house.wait(QUIET_S + 2)
        assert [name for name, _ in told.facts] == ["ledger.away", "ledger.back"]
        assert told.facts[1][1]["refused"] == 20

    in_house(story)


def test_it_is_not_over_before_the_ledger_has_answered() -> None:
    """A database that stands still refuses nothing: calls wait for it."""

    async def story(house: House) -> None:
        told = house.engine.outage.telemetry = Told()
        house.engine.outage.met("door", LedgerUnavailable("no answer in time"))
        house.engine.this_node.heartbeat.beat = lambda: house.wait(30)  # type: ignore[method-assign]
        await house.wait(20)
        assert [name for name, _ in told.facts] == ["ledger.away"]

    in_house(story)


def test_results_that_cannot_be_written_are_an_outage_too() -> None:
    async def story(house: House) -> None:
        told = house.engine.outage.telemetry = Told()

        def unwritten(step: str) -> None:
            if step == "before record":
                raise LedgerUnavailable("no room for results")

        await house.endpoint()
        house.faults = unwritten
        await house.publish()
        await house.wait(5)
        assert told.facts == [("ledger.away", {"asked": "record", "error": "no room for results"})]
        house.faults = lambda step: None
        await house.wait(QUIET_S + 5)
        assert [name for name, _ in told.facts] == ["ledger.away", "ledger.back"]

    in_house(story)
