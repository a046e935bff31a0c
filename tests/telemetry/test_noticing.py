"""What an operator should find tomorrow is in the ledger, also where it was the ledger that went wrong."""

from __future__ import annotations

from surehook.core.errors import LedgerUnavailable
from surehook.noticing import AGAIN_S, Noticing
from tests.delivery.house import House, in_house


def test_what_is_told_while_the_ledger_is_away_is_kept_when_it_is_back() -> None:
    async def story(house: House) -> None:
        noticing = Noticing(house.facts, house.engine, boot=house.clock.boot)

        def away(step: str) -> None:
            if step.startswith("before"):
                raise LedgerUnavailable("away")

        house.faults = away
        house.engine.outage.telemetry = noticing
        await house.wait(30)
        house.faults = lambda step: None
        await house.wait(10)
        assert sorted(await house.notices()) == ["ledger.away", "ledger.back"]

    in_house(story)


def test_of_one_kind_and_code_one_is_kept_in_ten_minutes() -> None:
    async def story(house: House) -> None:
        noticing = Noticing(house.facts, house.engine, boot=house.clock.boot)
        for code in ("overloaded", "overloaded", "disk_full"):
            noticing.fact("refusals.began", code=code)
        noticing.fact("engine.started")
        await house.wait(AGAIN_S)
        assert await house.notices() == ["refusals.began"] * 2
        noticing.fact("refusals.began", code="overloaded")
        await house.wait(1)
        assert await house.notices() == ["refusals.began"] * 3

    in_house(story)
