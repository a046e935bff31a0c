"""Several engines in one process: what one publishes, the others hear in the next step of the loop."""

from __future__ import annotations

import asyncio

from surehook.ports.wakeups import Heard


class Hub:
    """The room in which the engines of one process hear each other. `member` gives each its own ear."""

    def __init__(self) -> None:
        self.members: list[LocalWakeups] = []

    def member(self) -> LocalWakeups:
        return LocalWakeups(self)


class LocalWakeups:
    """`ports.Wakeups` within one loop."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._heard: Heard | None = None

    async def start(self, heard: Heard) -> None:
        self._heard = heard
        self._hub.members.append(self)

    def publish(self, kind: str) -> None:
        loop = asyncio.get_running_loop()
        for member in self._hub.members:
            if member is not self:
                loop.call_soon(member.hear, kind)

    def hear(self, kind: str) -> None:
        if self._heard is not None:
            self._heard(kind)

    async def close(self) -> None:
        self._heard = None
        if self in self._hub.members:
            self._hub.members.remove(self)
