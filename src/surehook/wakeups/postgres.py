"""Hints through PostgreSQL: LISTEN and NOTIFY on a connection of their own.

A notification takes a lock on the whole cluster while its transaction commits, so it is sent neither by a
trigger nor with the commit that it speaks of: what was published within `PAUSE_S` goes out together afterwards,
in a transaction of its own that changes nothing and does not wait for the disk: other notifications, and commits that
share the disk, would wait with it. A lost connection is made again for ever; when it is back, those
who listen are told of every kind that they may have missed. Through a pooler that lends a connection for one
transaction nothing is ever heard, and polling does all the work.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import asyncpg

from surehook.core.errors import said
from surehook.ports.telemetry import Telemetry
from surehook.ports.wakeups import CONFIGURATION, WORK, Heard

CHANNEL = "surehook"
PAUSE_S = 0.003  # between two notifications of this process, at least
KINDS_MOST = 100  # in one notification, whose text has at most 8,000 bytes; the rest is found by looks
TELL = "select set_config('synchronous_commit', 'off', true), pg_notify($1, $2)"
CONNECT_S = 5.0
TELL_S = 5.0  # a notification that takes longer is given up, with its connection
ALIVE_S = 15.0  # an idle connection is asked this often whether it is one
PAUSE_FIRST_S, PAUSE_MOST_S = 0.1, 2.0  # between tries to connect


class PostgresWakeups:
    """`ports.Wakeups` on the database at `url`."""

    def __init__(self, url: str, *, telemetry: Telemetry) -> None:
        self._url = url
        self._telemetry = telemetry
        self._heard: Heard = lambda kind: None
        self._line: Any = None  # the connection, while there is one
        self._pid = 0  # of its server process
        self._away = False
        self._waiting: dict[str, None] = {}  # an ordered set
        self._to_tell = asyncio.Event()
        self._lost = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self, heard: Heard) -> None:
        self._heard = heard
        self._task = asyncio.get_running_loop().create_task(self._run(), name="wakeups")

    def publish(self, kind: str) -> None:
        if len(self._waiting) < KINDS_MOST:
            self._waiting[kind] = None
            self._to_tell.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._line is not None:
            with contextlib.suppress(*TROUBLE):
                await self._tell()
                await self._line.close(timeout=1.0)
            self._line = None

    async def _run(self) -> None:
        """Keep a connection, and tell what is to be told."""
        pause_s = PAUSE_FIRST_S
        while True:
            try:
                await self._connect()
            except Exception as error:  # see `_lack`
                self._lack(error)
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, PAUSE_MOST_S)
                continue
            pause_s = PAUSE_FIRST_S
            if self._away:
                self._away = False
                self._telemetry.fact("wakeups.back")
                for kind in (*WORK, CONFIGURATION):
                    self._heard(kind)
            try:
                await self._serve()
            except Exception as error:
                self._lack(error)
            self._drop()

    def _lack(self, error: Exception) -> None:
        """Say once that hints are away, whatever it is. A pooler that has no server yet, or a server that speaks oddly, makes
        the driver fail with errors of any kind, and hints that came to an end by one would be missed by nobody. Deliveries
        never wait for them."""
        if self._away:
            return
        self._away = True
        self._telemetry.fact("wakeups.away", error=said(error) if isinstance(error, TROUBLE) else repr(error))

    async def _connect(self) -> None:
        async with asyncio.timeout(CONNECT_S):
            line = await asyncpg.connect(
                self._url, timeout=CONNECT_S, server_settings={"application_name": "surehook wakeups"}
            )
            self._pid = line.get_server_pid()
            try:
                await line.add_listener(CHANNEL, self._notified)
            except BaseException:
                line.terminate()
                raise
        self._lost.clear()
        line.add_termination_listener(self._terminated)
        self._line = line

    async def _serve(self) -> None:
        """Tell until the connection is lost. Raises one of TROUBLE."""
        while True:
            try:
                async with asyncio.timeout(ALIVE_S):
                    await self._to_tell.wait()
                    self._to_tell.clear()
            except TimeoutError:
                async with asyncio.timeout(TELL_S):
                    await self._line.execute("select 1")
            if self._lost.is_set():
                raise ConnectionResetError("the connection was closed")
            if self._waiting:
                await self._tell()
                await asyncio.sleep(PAUSE_S)

    async def _tell(self) -> None:
        kinds, self._waiting = self._waiting, {}
        if kinds:
            async with asyncio.timeout(TELL_S):
                await self._line.execute(TELL, CHANNEL, ",".join(kinds))

    def _notified(self, line: Any, pid: int, channel: str, payload: object) -> None:
        # Not asked of the line: after a stop of the process it hears what had gathered when it is gone already.
        if pid == self._pid:
            return  # our own
        for kind in str(payload).split(","):
            self._heard(kind)

    def _terminated(self, line: Any) -> None:
        self._lost.set()
        self._to_tell.set()

    def _drop(self) -> None:
        line, self._line = self._line, None
        if line is not None and not line.is_closed():
            line.terminate()


# The last one: no host has the wanted `target_session_attrs` (a failover), or an answer that cannot be read.
TROUBLE = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
