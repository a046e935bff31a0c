"""The positions of walks that end all deliveries of an endpoint: some rows with each call, until a whole walk finds none.

A walk may never be continued: another process deleted the endpoint as well, or too many chores were waiting. So a position
that is a minute old is forgotten, and a later walk starts over.
"""

from __future__ import annotations

from typing import NamedTuple

from surehook.core.instants import MINUTE_MS

FORGET_MS = MINUTE_MS


class Position(NamedTuple):
    """A walk's position.

    place  the id up to which it has walked
    found  something was found on the way
    at     the time of its last step (Unix milliseconds)
    """

    place: bytes = b""
    found: bool = False
    at: int = 0


BEGINNING = Position()


class EndpointCursors:
    """The positions of one process's walks, the one with the latest step last."""

    def __init__(self) -> None:
        self._positions: dict[bytes, Position] = {}

    def __len__(self) -> int:
        return len(self._positions)

    def of(self, endpoint: bytes, now: int) -> Position:
        """Return the position of an endpoint's walk."""
        while self._positions and abs(now - next(iter(self._positions.values())).at) >= FORGET_MS:
            del self._positions[next(iter(self._positions))]
        return self._positions.get(endpoint, BEGINNING)

    def keep(self, endpoint: bytes, place: bytes, *, found: bool, now: int) -> None:
        """Continue the walk from there."""
        self.drop(endpoint)
        self._positions[endpoint] = Position(place, found, now)

    def drop(self, endpoint: bytes) -> None:
        """Forget a walk that has come to the end."""
        self._positions.pop(endpoint, None)
