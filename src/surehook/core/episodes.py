"""Things that come again and again, told twice: when they begin, and when they are over, with how often they came.

A refused key may be tried a thousand times a second and a full line refuses as often as it is asked. The first is worth
a line of log at once, the others a number.
"""

from __future__ import annotations

from msgspec import Struct

# Episodes at one time; further ones share the last place, so that strangers cannot fill memory.
KINDS_MOST = 256
OTHERS = "others"


class Episode(Struct):
    """`name` came `count` times between two instants."""

    name: str
    since: int
    last: int
    count: int = 1

    def met(self, now: int) -> None:
        """It came once more."""
        self.count += 1
        self.last = now

    def counts(self) -> None:
        """It came once more, which makes it no longer."""
        self.count += 1

    def lasts(self, until: int) -> None:
        """It goes on, whether it came again or not."""
        self.last = until

    def join(self, later: Episode) -> None:
        """Take in what came after this one."""
        self.count += later.count
        self.last = later.last


class Episodes:
    """`quiet_ms` without another one ends an episode; one that lasts `longest_ms` is told and begins anew.

    Instants are milliseconds of a clock that never steps.
    """

    def __init__(self, *, quiet_ms: int, longest_ms: int = 600_000) -> None:
        self._quiet_ms = quiet_ms
        self._longest_ms = longest_ms
        self._open: dict[str, Episode] = {}

    def met(self, name: str, *, now: int) -> bool:
        """It came once more; whether this is the beginning."""
        if name not in self._open and len(self._open) >= KINDS_MOST:
            name = OTHERS
        episode = self._open.get(name)
        if episode is None:
            self._open[name] = Episode(name, now, now)
            return True
        episode.met(now)
        return False

    def over(self, *, now: int) -> list[Episode]:
        """Those that have ended, each told once."""
        ended = [
            episode
            for episode in self._open.values()
            if now - episode.last >= self._quiet_ms or now - episode.since >= self._longest_ms
        ]
        for episode in ended:
            del self._open[episode.name]
        return ended
