"""Ports for children of ours that are told theirs before they start, and take them again after a restart."""

from __future__ import annotations

import random
import socket
from pathlib import Path

EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOWEST, HIGHEST = 15_000, 25_000
TRIES = 200


def free_port(host: str = "127.0.0.1") -> int:
    """A port where nobody listens now. Raises OSError where none is found.

    Not one that the system hands out: it may be somebody's outgoing connection before the child takes it. So it is
    below the range of those, at random, that two who look at once find two.
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
