"""A ledger that is away, told as one thing, and a ledger that refuses some calls, told as another.

Every part of the engine and every caller may be refused, for reasons of its own: a table that somebody has locked, a list
that takes too long, a connection that broke. None of these says that the ledger is away, and each may go on for hours. The
beats say it: small, one a second, over a connection of their own. So it is away where none was committed for `AWAY_MS` while
calls were refused, and what is refused between two beats in time is told by itself.

An outage is as long as there was no beat. It is over when beats came in time for `BACK_MS`, whatever else is refused: a
ledger that comes and goes is away once.
"""

from __future__ import annotations

from surehook.core.episodes import Episode
from surehook.ports.clock import Clock
from surehook.ports.telemetry import Telemetry

AWAY_MS = 3_000  # three beats
# Calls were refused over so long at least. A process that stood still has missed beats too, and finds calls refused that were
# under way: all at once, and then it beats.
APART_MS = 1_000
BACK_MS = 3_000
QUIET_MS = 60_000  # refusals this far apart are two episodes


class Outage:
    """`refused`: calls since the start."""

    def __init__(self, *, clock: Clock, telemetry: Telemetry) -> None:
        self.telemetry = telemetry
        self.refused = 0
        self._clock = clock
        self._beaten = self._now()
        self._met: Episode | None = None  # refused since the last beat: the next one says what it was
        self._error = ""  # … of the first
        # From the last beat before it to `last`, the first of those that come in time.
        self._away: Episode | None = None
        self._refusals: Episode | None = None  # while beats came in time

    def met(self, asked: str, error: object) -> None:
        """The ledger refused a call of `asked`, a part of the engine or its door."""
        self.refused += 1
        now = self._now()
        if self._away is not None:
            self._away.counts()
        elif self._met is None:
            self._met, self._error = Episode(asked, now, now), str(error)
        else:
            self._met.met(now)
        self._judge(now)

    def answered(self) -> None:
        """A beat was committed."""
        now = self._now()
        self._judge(now)
        if self._away is not None:
            self._returns(self._away, now)
        elif self._met is not None:
            self._refuses(self._met)
        self._met = None
        self._beaten = now
        self._look(now)

    def _judge(self, now: int) -> None:
        met = self._met
        if met is None or now - self._beaten < AWAY_MS or met.last - met.since < APART_MS:
            return
        self._met = None
        self._away = Episode(met.name, self._beaten, now, met.count)
        self.telemetry.fact("ledger.away", asked=met.name, error=self._error)

    def _returns(self, away: Episode, now: int) -> None:
        """A beat of a ledger that was away."""
        if now - self._beaten >= AWAY_MS:
            away.lasts(now)
        elif now - away.last >= BACK_MS:
            self._away = None
            if self._refusals is not None:
                self._refusals.lasts(now)  # whether they went on could not be seen
            lasted_s = (away.last - away.since) / 1000
            self.telemetry.fact("ledger.back", lasted_s=lasted_s, refused=away.count)

    def _refuses(self, met: Episode) -> None:
        """The ledger is there and refused these calls."""
        if self._refusals is None:
            self._refusals = met
            self.telemetry.fact("ledger.refusals_began", asked=met.name, error=self._error)
        else:
            self._refusals.join(met)

    def _look(self, now: int) -> None:
        """Tell what is over."""
        refusals = self._refusals
        if refusals is None or self._away is not None or now - refusals.last < QUIET_MS:
            return
        self._refusals = None
        lasted_s = (refusals.last - refusals.since) / 1000
        self.telemetry.fact("ledger.refusals_ended", lasted_s=lasted_s, refused=refusals.count)

    def _now(self) -> int:
        return int(self._clock.boot() * 1000)
