"""Who this process is, and whether another process of this host is still there."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from surehook.core.model import Node


def this_node(node_id: bytes, *, now: int) -> Node:
    """A node row for this process start."""
    return Node(id=node_id, host=socket.gethostname(), boot_id=boot_id(), pid=os.getpid(), started_at=now)


def is_gone(node: Node) -> bool:
    """Whether the node's process certainly no longer runs: same host, and another boot or no such pid.

    A reused pid makes this answer False, which is safe: the beat will tell later.
    """
    if node.host != socket.gethostname():
        return False
    if node.boot_id != boot_id():
        return True
    try:
        os.kill(node.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def boot_id() -> str:
    """The kernel's id of this boot; empty where there is none (then only the pid speaks)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
