"""What waits in the kernel when an idle connection is taken: nobody has told of it yet, and it must not be an answer."""

from __future__ import annotations

import asyncio
import socket

import pytest
import uvloop

from tests.wire.posting import client, post, until

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Peer:
    """A receiver without a loop: what it does is done between two turns of the client's."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/hook"

    async def answer(self, task: asyncio.Task[object]) -> socket.socket:
        """Take the next connection and answer its request."""
        loop = asyncio.get_running_loop()
        self.listener.setblocking(False)
        async with asyncio.timeout(2):
            peer, _ = await loop.sock_accept(self.listener)
            peer.setblocking(False)
            await loop.sock_recv(peer, 65_536)
            await loop.sock_sendall(peer, OK)
            await task
        return peer


def heard(peer: socket.socket) -> bytes:
    """What waits to be read, without a wait."""
    try:
        return peer.recv(65_536)
    except (BlockingIOError, ConnectionResetError):
        return b""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("news", [OK.replace(b"200", b"201"), b"\r", b"HTTP/1.1 408 Idle\r\n\r\n", None])
def test_what_came_before_a_request_is_no_answer_to_it(loop, news):
    async def case():
        peer = Peer()
        wire = client()
        first = asyncio.ensure_future(post(wire, peer.url))
        old = await peer.answer(first)
        assert len(wire.shared.pool.open) == 1
        if news is None:
            old.shutdown(socket.SHUT_WR)  # an end is news too: no byte may be written behind it
        else:
            old.send(news)
        second = asyncio.ensure_future(post(wire, peer.url))
        new = await peer.answer(second)
        assert (second.result().status, second.result().failure) == (200, None)
        assert second.result().connect_us is not None, "a connection of its own"
        await until(lambda: len(wire.shared.pool.open) == 1)
        assert not heard(old), "nothing was written to the first"
        await wire.close()
        for found in (old, new, peer.listener):
            found.close()

    {"asyncio": asyncio.run, "uvloop": uvloop.run}[loop](case())


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_without_news_the_connection_is_used_again(loop):
    async def case():
        peer = Peer()
        wire = client()
        old = await peer.answer(asyncio.ensure_future(post(wire, peer.url)))
        second = asyncio.ensure_future(post(wire, peer.url))
        await asyncio.get_running_loop().sock_recv(old, 65_536)
        await asyncio.get_running_loop().sock_sendall(old, OK)
        assert (await second).connect_us is None
        await wire.close()
        old.close()
        peer.listener.close()

    {"asyncio": asyncio.run, "uvloop": uvloop.run}[loop](case())
