"""Memory catches up with the ledger's configuration by itself, where it is behind or may be (`delivery/staleness.py`)."""

from __future__ import annotations

from surehook.core.errors import LedgerUnavailable
from surehook.delivery.directory import Directory
from surehook.delivery.loading import Loader
from surehook.delivery.peers import Peers
from surehook.delivery.staleness import Staleness
from surehook.ports.clock import Clock

BEHIND_S = 0.1  # memory may be older than a version that somebody has met


class CatchingUp:
    """Two loops: one follows hints, one sees that a version which was met comes into memory."""

    def __init__(
        self, *, clock: Clock, directory: Directory, loader: Loader, staleness: Staleness, peers: Peers
    ) -> None:
        self._clock = clock
        self._directory = directory
        self._loader = loader
        self._staleness = staleness
        self._peers = peers

    async def follow(self) -> None:
        """Read what may have changed, for ever; the others are told of what the ledger changed with our results."""
        while True:
            await self._staleness.suspected.wait()
            by_us = self._staleness.take()
            try:
                await self._loader.reload()
            except LedgerUnavailable:
                if by_us:
                    self._staleness.changed_by_us()
                raise
            if by_us:
                self._peers.configuration()

    async def catch_up(self) -> None:
        """Read what nobody had to wait for. Nearly always our own call, or another's hint, is about to bring it into memory;
        where nothing does, this does."""
        while True:
            await self._staleness.met.wait()
            await self._clock.sleep(BEHIND_S)
            self._staleness.met.clear()
            if self._directory.version < self._staleness.newest:
                await self._loader.reload()
