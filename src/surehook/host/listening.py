"""The listening socket and its address."""

from __future__ import annotations

import errno
import socket

from surehook.core.errors import SettingsError

BACKLOG_CONNECTIONS = 2048  # connections the kernel may hold before we accept them


def bind(host: str, port: int) -> socket.socket:
    """The listening socket, taken before anything else is touched."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(BACKLOG_CONNECTIONS)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise SettingsError(
                "port",
                f"port {port} on {host} is taken",
                hint="--port 0 takes any free one",
            ) from None
        raise SettingsError("host", f"cannot listen on {host}: {error.strerror}") from None
    bound.setblocking(False)
    return bound


def address(host: str, bound: socket.socket) -> str:
    """URL of the server."""
    port = bound.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
