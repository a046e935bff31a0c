"""The proxy cuts when it is told to, and only then."""

from __future__ import annotations

import gc
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from tests.servers.proxy import CuttingProxy, When


class Echo:
    """A server that answers each line with itself, and writes down what it got."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                taken, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._echo, args=(taken,), daemon=True).start()

    def _echo(self, taken: socket.socket) -> None:
        with taken, taken.makefile("rb") as lines:
            try:
                for line in lines:
                    self.got.append(line)
                    taken.sendall(line)
            except OSError:
                return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    made = Echo()
    yield made
    made.close()


@pytest.fixture
def proxy(echo: Echo) -> Iterator[CuttingProxy]:
    with CuttingProxy(echo.port) as made:
        yield made


def connect(proxy: CuttingProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=10)


def ended(wire: socket.socket) -> bool:
    try:
        return wire.recv(100) == b""
    except ConnectionResetError:
        return True


def test_bytes_go_both_ways(proxy: CuttingProxy):
    with connect(proxy) as wire:
        wire.sendall(b"hello\n")
        assert wire.recv(100) == b"hello\n"
    assert proxy.taken == 1


@pytest.mark.parametrize(("when", "arrives"), [("seen", False), ("sent", True), ("answered", True)])
def test_a_trap_cuts_at_its_bytes(echo: Echo, proxy: CuttingProxy, when: When, arrives: bool):
    proxy.cut_at(b"COMMIT", when=when)
    with connect(proxy) as wire, connect(proxy) as other:
        wire.sendall(b"begin\n")
        assert wire.recv(100) == b"begin\n"
        wire.sendall(b"COMMIT\n")
        assert ended(wire)
        assert proxy.cuts == 1
        other.sendall(b"COMMIT\n")  # the trap is spent
        assert other.recv(100) == b"COMMIT\n"
    if when != "sent":  # a server may read what came just before the cut, or lose it
        assert (echo.got.count(b"COMMIT\n") == 2) is arrives


def test_a_pattern_is_found_across_two_chunks(echo: Echo, proxy: CuttingProxy):
    proxy.cut_at(b"COMMIT", when="seen")
    with connect(proxy) as wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire.sendall(b"one\nCOM")
        assert wire.recv(100) == b"one\n"
        wire.sendall(b"MIT\n")
        assert ended(wire)


def test_cut_ends_all_connections_and_takes_new_ones(proxy: CuttingProxy):
    with connect(proxy) as one, connect(proxy) as two:
        for wire in (one, two):
            wire.sendall(b"here\n")
            assert wire.recv(100) == b"here\n"
        assert proxy.cut() == 2
        assert ended(one)
        assert ended(two)
    with connect(proxy) as wire:
        wire.sendall(b"again\n")
        assert wire.recv(100) == b"again\n"


def test_refuse_refuses_until_accept(proxy: CuttingProxy):
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
    proxy.accept()
    connect(proxy).close()


def test_freeze_holds_bytes_back_until_thaw(echo: Echo, proxy: CuttingProxy):
    with connect(proxy) as wire:
        wire.sendall(b"before\n")
        assert wire.recv(100) == b"before\n"
        proxy.freeze()
        wire.sendall(b"meanwhile\n")
        wire.settimeout(0.2)
        with pytest.raises(TimeoutError):
            wire.recv(100)
        assert echo.got == [b"before\n"]
        proxy.thaw()
        wire.settimeout(10)
        assert wire.recv(100) == b"meanwhile\n"


def test_a_dead_server_ends_the_clients_connection():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with CuttingProxy(port) as proxy, connect(proxy) as wire:
        assert ended(wire)


def test_of_several_servers_the_first_that_takes_the_connection_gets_it(echo: Echo):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        closed = probe.getsockname()[1]
    with CuttingProxy(closed, echo.port) as proxy, connect(proxy) as wire:
        wire.sendall(b"hello\n")
        assert wire.recv(100) == b"hello\n"


def test_a_connection_that_has_just_been_made_is_closed_with_the_proxy(echo: Echo):
    for _ in range(100):
        with CuttingProxy(echo.port) as proxy:
            connect(proxy).close()
        gc.collect()  # a socket left open is a ResourceWarning, which is an error here


def test_a_server_that_resets_a_connection_is_seen_by_its_client() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        CuttingProxy(listener.getsockname()[1]) as proxy,
        connect(proxy) as client,
    ):
        taken, _ = listener.accept()
        client.sendall(b"x")
        assert taken.recv(1) == b"x"
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        taken.close()
        try:
            assert client.recv(1) == b""
        except ConnectionResetError:
            return
