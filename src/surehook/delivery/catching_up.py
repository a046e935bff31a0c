"""Memory that is behind the ledger, or may be, though nobody waits for it: it catches up by itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from surehook.delivery.loops import Loops
from surehook.delivery.routes import Directory
from surehook.ports.clock import Clock

BEHIND_S = 0.1  # memory may be older than a version that somebody has met


class CatchingUp:
    """Told of newer versions by accepts that those do not concern. Nearly always our own call, or another's hint, is about
    to bring one into memory; where nothing does, this does."""

    def __init__(
        self, *, clock: Clock, loops: Loops, directory: Directory, reload: Callable[[], Awaitable[None]]
    ) -> None:
        self._clock = clock
        self._loops = loops
        self._directory = directory
        self._reload = reload
        self._newest = -1
        self._is_begun = False
        self._is_asked = False  # a reload that a beat or a hint asked for is about to begin

    def soon(self) -> None:
        """Another process may have changed the configuration."""
        if not self._is_asked:
            self._is_asked = True
            self._loops.do("reload", self._look)

    def met(self, version: int) -> None:
        """The ledger's configuration has this version, which is newer than memory's."""
        self._newest = max(self._newest, version)
        if not self._is_begun:
            self._is_begun = True
            self._loops.do("catch up", self._catch_up)

    async def _look(self) -> None:
        self._is_asked = False  # a hint that comes while we read asks for another look
        await self._reload()

    async def _catch_up(self) -> None:
        await self._clock.sleep(BEHIND_S)
        self._is_begun = False
        if self._directory.version < self._newest:
            await self._reload()
