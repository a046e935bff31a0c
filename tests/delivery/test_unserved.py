"""A lane is told of when its oldest row stands still and nobody holds any; not while a busy node is between two claims."""

from __future__ import annotations

from typing import Any

from surehook.core.model import LANES
from surehook.delivery.unserved import UNSERVED_S, Unserved
from surehook.ports.reading import LaneCount

LOOK_MS = 10_000


class Facts:
    """Telemetry that keeps the names of facts."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def fact(self, name: str, **fields: Any) -> None:
        self.names.append(name)


def looks(oldest: list[int | None], held: list[int]) -> list[str]:
    """The facts after a look every ten seconds, at each of which a row has been due since then and so many are held."""
    facts: Any = Facts()
    unserved = Unserved(facts)
    for number, (due_at, has) in enumerate(zip(oldest, held, strict=True)):
        first = LaneCount(held=has, ready=5, scheduled=0, parked=0, oldest_due_at=due_at)
        others = [LaneCount(held=0, ready=0, scheduled=0, parked=0, oldest_due_at=None) for _ in LANES[1:]]
        unserved.look([first, *others], now=1_000_000 + number * LOOK_MS)
    return facts.names


def test_a_lane_whose_oldest_row_stands_still_is_told_of_once() -> None:
    start = 1_000_000 - int(UNSERVED_S) * 1000
    assert looks([start] * 6, [0] * 6) == ["lane.unserved"]


def test_a_backlog_that_moves_is_served_though_nothing_is_held_at_the_look() -> None:
    late = 1_000_000 - 600_000  # a backlog of ten minutes, of which the oldest row is another one each time
    assert looks([late + number * LOOK_MS for number in range(6)], [0] * 6) == []


def test_one_that_is_held_at_the_look_before_has_not_stood_still_yet() -> None:
    assert looks([900_000] * 6, [0, 0, 0, 1, 0, 1]) == []
