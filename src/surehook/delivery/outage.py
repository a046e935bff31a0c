"""A ledger that is away, told as one thing: when the first call is refused, and when calls are answered again.

Loops ask again all the while and callers keep coming, so a minute is some hundred refused calls. The first is worth a line
with its error, the others a number. It is over when a beat is committed and nothing was refused for `QUIET_MS`: a ledger
that refuses now and then is away once, not each time.
"""

from __future__ import annotations

from surehook.core.episodes import Episode
from surehook.ports.clock import Clock
from surehook.ports.telemetry import Telemetry

QUIET_MS = 3_000  # calls are made at least once a second


class Outage:
    """`refused`: calls since the start."""

    def __init__(self, *, clock: Clock, telemetry: Telemetry) -> None:
        self.telemetry = telemetry
        self.refused = 0
        self._clock = clock
        self._episode: Episode | None = None

    def met(self, asked: str, error: object) -> None:
        """The ledger refused a call of `asked`, a part of the engine or its door."""
        self.refused += 1
        now, episode = self._now(), self._episode
        if episode is None:
            self._episode = Episode(asked, now, now)
            self.telemetry.fact("ledger.away", asked=asked, error=str(error))
        else:
            episode.count += 1
            episode.last = now

    def answered(self) -> None:
        """A beat was committed."""
        episode = self._episode
        if episode is None or self._now() - episode.last < QUIET_MS:
            return
        self._episode = None
        lasted_s = (episode.last - episode.since) / 1000
        self.telemetry.fact("ledger.back", lasted_s=lasted_s, refused=episode.count)

    def _now(self) -> int:
        return int(self._clock.boot() * 1000)
