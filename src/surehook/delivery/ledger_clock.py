"""Whose clock counts: the ledger's, where it has one.

Due times are written by one process and compared by another. Were each to ask its own wall clock, two
machines an hour apart would hand a row back and forth for that hour, or send it an hour early. So with every
beat a process asks the ledger for its time, and from then on `now` is that time plus what the boot-time clock
has counted since: a wall clock that is wrong, or set while we run, has no say any more. A ledger that lives in
this process answers None, and the wall clock is the ledger's clock.

What an answer proves: the ledger read its clock between our asking and our hearing, so that at the hearing its
time is at least what it said, and at most that plus the whole wait. `now` keeps to the lower end, the highest
that was ever proved: a process may be a network's wait behind the ledger, never ahead of it, and nothing
leaves before it is due.
"""

from __future__ import annotations

from surehook.ports.clock import Clock


class LedgerClock:
    """`ports.Clock` whose `now` follows the ledger once `learn` was told its time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.boot = clock.boot
        self._base: float | None = None  # ledger milliseconds at boot time zero; None: our wall clock counts

    def now(self) -> int:
        if self._base is None:
            return self._clock.now()
        return int(self._base + self.boot() * 1000)

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    def learn(self, told: int | None, *, asked: float, heard: float) -> None:
        """The ledger's answer (Unix milliseconds), and the boot times of asking and hearing."""
        if told is None:
            return
        least, most = told - heard * 1000, told + 1 - asked * 1000  # it shows whole milliseconds, cut
        if self._base is None or not least <= self._base <= most:
            self._base = least  # behind what is proved, or, as crystals drift, ahead of it
