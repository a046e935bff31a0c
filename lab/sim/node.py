"""One machine that runs a server: process after process, each a fresh start on the same ledger.

A machine keeps its clock; everything else dies with a process. Its life is a supervisor's: start the
server, start it again a second after it failed, let go when told. How a server is put together is handed
in (`Build`), so that the world knows nothing of its parts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from lab.sim.clock import SimClock
from lab.sim.loop import Process, ProcessDied, SimLoop
from lab.sim.trace import Trace
from surehook.core.errors import SurehookError
from surehook.host.process import LocalHost

RESTART_S = 1.0  # a supervisor's pause before it starts a failed server again
STOP_S_MAX = 60.0  # a graceful stop that takes longer never ends: grace, plus a storage that stalls

Build = Callable[["Machine", Process], Awaitable[Any]]  # runs inside the process; gives an unstarted server


class Machine:
    """`up` is what the world wants; `server` is there while a process serves."""

    def __init__(
        self,
        slot: int,
        *,
        loop: SimLoop,
        clock: SimClock,
        trace: Trace,
        build: Build,
        gone: Callable[[Machine, Process, bool], Awaitable[None]],
        find: Callable[[str], None],
        kind: str = "n",
    ) -> None:
        """`kind` begins the names of its processes."""
        self.slot = slot
        self.kind = kind
        self.clock = clock
        self.process: Process | None = None
        self.server: Any = None
        self.up = True
        self.starts = 0
        self.leaving = False  # its process was told to stop
        self.power = False  # the next death is a power failure
        self._loop = loop
        self._trace = trace
        self._build = build
        self._gone = gone
        self._find = find
        self.serving = asyncio.Event()  # set while a server runs
        self._wanted = asyncio.Event()
        self._wanted.set()
        self._killed = asyncio.Event()

    async def live(self) -> None:
        """Serve for ever, process after process."""
        while True:
            await self._wanted.wait()
            await self._one_process()
            if self.up:
                await asyncio.sleep(RESTART_S)

    async def _one_process(self) -> None:
        self.starts += 1
        self.leaving = False
        process = Process(f"{self.kind}{self.slot}.{self.starts}")
        process.wall = self.clock.now
        self._killed = killed = asyncio.Event()
        process.at_death.append(killed.set)
        process.at_death.append(lambda: self._trace.note("died", process.name))
        self.process = process
        self._trace.note("start", process.name)

        async def boot() -> Any:
            server = await self._build(self, process)
            await server.start()
            return server

        try:
            self.server = await self._loop.call(process, boot)
            if process.alive:
                self.serving.set()
                self._loop.spawn(process, self._watch(process, self.server))
            await killed.wait()
        except ProcessDied:
            pass
        except SurehookError as error:
            self._trace.note("failed to start", f"{process.name} {type(error).__name__}")
        self.server = None
        self.serving.clear()
        self._loop.kill(process)
        power, self.power = self.power, False
        await self._gone(self, process, power)

    async def _watch(self, process: Process, server: Any) -> None:
        """A server that gives up ends its process, as `serve` does."""
        await server.failed.wait()
        self._trace.note("gave up", f"{process.name} {server.failure}")
        self.leaving = True
        await server.stop()
        self._loop.kill(process)

    # -- what befalls it -------------------------------------------------------------------------------

    def kill(self, why: str, *, power: bool = False) -> None:
        if self.process is not None and self.process.alive:
            self._trace.note("kill", f"{self.process.name} {why}")
            self.power = power
            self._loop.kill(self.process)

    def down(self) -> None:
        """It is not to be started again until `let_up`."""
        self.up = False
        self._wanted.clear()

    def let_up(self) -> None:
        self.up = True
        self._wanted.set()

    async def stop(self) -> None:
        """SIGTERM: stop gracefully, then the process ends."""
        self.down()
        process, server = self.process, self.server
        if process is None or not process.alive:
            return
        self.leaving = True
        self._trace.note("stop", process.name)
        if process.frozen:
            self._loop.thaw(process)  # a signal to a frozen process waits; so would we
        if server is not None:
            try:
                async with asyncio.timeout(STOP_S_MAX):
                    await self._loop.call(process, server.stop)
            except TimeoutError:
                self._find(f"{process.name} did not stop within {STOP_S_MAX:.0f} s")
            except ProcessDied:
                return
        self._trace.note("stopped", process.name)
        self._loop.kill(process)

    async def call(self, make: Callable[[Any], Awaitable[Any]]) -> Any:
        """Run `make(server)` inside the serving process. ProcessDied where there is none."""
        process, server = self.process, self.server
        if process is None or server is None:
            raise ProcessDied(f"machine {self.slot} serves nobody")
        return await self._loop.call(process, lambda: make(server))


def sim_host(machine: Machine, place: tuple[str, str]) -> LocalHost:
    """Identity of a machine's running process: `place` is the machine's name and boot id, the number of its start is the
    pid. A machine has one process at a time, so that no other one is there."""
    name, boot_id = place
    return LocalHost(name=name, boot_id=boot_id, pid=machine.starts, runs=lambda pid: False)
