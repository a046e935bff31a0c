"""What an engine needs of the program around it, besides its ports."""

from __future__ import annotations

from typing import Protocol

from surehook.core.model import Node
from surehook.core.steps import Steps


class Host(Protocol):
    """Who this process is (host/process.py)."""

    def this_node(self, node_id: bytes, *, now: int) -> Node: ...
    def is_gone(self, node: Node) -> bool: ...


class Metrics(Protocol):
    """Renders the engine's counters (telemetry/prometheus.py)."""

    async def rendering(self) -> Steps[bytes]: ...


class NoMetrics:
    """Where nobody asks for metrics."""

    async def rendering(self) -> Steps[bytes]:
        return _nothing()


def _nothing() -> Steps[bytes]:
    yield 0
    return b""
