"""Who this process is, and whether another process of this host is still there."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
from collections.abc import Callable
from pathlib import Path

from surehook.core.errors import SettingsError
from surehook.core.model import Node

DESCRIPTORS = 65_536  # both lanes at their largest and as many callers
OWN_DESCRIPTORS = 64  # ledger, log, broker, shared health, the listening socket
CALLERS_SHARE = 4  # callers may have one descriptor in so many where there are not enough for everybody


class LocalHost:
    """Who this process is, and whether another node's process is still there (`delivery.around.Host`).

    A name is no identity: cloned images and a fixed `hostname:` give one to many machines. So another process is judged
    only within one boot of one kernel *and* one space of process numbers, both of which must be known; to everybody else
    its lease speaks. The name has to be the same as well, for machines that were copied while they ran share even those.
    """

    def __init__(self, *, name: str, boot_id: str, pid: int, runs: Callable[[int], bool]) -> None:
        """`boot_id` as `boot_id` gives it. `runs`: whether a process of this number is there, for all that can be seen."""
        self._name = name
        self._boot_id = boot_id
        self._pid = pid
        self._runs = runs

    def this_node(self, node_id: bytes, *, now: int) -> Node:
        """A node row for this process start."""
        return Node(id=node_id, host=self._name, boot_id=self._boot_id, pid=self._pid, started_at=now)

    def is_gone(self, node: Node) -> bool:
        """Whether the process of another node certainly no longer runs.

        A number that is ours belonged to an earlier process. One that somebody else has now makes this answer False,
        which is safe: the beat will tell later.
        """
        boot, _, space = self._boot_id.partition(" ")
        is_in_sight = bool(boot and space) and (node.boot_id, node.host) == (self._boot_id, self._name)
        return is_in_sight and (node.pid == self._pid or not self._runs(node.pid))


def here() -> LocalHost:
    """This process, on this host."""
    return LocalHost(name=socket.gethostname(), boot_id=boot_id(), pid=os.getpid(), runs=runs)


def runs(pid: int) -> bool:
    """Whether there is a process of this number, as far as we may look."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


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


def need_descriptors() -> None:
    """Take what is allowed. Raises SettingsError where a server could not even begin: what would fail then is anything, and
    says nothing of the cause."""
    allowed = take_descriptors()
    if allowed < OWN_DESCRIPTORS:
        raise SettingsError(
            "ulimit -n",
            f"{allowed} open files are allowed, and a server needs {OWN_DESCRIPTORS} to begin with",
            hint="`ulimit -n 4096` in this shell, LimitNOFILE=4096 in a unit of systemd",
        )


def callers_within(allowed: int, *, wanted: int, deliveries: int) -> int:
    """How many callers may be connected so that deliveries and the ledger find descriptors, of the `wanted`."""
    return min(wanted, max(allowed - deliveries - OWN_DESCRIPTORS, allowed // CALLERS_SHARE))


def descriptors_allowed() -> int:
    """Descriptors that this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def boot_id() -> str:
    """The kernel's id of this boot, and of the space that pids are counted in; empty where either is unknown (then
    nobody's process is judged)."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""
