"""Hints through PostgreSQL: LISTEN and NOTIFY on a connection of their own.

A notification locks the whole cluster while its transaction commits. So it is sent neither by a trigger nor in the
transaction it reports: hints published within `PAUSE_S` go out together, in a transaction of their own that changes nothing
and does not wait for the disk, since other notifications and commits would wait with it.

A lost connection is made again, however often it takes; once it is back, listeners are given every kind of hint they may
have missed. Through a pooler that lends a connection per transaction no notification arrives, and polling does all the work.
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
# The shortest pause between two notifications of this process.
PAUSE_S = 0.003
# Kinds in one notification, whose text may have 8,000 bytes. Polling finds the work of the others.
KINDS_MOST = 100
NOTIFY = "select set_config('synchronous_commit', 'off', true), pg_notify($1, $2)"
CONNECT_S = 5.0
# A notification that takes longer is given up, with its connection.
NOTIFY_S = 5.0
# The last one at the end of the process, and then the goodbye: a server that is frozen hears neither.
CLOSE_S = 1.0
# Interval between checks of an idle connection.
ALIVE_S = 15.0
# Between attempts to connect.
PAUSE_FIRST_S, PAUSE_MOST_S = 0.1, 2.0


class PostgresWakeups:
    """Implements `ports.wakeups.Wakeups` on the database at `url`."""

    def __init__(self, url: str, *, telemetry: Telemetry) -> None:
        self._url = url
        self._telemetry = telemetry
        self._on_hint: Heard = lambda kind: None
        self._connection: Any = None
        # Of the connection's server process.
        self._pid = 0
        self._away = False
        # An ordered set of kinds.
        self._waiting: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._lost = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self, heard: Heard) -> None:
        self._on_hint = heard
        self._task = asyncio.get_running_loop().create_task(self._run(), name="wakeups")

    def publish(self, kind: str) -> None:
        if len(self._waiting) < KINDS_MOST:
            self._waiting[kind] = None
            self._wake.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._connection is not None:
            with contextlib.suppress(*TROUBLE):
                async with asyncio.timeout(CLOSE_S):
                    await self._notify()
                await self._connection.close(timeout=CLOSE_S)
            self._drop()

    async def _run(self) -> None:
        """Keep a connection, and send what was published."""
        pause_s = PAUSE_FIRST_S
        while True:
            try:
                await self._connect()
            except Exception as error:
                self._report_away(error)
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, PAUSE_MOST_S)
                continue
            pause_s = PAUSE_FIRST_S
            if self._away:
                self._away = False
                self._telemetry.fact("wakeups.back")
                for kind in (*WORK, CONFIGURATION):
                    self._on_hint(kind)
            try:
                await self._serve()
            except Exception as error:
                self._report_away(error)
            self._drop()

    def _report_away(self, error: Exception) -> None:
        """Report once that hints are away, whatever the error.

        A pooler without a server, or a server that answers oddly, makes the driver fail with errors of any kind. If one of
        them ended this task, nobody would notice, since deliveries never wait for hints.
        """
        if self._away:
            return
        self._away = True
        self._telemetry.fact("wakeups.away", error=said(error) if isinstance(error, TROUBLE) else repr(error))

    async def _connect(self) -> None:
        async with asyncio.timeout(CONNECT_S):
            connection = await asyncpg.connect(
                self._url, timeout=CONNECT_S, server_settings={"application_name": "surehook wakeups"}
            )
            self._pid = connection.get_server_pid()
            try:
                await connection.add_listener(CHANNEL, self._notified)
            except BaseException:
                connection.terminate()
                raise
        self._lost.clear()
        connection.add_termination_listener(self._terminated)
        self._connection = connection

    async def _serve(self) -> None:
        """Send until the connection is lost. Raises one of TROUBLE."""
        while True:
            try:
                async with asyncio.timeout(ALIVE_S):
                    await self._wake.wait()
                    self._wake.clear()
            except TimeoutError:
                async with asyncio.timeout(NOTIFY_S):
                    await self._connection.execute("select 1")
            if self._lost.is_set():
                raise ConnectionResetError("the connection was closed")
            if self._waiting:
                await self._notify()
                await asyncio.sleep(PAUSE_S)

    async def _notify(self) -> None:
        kinds, self._waiting = self._waiting, {}
        if kinds:
            async with asyncio.timeout(NOTIFY_S):
                await self._connection.execute(NOTIFY, CHANNEL, ",".join(kinds))

    def _notified(self, line: object, pid: int, channel: str, payload: object) -> None:
        # The pid is kept, not asked of the connection: a process that was stopped receives what had gathered for a
        # connection that is closed by then.
        is_own = pid == self._pid
        if is_own:
            return
        for kind in str(payload).split(","):
            self._on_hint(kind)

    def _terminated(self, line: object) -> None:
        self._lost.set()
        self._wake.set()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed():
            connection.terminate()


# InternalClientError: no host has the wanted `target_session_attrs` (a failover), or an answer cannot be parsed.
TROUBLE = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
