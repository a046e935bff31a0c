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

    def stepped(
        self, endpoint: bytes, place: bytes | None, *, ended: int, found: bool, now: int
    ) -> int | None:
        """Move a walk after a step, and return the step's answer.

        place  the position reached; None: the walk has come to the end
        ended  the number of deliveries that the step ended
        found  an earlier step of this walk ended some

        The answer is `ended`; instead of 0 it is None if the walk has to go on, or to start over since it ended some.
        """
        self._positions.pop(endpoint, None)
        if place is None:
            return ended or (None if found else 0)
        self._positions[endpoint] = Position(place, found or ended > 0, now)
        return ended or None
