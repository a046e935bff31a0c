"""A transaction ended under the hands of a thread that hangs in it: its connection is shut, and the server rolls back.

Drivers are not made to be called by two threads; the socket that they use may be shut by anybody. A statement that waits in that
moment comes back with an error.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Any


def cut(driver: object) -> bool:
    """Shut a driver's connection; whether it could be found. A proxy in between ends the transaction as a server would."""
    with suppress(Exception):
        if hasattr(driver, "terminate"):  # asyncpg
            driver.terminate()
            return True
        with socket.socket(fileno=os.dup(_number(driver))) as shared:
            shared.shutdown(socket.SHUT_RDWR)
            return True
    return False


def watched(driver: object, silent_s: int) -> None:
    """Have the operating system end a driver's connection when the other machine has confirmed nothing for so many seconds, also
    where nothing was sent. What the operating system lacks is left out, and a socket of this machine needs nothing."""
    with suppress(Exception), socket.socket(fileno=os.dup(_number(driver))) as shared:
        if shared.family == socket.AF_UNIX:
            return
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        shared.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, silent_s // 2)
        shared.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(silent_s // 6, 1))
        shared.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        shared.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, silent_s * 1000)


def _number(driver: Any) -> int:
    """Find its file descriptor: of psycopg and psycopg2; of PyMySQL; of asyncmy and aiomysql, whose sockets an event loop has."""
    if hasattr(driver, "fileno"):
        return int(driver.fileno())
    held = getattr(driver, "_transport", None) or getattr(driver, "_writer", None)
    owner = driver._sock if held is None else held.get_extra_info("socket")
    return int(owner.fileno())
