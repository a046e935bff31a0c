"""Ports that stay a server's own through its restarts.

A port that the system hands out may be somebody's outgoing connection a moment later, just when a stopped server wants
it back. So ports are taken below the range of outgoing ones, and held against other runs on this machine by a socket in
the abstract namespace, which costs no file and goes with this process.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

LOWEST = 25_000
HIGHEST = 32_000
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
TRIES = 200

_held: set[int] = set()  # for the life of this process


def reserve() -> int:
    """A port on loopback where nobody listens and which no other run has reserved."""
    dice = random.SystemRandom()
    top = min(HIGHEST, int(EPHEMERAL.read_text().split()[0])) if EPHEMERAL.exists() else HIGHEST
    for _ in range(TRIES):
        port = dice.randrange(min(LOWEST, top - 1_000), top)
        if port not in _held and _hold(port) and _free(port):
            return port
    raise OSError(f"no free port in {TRIES} tries")


def noted(note: Path) -> int:
    """The port that a file tells; at first a reserved one, which is then written there."""
    if not note.exists():
        note.write_text(str(reserve()))
    return int(note.read_text())


def _hold(port: int) -> bool:
    mark = socket.socket(socket.AF_UNIX)
    try:
        mark.bind(f"\0surehook-tests-port-{port}")
    except OSError:
        mark.close()
        return False
    mark.detach()  # open until this process ends
    _held.add(port)
    return True


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def open_at(port: int, host: str = "127.0.0.1") -> bool:
    """Whether somebody listens there."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((host, port)) == 0
