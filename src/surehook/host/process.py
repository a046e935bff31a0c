"""The identity of this process, and whether another process of this host still runs."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
from collections.abc import Callable
from pathlib import Path

from surehook.core.errors import SettingsError
from surehook.core.model import NodeRow

DESCRIPTORS = 65_536  # both lanes at their largest and as many callers
OWN_DESCRIPTORS = 64  # ledger, log, broker, shared health, the listening socket
CALLERS_SHARE = 4  # callers may have one descriptor in so many where there are not enough for all


class LocalHost:
    """The identity of this process, and a judgement of other nodes' processes (`delivery.node.Host`).

    A name is no identity: cloned images and a fixed `hostname:` give one to many machines. So another process is judged
    only within one boot of one kernel *and* one space of process numbers, both of which must be known; for all others
    only the lease counts. The name has to be the same as well, since machines that were copied while they ran share even
    those.
    """

    def __init__(self, *, name: str, boot_id: str, pid: int, runs: Callable[[int], bool]) -> None:
        """`boot_id` as returned by `boot_id`. `runs` says whether a process of this number exists, as far as can be seen."""
        self._name = name
        self._boot_id = boot_id
        self._pid = pid
        self._runs = runs

    def this_node(self, node_id: bytes, *, now: int) -> NodeRow:
        """A node row for this process start."""
        return NodeRow(id=node_id, host=self._name, boot_id=self._boot_id, pid=self._pid, started_at=now)

    def is_gone(self, node: NodeRow) -> bool:
        """True if the process of another node certainly no longer runs.

        If its number is ours, it belonged to an earlier process. If another process has the number now, the answer is
        False, which is safe: the lease will lapse.
        """
        boot, _, space = self._boot_id.partition(" ")
        is_in_sight = bool(boot and space) and (node.boot_id, node.host) == (self._boot_id, self._name)
        return is_in_sight and (node.pid == self._pid or not self._runs(node.pid))


def here() -> LocalHost:
    """This process, on this host."""
    return LocalHost(name=socket.gethostname(), boot_id=boot_id(), pid=os.getpid(), runs=runs)


def runs(pid: int) -> bool:
    """True if there is a process of this number, as far as we may look."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def take_descriptors() -> int:
    """Allow this process as many open files as it may have, up to `DESCRIPTORS`; returns the number.

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
    """Take the descriptors that are allowed. Raises SettingsError where a server could not begin with them: anything could
    fail then, with an error that does not name the cause."""
    allowed = take_descriptors()
    if allowed < OWN_DESCRIPTORS:
        raise SettingsError(
            "ulimit -n",
            f"{allowed} open files are allowed, and a server needs {OWN_DESCRIPTORS} to begin with",
            hint="`ulimit -n 4096` in this shell, LimitNOFILE=4096 in a unit of systemd",
        )


def callers_within(allowed: int, *, wanted: int, deliveries: int) -> int:
    """Number of callers, `wanted` at most, that may be connected and leave descriptors for deliveries and the ledger."""
    return min(wanted, max(allowed - deliveries - OWN_DESCRIPTORS, allowed // CALLERS_SHARE))


def descriptors_allowed() -> int:
    """Descriptors that this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def boot_id() -> str:
    """The kernel's id of this boot and of the pid namespace; empty where either is unknown (then no process is judged)."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""
