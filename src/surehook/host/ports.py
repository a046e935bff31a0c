"""Ports for child processes that get theirs before they start, and keep them over a restart."""

from __future__ import annotations

import random
import socket
from pathlib import Path

EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOWEST, HIGHEST = 15_000, 25_000
TRIES = 200


def free_port(host: str = "127.0.0.1") -> int:
    """A port on which nothing listens now. Raises OSError where none is found.

    It is below the range that the system hands out, or an outgoing connection might have it before the child does; and
    chosen at random, so that two callers at once find two ports.
    """
    dice = random.SystemRandom()
    top = min(HIGHEST, int(EPHEMERAL.read_text().split()[0])) if EPHEMERAL.exists() else HIGHEST
    for _ in range(TRIES):
        port = dice.randrange(min(LOWEST, top - 1_000), top)
        with socket.socket() as probe:
            try:
                probe.bind((host, port))
            except OSError:
                continue
        return port
    raise OSError(f"no free port in {TRIES} tries")
