"""Rows of a lease whose answer was lost come back soon (that nothing else does is the simulation's to show)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from surehook.core.errors import CommitUnknown, LedgerUnavailable
from surehook.delivery import lease_reconciler
from tests.delivery.house import House
from tests.delivery.nodes import ALL, API, FIRST_ONLY, Town, in_town

A = "https://a.example/hook"
SOON_S = 1.0  # from the lost answer to the last request


class Cut:
    """The answer of the next claim is lost; with `away`, every call after it fails."""

    def __init__(self, house: House, *, away: bool = False) -> None:
        self.at: float | None = None
        self._away = away
        house.faults = self

    def __call__(self, step: str) -> None:
        if step == "after claim" and self.at is None:
            self.at = asyncio.get_running_loop().time()
            raise CommitUnknown("cut")
        if self._away and self.at is not None and step.startswith("before"):
            raise LedgerUnavailable("away")


def test_rows_of_a_claim_whose_answer_was_lost_are_sent_within_a_second() -> None:
    async def story(town: Town) -> None:
        await town.endpoint()
        await town.wait(0.5)
        await town.publish(20)
        cut = Cut(town)
        await town.wait(0.6)  # a poll
        assert cut.at is not None and town.calls("worker") == 0
        await asyncio.sleep(cut.at + SOON_S - asyncio.get_running_loop().time())
        assert town.calls("worker") == 20
        assert await town.states() == {"delivered": 20}
        assert town.engines["worker"].reconciler.released == 20

    in_town(story, hears=False, api=API, worker=FIRST_ONLY)


def test_many_lost_rows_come_back_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One statement for a hundred thousand would outlast the ledger's patience, each time anew."""

    async def story(town: Town) -> None:
        monkeypatch.setattr(lease_reconciler, "FREED_ROWS", 8)
        await town.endpoint()
        await town.wait(0.5)
        await town.publish(20)
        free, freed = town.ledger.free, []

        async def count(ids: Sequence[bytes], **named: Any) -> None:
            freed.append(len(ids))
            await free(ids, **named)

        town.ledger.free = count  # type: ignore[method-assign]
        Cut(town)
        await town.wait(3)
        assert freed == [8, 8, 4]
        assert await town.states() == {"delivered": 20}
        assert town.engines["worker"].reconciler.released == 20

    in_town(story, hears=False, api=API, worker=FIRST_ONLY)


def test_rows_of_a_lost_claim_come_back_when_the_ledger_does() -> None:
    async def story(town: Town) -> None:
        await town.endpoint()
        await town.wait(0.5)
        await town.publish(20)
        cut = Cut(town, away=True)
        await town.wait(4)
        assert cut.at is not None and town.calls("worker") == 0
        town.faults = lambda step: None
        await town.wait(SOON_S + 2)  # a node that could not beat sends and claims after its next beat
        assert town.calls("worker") == 20

    in_town(story, hears=False, api=API, worker=FIRST_ONLY)


def test_rows_of_an_accept_that_nobody_answered_for_are_sent_within_a_second() -> None:
    async def story(town: Town) -> None:
        await town.endpoint()
        gone = [False]

        def fall(step: str) -> None:
            if gone[0] and step == "before accept":
                gone[0] = False
                raise LedgerUnavailable("away")
            if step == "after accept" and not gone[0]:
                gone[0] = True
                raise CommitUnknown("cut")

        town.faults = fall
        with pytest.raises(LedgerUnavailable):
            await town.publish()
        town.faults = lambda step: None
        await town.wait(SOON_S)
        assert town.calls("one") == 1

    in_town(story, one=ALL)


def test_rows_that_could_not_be_handed_back_come_back() -> None:
    async def story(town: Town) -> None:
        endpoint = await town.endpoint(A)
        await town.wait(1)
        worker = town.engines["worker"]
        await town.publish(5)
        rows = await town.ledger.claim(0, node=worker.node.id, limit=5, due_by=town.clock.now(), now=0)
        assert len(rows) == 5 and all(row.endpoint == endpoint for row in rows)

        def away(step: str) -> None:
            if step == "before release":
                raise LedgerUnavailable("away")

        town.faults = away
        worker.arrivals._hand_back(rows)
        await town.wait(0.01)
        town.faults = lambda step: None
        await town.wait(SOON_S + 1)  # and a poll
        assert town.calls("worker") == 5

    in_town(story, hears=False, api=API, worker=FIRST_ONLY)
