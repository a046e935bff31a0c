"""Tellers: they lease what is owed, send it outside of any transaction, and write down what came of it.

Twins, for threads and for tasks, as workers are. Sent is at least once: a teller that dies after the answer is followed by
another that says the same again, which changes nothing. When the sender is away its other letters are not tried in this turn.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

from surehook.client.calls import ServerUrl
from surehook.client.errors import Unreachable
from surehook.client.sockets import Sockets
from surehook.client.streams import Streams
from surehook.inbox.letters import Letter, Letters, token_of
from surehook.inbox.trouble import TELLING, Away, Trouble
from surehook.ports.inbox import AsyncStore, Store
from surehook.ports.inbox_receipts import Owed

CONNECTIONS = 2  # to one sender: letters go one after another, and one may be left over


class _Sent:
    """What came of the letters of a turn."""

    def __init__(self, letters: Letters) -> None:
        self._letters = letters
        self._away: set[str] = set()  # sources whose sender cannot be reached
        self.told: list[Owed] = []
        self.later: list[Owed] = []

    def trying(self, owed: list[Owed]) -> Iterator[Letter]:
        for letter in self._letters.sorted(owed):
            if letter.source in self._away:
                self.later += self._letters.failed(letter, "its sender is away")
            else:
                yield letter

    def well(self, letter: Letter, later: list[Owed]) -> None:
        again = {one.event for one in later}
        self.told += [one for one in letter.receipts if one.event not in again]
        self.later += later

    def badly(self, letter: Letter, error: Unreachable) -> None:
        self._away.add(letter.source)
        self.later += self._letters.failed(letter, error.cause)


class Teller:
    """One thread that tells. `stop` ends it after the letter that it is at."""

    def __init__(self, store: Store, letters: Letters, idle_s: float, trouble: Trouble) -> None:
        self._store, self._letters, self._idle_s, self._away = store, letters, idle_s, Away(trouble, TELLING)
        self._wires: dict[str, Sockets] = {}
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        """Until stopped."""
        try:
            while not self._stopping.is_set():
                self._stopping.wait(self._guarded())
        finally:
            self.close()

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()

    def _guarded(self) -> float:
        try:
            wait_s = 0.0 if self.turn() else self._idle_s
        except Exception as error:
            return self._away.wait_s(error)
        self._away.over()
        return wait_s

    def turn(self) -> int:
        """Tell what is due; how many receipts were tried."""
        token = token_of(self._letters)
        owed = self._store.run(self._letters.claiming(token))
        if not owed:
            return 0
        sent = _Sent(self._letters)
        for letter in sent.trying(owed):
            try:
                answer = self._wire(letter.source).exchange(*self._letters.written(letter))
            except Unreachable as error:
                sent.badly(letter, error)
            else:
                sent.well(letter, self._letters.answered(letter, answer))
        self._store.run(self._letters.settling(token, sent.told, sent.later))
        return len(owed)

    def _wire(self, source: str) -> Sockets:
        if source not in self._wires:
            to = self._letters.to(source)
            self._wires[source] = Sockets(ServerUrl.of(to.url), to.timeout_s)
        return self._wires[source]


class AsyncTeller:
    """One task that tells; the twin of `Teller`."""

    def __init__(self, store: AsyncStore, letters: Letters, idle_s: float, trouble: Trouble) -> None:
        self._store, self._letters, self._idle_s, self._away = store, letters, idle_s, Away(trouble, TELLING)
        self._wires: dict[str, Streams] = {}
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        """Until stopped."""
        try:
            while not self._stopping.is_set():
                await self._wait(await self._guarded())
        finally:
            self.close()

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()

    async def _guarded(self) -> float:
        try:
            wait_s = 0.0 if await self.turn() else self._idle_s
        except Exception as error:
            return self._away.wait_s(error)
        self._away.over()
        return wait_s

    async def turn(self) -> int:
        """Tell what is due; how many receipts were tried."""
        token = token_of(self._letters)
        owed = await self._store.run(self._letters.claiming(token))
        if not owed:
            return 0
        sent = _Sent(self._letters)
        for letter in sent.trying(owed):
            try:
                answer = await self._wire(letter.source).exchange(*self._letters.written(letter))
            except Unreachable as error:
                sent.badly(letter, error)
            else:
                sent.well(letter, self._letters.answered(letter, answer))
        await self._store.run(self._letters.settling(token, sent.told, sent.later))
        return len(owed)

    def _wire(self, source: str) -> Streams:
        if source not in self._wires:
            to = self._letters.to(source)
            self._wires[source] = Streams(ServerUrl.of(to.url), to.timeout_s, CONNECTIONS)
        return self._wires[source]

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return
