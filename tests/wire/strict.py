"""A TLS server on blocking sockets, as programs that link OpenSSL are: it says why it refuses.

asyncio's own server drops a failed handshake without its alert, so it cannot stand for those.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from types import TracebackType

TURN_S = 5.0  # nothing of a test takes longer


class StrictServer:
    """Answers 200 and closes, one connection after another; `heard` holds the requests."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.heard: list[bytes] = []
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> StrictServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                taken, _ = self._listener.accept()
            except OSError:
                return
            taken.settimeout(TURN_S)
            with taken, contextlib.suppress(OSError):
                with self._context.wrap_socket(taken, server_side=True) as secure:
                    self.heard.append(secure.recv(65_536))
                    secure.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
