"""Worlds whose work goes through a broker in trouble: nothing is lost, stuck, or sent by whoever does not hold it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from lab.ledger.ledger import MemoryLedger
from lab.sim import run as running
from lab.sim import swarm
from tests.budget import every


@pytest.mark.parametrize("seed", every(8, range(8)))
def test_a_broker_in_trouble_costs_no_delivery(seed: int) -> None:
    report = running.run(seed, nodes=4, broker=True)
    assert report.finding is None, report.replay


class Trusting(MemoryLedger):
    """A planted bug: what was handed over is believed to arrive."""

    async def hand_over(self, lane: Any, **named: Any) -> Any:
        marks = self.book.marks[lane]
        self.book.marks[lane] = structs.replace(marks, passed=0)
        try:
            return await super().hand_over(lane, **named)
        finally:
            self.book.marks[lane] = structs.replace(self.book.marks[lane], passed=marks.passed)


def test_a_ledger_that_trusts_the_broker_is_found_out() -> None:
    for seed in range(20, 26):
        options = swarm.draw(seed, nodes=4)
        options.broker = swarm.draw_broker(seed, options.storm_s)
        ledger = Trusting()
        if running._run(options, "memory", lambda world, ledger=ledger: ledger, 0).finding is not None:
            return
    pytest.fail("six worlds with a broker in trouble, and nobody noticed that what it lost is never sent")
