"""The other processes on the same ledger: what we tell them, and what follows from what they tell us.

Hints only make things sooner (ports/wakeups.py); what a process must know it finds in the ledger by itself.
"""

from __future__ import annotations

import asyncio

from surehook.core.model import Lane
from surehook.delivery.claim_looks import ClaimLooks
from surehook.delivery.directory import Directory
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.loops import Loops
from surehook.delivery.refill import Refill
from surehook.delivery.settings import EngineSettings
from surehook.delivery.staleness import Staleness
from surehook.ports.clock import Clock
from surehook.ports.wakeups import CONFIGURATION, OUTBOX, WORK, Wakeups, parked, parked_endpoint

SOON_POLLS = 2  # a retry that is due within so many polls of the others is told of


class Peers:
    """Hints out and in."""

    def __init__(
        self,
        *,
        clock: Clock,
        settings: EngineSettings,
        wakeups: Wakeups,
        loops: Loops,
        directory: Directory,
        dispatch: Dispatch,
        looks: ClaimLooks,
        refill: Refill,
        staleness: Staleness,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._wakeups = wakeups
        self._loops = loops
        self._directory = directory
        self._dispatch = dispatch
        self._looks = looks
        self._refill = refill
        self._staleness = staleness
        self.outbox_hinted = asyncio.Event()  # whoever reads an outbox clears it before a look

    # -- what we tell -----------------------------------------------------------------------------------

    def left(self, lane: Lane) -> None:
        """Accepted work of the lane was left to whoever has a slot for it."""
        if lane in self._settings.lanes:
            self._dispatch.spill()
        self._wakeups.publish(WORK[lane])

    def on_rescheduled(self, lane: Lane, due_at: int) -> None:
        """A delivery was written for this instant, unheld. Others poll: they are told of what comes sooner."""
        if lane in self._settings.lanes:
            self._looks.hint(lane, due_at)
        elif due_at - self._clock.now() < SOON_POLLS * self._settings.poll_s * 1000:
            self._wakeups.publish(WORK[lane])

    def work(self) -> None:
        """There is due work of some lane."""
        for kind in WORK:
            self._wakeups.publish(kind)

    def configuration(self) -> None:
        self._wakeups.publish(CONFIGURATION)

    def closed(self, endpoint: bytes) -> None:
        """The endpoint's breaker closed: its parked work may be taken back."""
        self._wakeups.publish(parked(endpoint))

    # -- what we hear -----------------------------------------------------------------------------------

    def heard(self, kind: str) -> None:
        """Another process says that there is something to look for."""
        try:
            self._heed(kind)
        except Exception as error:  # who carries hints would log it, or carry none any more
            self._loops.defect("hints", error)

    def _heed(self, kind: str) -> None:
        if kind in WORK:
            self._looks.woken(WORK.index(kind))  # type: ignore[arg-type]  # lanes are numbers
        elif kind == CONFIGURATION:
            self._staleness.soon()
        elif kind == OUTBOX:
            self.outbox_hinted.set()
        elif (endpoint := parked_endpoint(kind)) is not None and endpoint in self._directory.routes:
            self._refill.freed(self._directory.routes[endpoint])
