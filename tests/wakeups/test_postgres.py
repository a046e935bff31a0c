"""Hints through PostgreSQL: they come, once and folded, not to oneself, and again after the connection was lost."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from surehook.ports.wakeups import CONFIGURATION, WORK, parked, parked_endpoint
from surehook.wakeups.postgres import CHANNEL, KINDS_MOST, PostgresWakeups
from tests.servers import Postgres
from tests.servers.proxy import CuttingProxy

PATIENCE_S = 10.0


class Facts:
    def __init__(self) -> None:
        self.names: list[str] = []
        self.away = asyncio.Event()

    def fact(self, name: str, **fields: Any) -> None:
        self.names.append(name)
        if name == "wakeups.away":
            self.away.set()


class Ear:
    """What one process hears."""

    def __init__(self, url: str) -> None:
        self.facts = Facts()
        self.wakeups = PostgresWakeups(url, telemetry=self.facts)
        self.heard: asyncio.Queue[str] = asyncio.Queue()

    async def __aenter__(self) -> Ear:
        await self.wakeups.start(self.heard.put_nowait)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.wakeups.close()

    async def hears(self, kind: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while await self.heard.get() != kind:
                pass

    async def listens(self, other: Ear) -> None:
        """Wait until what the other says is heard here."""
        async with asyncio.timeout(PATIENCE_S):
            while self.heard.empty():
                other.wakeups.publish("hello")
                await asyncio.sleep(0.01)
        while not self.heard.empty():
            self.heard.get_nowait()


async def test_what_one_publishes_the_others_hear_and_it_does_not(database: str) -> None:
    async with Ear(database) as one, Ear(database) as two, Ear(database) as three:
        await two.listens(one)
        await three.listens(one)
        one.wakeups.publish(WORK[0])
        await two.hears(WORK[0])
        await three.hears(WORK[0])
        assert one.heard.empty()


async def test_what_waits_to_be_told_is_told_once(database: str) -> None:
    async with Ear(database) as one, Ear(database) as two:
        await two.listens(one)
        for _ in range(1000):
            one.wakeups.publish(WORK[1])
        one.wakeups.publish(CONFIGURATION)
        await two.hears(CONFIGURATION)
        assert two.heard.qsize() == 0


async def test_the_line_of_what_waits_is_bounded_and_fits_a_notification(database: str) -> None:
    async with Ear(database) as one, Ear(database) as two:
        await two.listens(one)
        for number in range(KINDS_MOST * 3):
            one.wakeups.publish(parked(number.to_bytes(16, "big")))
        # One place may be taken by a greeting that has not left yet.
        await two.hears(parked((KINDS_MOST - 2).to_bytes(16, "big")))
        one.wakeups.publish(CONFIGURATION)
        await two.hears(CONFIGURATION)


async def test_what_is_published_before_the_end_is_told(database: str) -> None:
    async with Ear(database) as two:
        async with Ear(database) as one:
            await two.listens(one)
            one.wakeups.publish(WORK[0])
        await two.hears(WORK[0])


async def test_the_end_does_not_wait_for_a_server_that_is_frozen(database: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("surehook.wakeups.postgres.NOTIFY_S", 600.0)
    parts = urlsplit(database)
    assert parts.port is not None
    with CuttingProxy(parts.port) as proxy:
        async with Ear(database) as two:
            one = Ear(urlunsplit(parts._replace(netloc=f"postgres@127.0.0.1:{proxy.port}")))
            await one.wakeups.start(one.heard.put_nowait)
            await two.listens(one)
            one.wakeups.publish(WORK[0])
            proxy.freeze()
            async with asyncio.timeout(PATIENCE_S):
                await one.wakeups.close()


async def test_a_lost_connection_comes_back_and_everything_may_have_been_missed(
    database: str, postgres: Postgres
) -> None:
    async with Ear(database) as one, Ear(database) as two:
        await two.listens(one)
        cut = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'surehook wakeups'"
        assert (
            len(
                await asyncio.to_thread(
                    postgres.ask, f"{cut} and datname = current_database()", database.rpartition("/")[2]
                )
            )
            == 2
        )
        for kind in (*WORK, CONFIGURATION):
            await two.hears(kind)
        assert {"wakeups.away", "wakeups.back"} <= set(two.facts.names)
        await two.listens(one)
        one.wakeups.publish(WORK[1])
        await two.hears(WORK[1])


async def test_what_had_gathered_is_heard_after_the_connection_is_gone(database: str) -> None:
    """As in a process that was stopped for a while: hints and the loss are found in one turn of the loop."""
    async with Ear(database) as one, Ear(database) as two:
        await two.listens(one)
        lost, theirs = two.wakeups._connection, one.wakeups._connection.get_server_pid()
        lost.terminate()
        two.wakeups._notified(lost, theirs, CHANNEL, WORK[1])
        assert two.heard.get_nowait() == WORK[1]
        two.wakeups._notified(lost, two.wakeups._pid, CHANNEL, WORK[1])
        assert two.heard.empty(), "its own"
        await two.hears(CONFIGURATION)
        assert two.facts.names == ["wakeups.away", "wakeups.back"]


async def test_a_loss_is_told_once_however_often_the_database_refuses(
    database: str, monkeypatch: Any
) -> None:
    async with Ear(database) as one, Ear(database) as two:
        await two.listens(one)
        refused: asyncio.Queue[None] = asyncio.Queue()
        connect = asyncpg.connect

        async def refuse(*args: Any, **options: Any) -> Any:
            refused.put_nowait(None)
            raise ConnectionRefusedError("not yet")

        monkeypatch.setattr(asyncpg, "connect", refuse)
        two.wakeups._connection.terminate()
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(3):
                await refused.get()
        monkeypatch.setattr(asyncpg, "connect", connect)
        await two.hears(CONFIGURATION)
        assert two.facts.names == ["wakeups.away", "wakeups.back"]


async def test_a_database_that_is_not_there_delays_nobody() -> None:
    async with Ear("postgresql://nobody@127.0.0.1:1/nothing") as one:
        one.wakeups.publish(WORK[0])
        async with asyncio.timeout(PATIENCE_S):
            await one.facts.away.wait()


async def test_a_failover_that_leaves_no_wanted_server_ends_no_hints(database: str) -> None:
    async with Ear(f"{database}?target_session_attrs=standby") as one:
        async with asyncio.timeout(PATIENCE_S):
            await one.facts.away.wait()
        assert one.wakeups._task is not None
        assert not one.wakeups._task.done()


def test_a_kind_that_names_an_endpoint_is_read_back() -> None:
    assert parked_endpoint(parked(b"\x01" * 16)) == b"\x01" * 16
    assert parked_endpoint(WORK[0]) is None
    assert parked_endpoint("parked nonsense") is None


async def test_a_server_that_speaks_oddly_is_said_to_be_away_and_asked_again() -> None:
    """A pooler without a server sends no `server_version`: the driver's AttributeError ended hints for good, unsaid."""
    tried: asyncio.Queue[None] = asyncio.Queue()

    async def odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.read(8)
        if asked[4:] == (80877103).to_bytes(4, "big"):  # TLS?
            writer.write(b"N")
            await reader.read(1000)
        key = b"K" + (12).to_bytes(4, "big") + bytes(8)
        writer.write(b"R" + (8).to_bytes(4, "big") + bytes(4) + key + b"Z" + (5).to_bytes(4, "big") + b"I")
        await writer.drain()
        tried.put_nowait(None)
        writer.close()

    async with await asyncio.start_server(odd, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with Ear(f"postgresql://nobody@127.0.0.1:{port}/none") as ear:
            async with asyncio.timeout(PATIENCE_S):
                for _ in range(3):
                    await tried.get()
            assert ear.facts.names == ["wakeups.away"]
