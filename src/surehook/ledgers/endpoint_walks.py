"""Where walks stand that end what an endpoint still has: some rows with each call, until a whole walk finds nothing.

Whoever began a walk may never come back to it: another process deleted the endpoint as well, or the line of chores was full.
So what nobody has gone on with for a minute is forgotten. Taken up again, it begins anew.
"""

from __future__ import annotations

from typing import NamedTuple

from surehook.core.instants import MINUTE_MS

FORGET_MS = MINUTE_MS


class Standing(NamedTuple):
    """Walked up to this id, and whether something was found on the way."""

    place: bytes = b""
    found: bool = False
    at: int = 0  # when it last went on (Unix milliseconds)


BEGINNING = Standing()


class EndpointPlaces:
    """Of one process, the one that went on last at the end."""

    def __init__(self) -> None:
        self._standing: dict[bytes, Standing] = {}

    def __len__(self) -> int:
        return len(self._standing)

    def of(self, endpoint: bytes, now: int) -> Standing:
        """Where its walk stands."""
        while self._standing and abs(now - next(iter(self._standing.values())).at) >= FORGET_MS:
            del self._standing[next(iter(self._standing))]
        return self._standing.get(endpoint, BEGINNING)

    def keep(self, endpoint: bytes, place: bytes, *, found: bool, now: int) -> None:
        """The walk goes on from there."""
        self.drop(endpoint)
        self._standing[endpoint] = Standing(place, found, now)

    def drop(self, endpoint: bytes) -> None:
        """The walk has come to the end: another one begins anew."""
        self._standing.pop(endpoint, None)
