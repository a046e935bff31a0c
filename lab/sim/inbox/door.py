"""Entry of the sender's requests: a proxy with moods, and behind it a living process of the application."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import structs

from lab.sim.http import Incoming
from lab.sim.inbox.application import Application
from lab.sim.loop import Process, SimLoop
from lab.sim.network import Link, SimTransport
from lab.sim.node import Machine
from lab.sim.receivers import Conversation, Mood, Receiver, Seen

REMEMBERED = 64  # requests that a middlebox can say again
# Treatments that lead to the application; with the others something in front of it answers, or nobody. Nothing in front may
# answer with a success: nobody could make that good.
THROUGH = ("healthy", "slow", "hints", "late", "dripping", "refused", "unreachable", "blackhole", "deaf")


class Door(Receiver):
    """`answered(event id, body, status)` is told of every answer of the application before it leaves."""

    def __init__(
        self,
        name: str,
        loop: SimLoop,
        chance: random.Random,
        *,
        machines: Callable[[], Sequence[Machine]],
        answered: Callable[[str, bytes, int], None],
        mood: Mood,
        verify: Callable[[dict[str, str], bytes, float], bool],
        tell: Callable[[Seen], None],
    ) -> None:
        super().__init__(name, loop, chance, mood=mood, verify=verify, tell=tell)
        self._machines = machines
        self._answered = answered
        self.remembered: list[Incoming] = []

    def link(self) -> Link:
        link = super().link()
        if link.connect == "open" and not self._serving() and self._chance.random() < 0.3:
            link.connect = "blackhole"
        return link

    def owner(self) -> Process | None:
        serving = self._serving()
        if not serving:
            raise ConnectionRefusedError(111, "nobody listens")
        return self._chance.choice(serving).process

    def accept(self) -> asyncio.Protocol:
        return _Served(self)

    def _serving(self) -> list[Machine]:
        return [one for one in self._machines() if one.server is not None and one.server.open]

    def application(self, process: Process | None) -> Application | None:
        """That of a process, while it serves."""
        found = [machine.server for machine in self._serving() if machine.process is process]
        return found[0] if found else None

    def remember(self, request: Incoming) -> None:
        self.remembered.append(request)
        del self.remembered[:-REMEMBERED]

    async def serve(self, application: Application, request: Incoming) -> tuple[int, list[Any], bytes]:
        """The application's answer; inside its process."""
        status, headers, body = await application.serve(request.path, request.headers, request.body)
        self._answered(request.headers.get("webhook-id", ""), request.body, status)
        return status, headers, body

    async def echo(self, request: Incoming, *, tampered: bool) -> int | None:
        """Say a request again to somebody who serves; the status, or None where nobody does."""
        serving = self._serving()
        if not serving:
            return None
        if tampered:
            request = structs.replace(request, body=request.body.replace(b'"key": "', b'"key": "x', 1))

        async def go(application: Application) -> int:
            status, _, _ = await self.serve(application, request)
            return status

        answered: int = await self._chance.choice(serving).call(go)
        return answered


class _Served(Conversation):
    """One connection to the application."""

    def _treat(self, seen: Seen, request: Incoming, transport: SimTransport) -> None:
        if seen.treated not in THROUGH:
            super()._treat(seen, request, transport)
            return
        door = self._receiver
        assert isinstance(door, Door)
        door.remember(request)
        loop = door._loop
        loop.call_later(door.answer_s(), lambda: loop.create_task(self._through(door, seen, request)))

    async def _through(self, door: Door, seen: Seen, request: Incoming) -> None:
        transport = self._transport
        if transport is None:
            return
        application = door.application(transport.process)
        if application is None:  # it was told to stop meanwhile
            transport.close()
            return
        status, headers, body = await door.serve(application, request)
        if self._transport is None:
            return
        seen.answered, seen.answered_at = status, door._loop.time()
        lines = [f"HTTP/1.1 {status} Simulated".encode(), *(name + b": " + value for name, value in headers)]
        transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
