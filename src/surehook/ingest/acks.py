"""Many acknowledgements in one frame. Pure."""

from __future__ import annotations

from collections import deque


class Acks:
    """Messages that are done with, as one number now and then: everything up to it is acknowledged in one frame.

    A frame for each message costs more than the rest of its handling. A slow message delays the acknowledgement of
    those after it, never their events.
    """

    def __init__(self) -> None:
        self._taken: deque[int] = deque()  # tags in the order of their coming, which is rising
        self._done: set[int] = set()

    def took(self, tag: int) -> None:
        self._taken.append(tag)

    def done(self, tag: int) -> None:
        self._done.add(tag)

    def due(self) -> int | None:
        """The highest tag up to which all is done, once."""
        highest = None
        while self._taken and self._taken[0] in self._done:
            highest = self._taken.popleft()
            self._done.discard(highest)
        return highest
