"""Reasons to think that memory is behind the ledger's configuration, as anybody meets them. `CatchingUp` sees to it."""

from __future__ import annotations

import asyncio


class Staleness:
    """Knows nobody, so that whoever meets a reason can be handed it."""

    def __init__(self) -> None:
        self.suspected = asyncio.Event()
        self.met = asyncio.Event()  # a version that is newer than memory's
        self.newest = -1
        self._by_us = False

    def soon(self) -> None:
        """Another process may have changed the configuration: look at once."""
        self.suspected.set()

    def changed_by_us(self) -> None:
        """The ledger has changed endpoints with our results: the others are to be told of it."""
        self._by_us = True
        self.suspected.set()

    def newer(self, version: int) -> None:
        """Somebody has met this version, and does not have to wait for it."""
        self.newest = max(self.newest, version)
        self.met.set()

    def take(self) -> bool:
        """Begin to look: a hint that comes from now on asks for another look. Whether a change was ours."""
        self.suspected.clear()
        by_us, self._by_us = self._by_us, False
        return by_us
