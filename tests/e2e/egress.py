"""An honest CONNECT proxy in threads, and an https receiver with an authority of its own."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator

TURN_S = 10.0  # nothing of a test takes longer


class Proxy:
    """Opens every tunnel it is asked for; `heads` holds what it was told, byte for byte."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more tunnels."""
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                taken, _ = self._listener.accept()
                threading.Thread(target=self._tunnel, args=(taken,), daemon=True).start()

    def _tunnel(self, near: socket.socket) -> None:
        with near, contextlib.suppress(OSError):
            near.settimeout(TURN_S)
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += near.recv(1)
            self.heads.append(head)
            host, _, port = head.split()[1].decode().rpartition(":")
            with socket.create_connection((host.strip("[]"), int(port)), timeout=TURN_S) as far:
                near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=_pour, args=(far, near), daemon=True)
                back.start()
                _pour(near, far)
                back.join()


def _pour(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def secure_receiver(context: ssl.SSLContext, seen: list[bytes]) -> Iterator[int]:
    """The port of an https server that answers every request 200 and keeps its bytes in `seen`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_serve, args=(listener, context, seen), daemon=True).start()
        yield listener.getsockname()[1]


def _serve(listener: socket.socket, context: ssl.SSLContext, seen: list[bytes]) -> None:
    while True:
        try:
            taken, _ = listener.accept()
        except OSError:
            return
        with contextlib.suppress(OSError):
            taken.settimeout(TURN_S)
            with context.wrap_socket(taken, server_side=True) as secure:
                seen.append(secure.recv(65_536))
                secure.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
