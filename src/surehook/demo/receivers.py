"""The receivers of the demonstration, and the road to the application, as one process:
`python -m surehook.demo.receivers PORT`, where PORT is the application's.

Its first line on stdout is JSON: the URL of every receiver and of `control`, where `POST /secrets` hands out
the signing secrets and `GET /seen` returns what was seen. It ends when its standard input does, so that it
cannot outlive the demonstration.
"""

from __future__ import annotations

import asyncio
import random
import socket
import sys
import time

from msgspec.json import decode, encode

from surehook.core.verification import Verifier
from surehook.demo.memory import ReceiverMemory
from surehook.demo.plan import PARTS, SOURCE, DemoReceiver
from surehook.demo.receiver import HttpReceiver, HttpReply, HttpRequest
from surehook.demo.road import Road, Way


class Stage:
    """All receivers, their memories, and the control that is asked about them."""

    def __init__(self, parts: tuple[DemoReceiver, ...], application: int, host: str = "127.0.0.1") -> None:
        self.memories = {part.name: ReceiverMemory(seen={}) for part in parts}
        self.urls: dict[str, str] = {}
        self._parts = parts
        self._application = application
        self._host = host
        self._verifiers: dict[str, Verifier] = {}
        self._receivers: list[HttpReceiver] = []
        self._closed: list[socket.socket] = []

    async def start(self) -> None:
        for part in self._parts:
            port = self._refuse() if part.behaviour is None else await self._listen(part)
            place = SOURCE if isinstance(part.behaviour, Road) else part.name
            self.urls[part.name] = f"http://{self._host}:{port}/hooks/{place}"
        control = await self._serve(HttpReceiver(self._control))
        self.urls["control"] = f"http://{self._host}:{control}"

    async def stop(self) -> None:
        for receiver in self._receivers:
            await receiver.stop()
        for taken in self._closed:
            taken.close()

    async def _listen(self, part: DemoReceiver) -> int:
        memory, behaviour = self.memories[part.name], part.behaviour
        assert behaviour is not None

        def note(request: HttpRequest) -> None:
            memory.note(request, self._verifiers.get(part.name), now=time.time())

        if isinstance(behaviour, Road):
            way = Way(
                behaviour, self._host, self._application,
                arrived=note, answered=memory.answered, rng=random.Random(),
            )  # fmt: skip
            return await self._serve(HttpReceiver(way.carry))

        async def answer(request: HttpRequest) -> HttpReply:
            note(request)
            return behaviour.reply(random.random())

        return await self._serve(HttpReceiver(answer, memory.answered))

    async def _serve(self, receiver: HttpReceiver) -> int:
        self._receivers.append(receiver)
        return await receiver.start(self._host, 0)

    def _refuse(self) -> int:
        """A port that is taken but not listened on: connections are refused, and nobody else gets it."""
        taken = socket.socket()
        taken.bind((self._host, 0))
        self._closed.append(taken)
        return int(taken.getsockname()[1])

    async def _control(self, request: HttpRequest) -> HttpReply:
        if request.method == "POST" and request.path == "/secrets":
            secrets: dict[str, str] = decode(request.body, type=dict[str, str])
            self._verifiers = {name: Verifier(secret) for name, secret in secrets.items()}
            return HttpReply(204)
        return HttpReply(200, encode(self.memories))


async def main(application: int) -> None:
    stage = Stage(PARTS, application)
    await stage.start()
    sys.stdout.write(encode(stage.urls).decode() + "\n")
    sys.stdout.flush()
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ended.set)  # readable without a writer: the end
    await ended.wait()
    loop.remove_reader(sys.stdin.fileno())
    await stage.stop()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
