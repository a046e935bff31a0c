"""What an operator should find tomorrow is in the ledger, also where it was the ledger that went wrong."""

from __future__ import annotations

from surehook.core.errors import LedgerUnavailable
from surehook.noticing import AGAIN_S, Noticing
from surehook.ports.reading import NoticeFilter
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


def test_of_one_kind_and_code_one_beginning_is_kept_in_ten_minutes_with_its_end() -> None:
    async def story(house: House) -> None:
        noticing = Noticing(house.facts, house.engine, boot=house.clock.boot)
        for code in ("overloaded", "disk_full", "overloaded"):
            noticing.fact("refusals.began", code=code)
            await house.wait(1)
            noticing.fact("refusals.ended", code=code)
            await house.wait(1)
        noticing.fact("engine.started")
        await house.wait(AGAIN_S)
        assert await house.notices() == ["refusals.ended", "refusals.began"] * 2
        noticing.fact("refusals.began", code="overloaded")
        await house.wait(1)
        assert (await house.notices())[0] == "refusals.began"

    in_house(story)


def test_an_end_is_kept_wherever_its_beginning_was() -> None:
    """The second of two ends in ten minutes was not kept: the notices said for ever that the ledger was away."""

    async def story(house: House) -> None:
        noticing = Noticing(house.facts, house.engine, boot=house.clock.boot)
        for wait_s, name in (
            (0, "ledger.away"),
            (540, "ledger.back"),
            (61, "ledger.away"),
            (99, "ledger.back"),
        ):
            await house.wait(wait_s)
            noticing.fact(name)
        await house.wait(1)
        assert await house.notices() == ["ledger.back", "ledger.away"] * 2

    in_house(story)


def test_a_beginning_soon_after_another_is_kept_if_it_goes_on() -> None:
    async def story(house: House) -> None:
        noticing = Noticing(house.facts, house.engine, boot=house.clock.boot)
        for _ in range(3):
            noticing.fact("disk.floor_reached")
            await house.wait(10)
            noticing.fact("disk.floor_left")
        noticing.fact("disk.floor_reached")
        at = house.clock.now()
        await house.wait(60)
        assert await house.notices() == ["disk.floor_left", "disk.floor_reached"]
        await house.wait(AGAIN_S)
        assert (await house.notices())[0] == "disk.floor_reached"
        page = await house.ledger.notices(NoticeFilter(), limit=1, after=None)
        assert page.data[0].at == at, "when it began"
        noticing.fact("disk.floor_left")
        await house.wait(1)
        assert await house.notices() == ["disk.floor_left", "disk.floor_reached"] * 2

    in_house(story)
