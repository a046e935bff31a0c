"""This process among the nodes of its ledger: its identity, its lease, its life and its failure, in one object.

Every part that writes as this node, or sends under its lease, is handed it. A node that others have judged dead was evicted
by them: what it held belongs to somebody else, and this process goes on under a new id (`delivery/membership.py`). So an
answer that comes late is asked of by `is_still`: the rows it brings are ours only where the node that asked still is.

A ledger that cannot be trusted any more ends the engine (`failure` says why): the process should stop and be started again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from surehook.core import model
from surehook.core.errors import NodeEvicted
from surehook.delivery.settings import EngineSettings
from surehook.ports.clock import Clock
from surehook.ports.telemetry import Telemetry


class Host(Protocol):
    """Who this process is (host/process.py)."""

    def this_node(self, node_id: bytes, *, now: int) -> model.NodeRow: ...
    def is_gone(self, node: model.NodeRow) -> bool: ...


class Node:
    """Who we are now. `id` is empty before the first life; `running` from the start's end to the shutdown's beginning."""

    def __init__(self, *, clock: Clock, settings: EngineSettings, telemetry: Telemetry) -> None:
        self._boot = clock.boot
        self._least_s = settings.lease_left_s
        self._telemetry = telemetry
        self._life = 0  # counts up with each life that others have ended
        self._lease_until = 0.0
        self._last_beat = 0.0
        self.id = b""
        self.running = False
        # others have judged this node dead, and nobody has answered to that yet
        self.evicted = asyncio.Event()
        self.failure: str | None = None
        self.failed = asyncio.Event()

    def is_still(self, asked: bytes) -> bool:
        """Tell whether the node that asked something is the one that hears the answer."""
        return asked == self.id

    def fail(self, error: BaseException) -> None:
        """Take note of trouble that no loop can mend: this node was evicted, or the ledger said no for good and the
        process should end."""
        if isinstance(error, NodeEvicted):
            if self.is_still(error.node):  # else a former one was, which is known
                self.evicted.set()
            return
        if self.failure is None:
            self.failure = str(error) or type(error).__name__
            self._telemetry.fact("engine.failed", error=self.failure)
        self.failed.set()

    # -- the lease --------------------------------------------------------------------------------------

    def beaten(self, began: float, *, lease_s: float) -> None:
        """A beat that began then, by the boot clock, was committed."""
        self._last_beat, self._lease_until = began, began + lease_s

    def lease_left(self) -> float:
        """Seconds of lease that remain."""
        return self._lease_until - self._boot()

    def may_send(self) -> bool:
        """Tell whether enough of the lease remains to begin a request."""
        return self.lease_left() >= self._least_s

    def silent(self) -> float:
        """Seconds since the beginning of the last beat that was committed."""
        return self._boot() - self._last_beat

    # -- the life ---------------------------------------------------------------------------------------

    def goes_by(self, id: bytes) -> None:
        """Take the id that this node is known by from now on."""
        self.id = id

    def begin_running(self) -> None:
        """The start is over: work may come in and go out."""
        self.running = True

    def stop_running(self) -> None:
        """The shutdown begins."""
        self.running = False

    def end_life(self) -> None:
        """Others have what this node held: nothing more may be written under its lease."""
        self._life += 1
        self._lease_until = 0.0

    def permit(self) -> Callable[[], bool]:
        """Make the question that every request of this life asks in the step that writes its first byte: dialling may
        have taken the rest of the lease, or outlived the node that began it."""
        life, boot, least_s = self._life, self._boot, self._least_s

        def may_write() -> bool:
            return self._life == life and self._lease_until - boot() >= least_s

        return may_write
