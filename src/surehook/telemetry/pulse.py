"""A beat ten times a second that watches the process: the lateness of its loop, and its file descriptors.

The loop's lateness is what every request and every delivery waits for besides its own work. A shortage is told when it
begins and when it is over, with a margin between, so that it cannot flicker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from surehook.core.histogram import Histogram
from surehook.ports.clock import Clock
from surehook.ports.telemetry import Telemetry

BEAT_S = 0.1
LOOK_EVERY = 10  # beats between looks at what does not change fast: one second
LATENESS_MS = (1, 2, 5, 10, 20, 50, 100, 250, 500, 1_000, 5_000)
STALL_MS = 1_000  # a loop this late is worth a line: a fifteenth of a lease
SHORT, ENOUGH = 0.9, 0.8  # of the descriptors that are allowed

Look = Callable[[], None]


class Pulse:
    """Runs until cancelled. `descriptors`: how many are open, and how many may be. `looks`: done once a second."""

    def __init__(
        self,
        *,
        clock: Clock,
        telemetry: Telemetry,
        descriptors: Callable[[], tuple[int, int]],
        looks: Sequence[Look] = (),
    ) -> None:
        self.lateness = Histogram(LATENESS_MS)
        self._clock = clock
        self._telemetry = telemetry
        self._descriptors = descriptors
        self._looks = list(looks)
        self._is_short = False

    async def run(self) -> None:
        beat = 0
        while True:
            due = self._clock.boot() + BEAT_S
            await self._clock.sleep(BEAT_S)
            self._felt(int(max(0.0, self._clock.boot() - due) * 1000))
            beat = (beat + 1) % LOOK_EVERY
            if beat == 0:
                self.look()

    def look(self) -> None:
        """Do everything that is due once a second. A look that fails is reported, and stops no other."""
        self._count_descriptors()
        for look in self._looks:
            try:
                look()
            except Exception as error:
                self._telemetry.fact("look.failed", error=repr(error))

    def _felt(self, late_ms: int) -> None:
        self.lateness.note(late_ms)
        if late_ms >= STALL_MS:
            self._telemetry.fact("loop.stalled", late_ms=late_ms)

    def _count_descriptors(self) -> None:
        used, allowed = self._descriptors()
        if not self._is_short and used >= allowed * SHORT:
            self._is_short = True
            self._telemetry.fact("descriptors.shortage_began", used=used, allowed=allowed)
        elif self._is_short and used < allowed * ENOUGH:
            self._is_short = False
            self._telemetry.fact("descriptors.shortage_ended", used=used, allowed=allowed)
