"""A process's clock follows the ledger's: never ahead of it, whatever its own wall clock shows."""

from __future__ import annotations

import pytest

from surehook.delivery.ledger_clock import LedgerClock


class Watch:
    """A wall clock that may be set, and a boot clock that may run unevenly."""

    def __init__(self, wall: int, boot: float) -> None:
        self.wall = wall
        self.at = boot

    def now(self) -> int:
        return self.wall

    def boot(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


TRUE = 1_700_000_000_000  # the ledger's time at boot 100.0


def told(clock: LedgerClock, watch: Watch, *, there: float, back: float) -> None:
    """One question: so long on the way there, so long on the way back."""
    asked = watch.at
    answer = TRUE + int((asked + there - 100.0) * 1000)
    watch.at = asked + there + back
    clock.learn(answer, asked=asked, heard=watch.at)


def truth(watch: Watch) -> float:
    return TRUE + (watch.at - 100.0) * 1000


def test_without_a_ledgers_clock_the_wall_clock_counts() -> None:
    watch = Watch(5_000, 1.0)
    clock = LedgerClock(watch)
    clock.learn(None, asked=0.0, heard=1.0)
    assert clock.now() == 5_000
    watch.wall = 4_000
    assert clock.now() == 4_000


def test_a_wall_clock_that_is_wrong_or_set_has_no_say() -> None:
    watch = Watch(TRUE + 3_600_000, 100.0)
    clock = LedgerClock(watch)
    told(clock, watch, there=0.001, back=0.001)
    assert truth(watch) - 3 <= clock.now() <= truth(watch)
    watch.wall -= 10_000_000
    watch.at += 5.0
    assert truth(watch) - 3 <= clock.now() <= truth(watch)


@pytest.mark.parametrize(("there", "back"), [(0.0, 0.4), (0.4, 0.0), (1.5, 1.5), (0.001, 0.0)])
def test_it_is_never_ahead_and_keeps_the_best_that_was_proved(there: float, back: float) -> None:
    watch = Watch(0, 100.0)
    clock = LedgerClock(watch)
    told(clock, watch, there=there, back=back)
    assert clock.now() <= truth(watch)
    told(clock, watch, there=0.001, back=0.001)
    best = truth(watch) - clock.now()
    assert best <= 3
    told(clock, watch, there=there, back=back)
    assert 0 <= truth(watch) - clock.now() <= best + 1


def test_a_clock_that_ran_ahead_is_set_back() -> None:
    watch = Watch(0, 100.0)
    clock = LedgerClock(watch)
    told(clock, watch, there=0.0, back=0.0)
    clock.learn(TRUE - 500, asked=watch.at - 0.001, heard=watch.at)  # what our boot clock gained meanwhile
    assert TRUE - 502 <= clock.now() <= TRUE - 500
