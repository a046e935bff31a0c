"""Byte pipes in memory behave as asyncio's own transports do, and break as told."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from lab.sim.loop import Process, SimLoop, run
from lab.sim.network import Link, SimNetwork, SimTransport


class Recorder(asyncio.Protocol):
    """A client that writes its life down."""

    def __init__(self) -> None:
        self.life: list[str] = []
        self.data = b""
        self.lost = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.life.append("made")

    def data_received(self, data: bytes) -> None:
        self.data += data

    def eof_received(self) -> None:
        self.life.append("eof")

    def pause_writing(self) -> None:
        self.life.append("pause")

    def resume_writing(self) -> None:
        self.life.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.life.append(f"lost {type(exc).__name__}" if exc else "lost")
        self.lost.set_result(None)


class Server(asyncio.Protocol):
    """Listens with one kind of link; by default echoes."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.data = b""
        self.life: list[str] = []
        self.transport: SimTransport | None = None
        self.echo = True

    def link(self) -> Link:
        return self._link

    def owner(self) -> None:
        return None

    def accept(self) -> asyncio.Protocol:
        return self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, SimTransport)
        self.transport = transport
        self.life.append("made")

    def data_received(self, data: bytes) -> None:
        self.data += data
        if self.echo and self.transport is not None:
            self.transport.write(data)

    def eof_received(self) -> None:
        self.life.append("eof")

    def connection_lost(self, exc: Exception | None) -> None:
        self.life.append(f"lost {type(exc).__name__}" if exc else "lost")


Play = Callable[[SimTransport, Recorder, Server], Awaitable[None]]


def play(
    script: Play, link: Link | None = None, *, seed: int = 1, process: Process | None = None
) -> tuple[Recorder, Server]:
    """Connect a recorder to a server over `link`, run `script`, wait a minute and hand both out."""
    loop = SimLoop(seed)

    async def main() -> tuple[Recorder, Server]:
        network = SimNetwork(loop, random.Random(seed))
        server = Server(link or Link())
        network.listen("198.51.100.1", 80, server)
        protocol = Recorder()
        transport = await network.dial(process, "198.51.100.1", 80, protocol)
        await script(transport, protocol, server)
        await asyncio.sleep(60)
        if not protocol.lost.done():
            protocol.lost.cancel()
        return protocol, server

    result = run(main(), loop=loop)
    assert loop.failures == []
    return result


@pytest.mark.parametrize("seed", range(5))
def test_bytes_arrive_in_order_whatever_the_pieces(seed: int):
    sent = random.Random(seed).randbytes(20_000)

    async def script(transport: SimTransport, client: Recorder, server: Server) -> None:
        for at in range(0, len(sent), 3_000):
            transport.write(sent[at : at + 3_000])
            await asyncio.sleep(0.001)

    client, server = play(script, Link(whole=False), seed=seed)
    assert server.data == sent
    assert client.data == sent


def test_closing_flushes_and_the_other_side_sees_eof_then_the_end():
    async def script(transport: SimTransport, client: Recorder, server: Server) -> None:
        server.echo = False
        transport.write(b"last words")
        transport.close()
        transport.write(b"never sent")
        assert transport.is_closing()

    client, server = play(script)
    assert server.data == b"last words"
    assert server.life == ["made", "eof", "lost"]
    assert client.life == ["made", "lost"]


def test_an_abort_is_a_reset_to_the_other_side():
    async def script(transport: SimTransport, client: Recorder, server: Server) -> None:
        transport.abort()

    client, server = play(script)
    assert client.life == ["made", "lost"]
    assert server.life == ["made", "lost ConnectionResetError"]


def test_a_connection_is_reset_after_exactly_so_many_bytes():
    async def script(transport: SimTransport, client: Recorder, server: Server) -> None:
        transport.write(b"x" * 100)

    client, server = play(script, Link(reset_after=150))
    assert server.data == b"x" * 100
    assert client.data == b"x" * 50
    assert client.life == ["made", "lost ConnectionResetError"]
    assert server.life == ["made", "lost ConnectionResetError"]


def test_a_half_open_connection_tells_nobody():
    async def script(transport: SimTransport, client: Recorder, server: Server) -> None:
        transport.write(b"x" * 100)

    client, server = play(script, Link(silent_after=60))
    assert server.data == b"x" * 60
    assert client.life == ["made"]
    assert server.life == ["made"]


def test_a_full_pipe_pauses_its_writer_until_the_reader_goes_on():
    async def script(transport: SimTransport, client: Recorder, server: Server) -> None:
        server.echo = False
        assert server.transport is not None or await asyncio.sleep(0.1) is None
        assert server.transport is not None
        server.transport.pause_reading()
        for _ in range(20):
            transport.write(b"x" * 10_000)
        await asyncio.sleep(1)
        assert client.life == ["made", "pause"]
        assert server.data == b""
        server.transport.resume_reading()

    client, server = play(script)
    assert client.life == ["made", "pause", "resume"]
    assert len(server.data) == 200_000


@pytest.mark.parametrize(
    ("connect", "error"),
    [("refused", ConnectionRefusedError), ("unreachable", OSError), ("blackhole", TimeoutError)],
)
def test_connecting_fails_as_sockets_do(connect: str, error: type[Exception]):
    loop = SimLoop(1)

    async def main() -> None:
        network = SimNetwork(loop, random.Random(1))
        network.listen("198.51.100.1", 80, Server(Link(connect=connect)))
        async with asyncio.timeout(5):
            await network.dial(None, "198.51.100.1", 80, Recorder())

    with pytest.raises(error):
        run(main(), loop=loop)


def test_nobody_listens_is_refused():
    loop = SimLoop(1)

    async def main() -> None:
        await SimNetwork(loop, random.Random(1)).dial(None, "198.51.100.9", 80, Recorder())

    with pytest.raises(ConnectionRefusedError):
        run(main(), loop=loop)


@pytest.mark.parametrize("power", [False, True])
def test_a_dead_process_writes_nothing_more_and_its_peer_sees_a_reset_or_nothing(power: bool):
    loop = SimLoop(1)
    node = Process("node")

    async def main() -> tuple[bytes, list[str], list[str]]:
        network = SimNetwork(loop, random.Random(1))
        server = Server(Link())
        server.echo = False
        network.listen("198.51.100.1", 80, server)
        protocol = Recorder()
        transport = await loop.call(node, lambda: network.dial(node, "198.51.100.1", 80, protocol))
        node.at_death.append(lambda: network.cut(node, power=power))
        transport.write(b"before")
        await asyncio.sleep(0.1)
        loop.kill(node)
        transport.write(b"after")
        transport.close()
        await asyncio.sleep(60)
        protocol.lost.cancel()
        return server.data, server.life, protocol.life

    data, server_life, client_life = run(main(), loop=loop)
    assert data == b"before"
    assert server_life == (["made"] if power else ["made", "lost ConnectionResetError"])
    assert client_life == ["made"]
