"""Retention: what is old enough is forgotten, in bounded transactions with rests between them."""

from __future__ import annotations

from surehook.delivery.settings import EngineSettings
from surehook.ports.clock import Clock
from surehook.ports.ledger import Ledger

REST_S = 0.05  # between two transactions of one round: accepts go first


class Prune:
    """Retention, round by round."""

    def __init__(self, *, ledger: Ledger, clock: Clock, settings: EngineSettings) -> None:
        self._ledger = ledger
        self._clock = clock
        self._settings = settings
        self.removed = 0

    async def round(self) -> None:
        """Remove everything that is past its retention now."""
        settings = self._settings
        while True:
            now = self._clock.now()
            removed = await self._ledger.prune(
                events_before=now - int(settings.retention_events_s * 1000),
                bodies_before=now - int(settings.retention_bodies_s * 1000),
                limit=settings.prune_rows,
                now=now,
            )
            self.removed += removed
            if removed < settings.prune_rows:
                return
            await self._clock.sleep(REST_S)
