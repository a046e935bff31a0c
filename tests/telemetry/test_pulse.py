"""What is told of a process that is late, short of descriptors or of disk."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from surehook.ports.reading import Room
from surehook.telemetry.disk import DiskWatch
from surehook.telemetry.pulse import BEAT_S, Pulse


class Facts:
    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def fact(self, name: str, **fields: Any) -> None:
        self.told.append((name, fields))


class LateClock:
    """Every sleep is late by the next of `late_s`; after the last one it ends the loop."""

    def __init__(self, *late_s: float) -> None:
        self.seconds = 0.0
        self._late = iter(late_s)

    def now(self) -> int:
        return 0

    def boot(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        late = next(self._late, None)
        if late is None:
            raise asyncio.CancelledError
        self.seconds += seconds + late


async def _beat(pulse: Pulse) -> None:
    with pytest.raises(asyncio.CancelledError):
        await pulse.run()


async def test_lateness_is_a_histogram_and_a_stall_is_told() -> None:
    facts = Facts()
    pulse = Pulse(clock=LateClock(0.0, 0.004, 2.5), telemetry=facts, descriptors=lambda: (1, 10))
    await _beat(pulse)

    assert sum(pulse.lateness.buckets) == 3 and pulse.lateness.buckets[0] == 1
    assert [name for name, _ in facts.told] == ["loop.stalled"]
    assert 2_490 <= facts.told[0][1]["late_ms"] <= 2_500


async def test_a_look_is_made_once_a_second_and_one_that_fails_stops_no_other() -> None:
    facts, looked = Facts(), []

    def fails() -> None:
        raise OSError("gone")

    looks = (fails, lambda: looked.append(1))
    pulse = Pulse(
        clock=LateClock(*[0.0] * round(2.5 / BEAT_S)),
        telemetry=facts,
        descriptors=lambda: (1, 10),
        looks=looks,
    )
    await _beat(pulse)

    assert len(looked) == 2
    assert [name for name, _ in facts.told] == ["look.failed", "look.failed"]


def test_a_shortage_of_descriptors_is_told_when_it_begins_and_when_it_is_over() -> None:
    facts, used = Facts(), [0]
    pulse = Pulse(clock=LateClock(), telemetry=facts, descriptors=lambda: (used[0], 100))
    for used[0] in (89, 90, 99, 100, 85, 80, 79, 50):
        pulse.look()

    assert facts.told == [
        ("descriptors.shortage_began", {"used": 90, "allowed": 100}),
        ("descriptors.shortage_ended", {"used": 79, "allowed": 100}),
    ]


def test_the_floor_of_the_disk_is_told_when_it_is_reached_and_when_it_is_left() -> None:
    facts, free = Facts(), [0]
    disk = DiskWatch(lambda: Room(free[0], 64), facts)
    reasons = []
    for free[0] in (65, 64, 63, 32, 64):
        disk.look()
        reasons.append(disk.reason() is not None)

    assert [name for name, _ in facts.told] == ["disk.floor_reached", "disk.floor_left"]
    assert facts.told[0][1] == {"free_bytes": 63, "floor_bytes": 64}
    assert reasons == [False, False, True, True, False]


def test_half_of_the_floor_is_told_as_well_and_what_stands_still_there() -> None:
    facts, free = Facts(), [0]
    disk = DiskWatch(lambda: Room(free[0], 64), facts)
    reasons = []
    for free[0] in (64, 32, 31, 32, 10, 64):
        disk.look()
        reasons.append("nothing is sent" in (disk.reason() or ""))

    assert [name for name, _ in facts.told] == [
        "disk.floor_reached", "disk.sending_paused", "disk.sending_resumed", "disk.sending_paused",
        "disk.sending_resumed", "disk.floor_left",
    ]  # fmt: skip
    assert reasons == [False, False, True, False, True, False]


def test_a_disk_that_is_another_machines_is_not_judged() -> None:
    disk = DiskWatch(lambda: None, Facts())
    disk.look()

    assert disk.reason() is None
