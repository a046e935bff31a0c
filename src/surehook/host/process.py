"""Who this process is, and whether another process of this host is still there."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
from pathlib import Path

from surehook.core.model import Node

DESCRIPTORS = 65_536  # both lanes at their largest and as many callers


def this_node(node_id: bytes, *, now: int) -> Node:
    """A node row for this process start."""
    return Node(id=node_id, host=socket.gethostname(), boot_id=boot_id(), pid=os.getpid(), started_at=now)


def is_gone(node: Node) -> bool:
    """Whether the process of another node certainly no longer runs: same host, and another boot, no such pid, or our own.

    A pid that somebody else has now makes this answer False, which is safe: the beat will tell later. So does
    another container of this host, into which we cannot look.
    """
    if node.host != socket.gethostname():
        return False
    boot, _, container = boot_id().partition(" ")
    its_boot, _, its_container = node.boot_id.partition(" ")
    if its_boot != boot:
        return True
    if its_container != container:
        return False
    if node.pid == os.getpid():
        return True
    try:
        os.kill(node.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def take_descriptors() -> int:
    """Allow this process as many open files as it may have, up to `DESCRIPTORS`; how many that is.

    A request in flight, a kept connection and a caller of the API are one each, and the usual allowance of 1,024
    is less than the slots of both lanes.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    with contextlib.suppress(OSError, ValueError):  # a system that allows less than it says
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def boot_id() -> str:
    """The kernel's id of this boot, and of the space that pids are counted in; empty where there are none (then only
    the pid speaks)."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""
