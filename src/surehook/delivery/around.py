"""What an engine needs of the program around it, besides its ports."""

from __future__ import annotations

from typing import Protocol

from surehook.core.model import Node


class Host(Protocol):
    """Who this process is (host/process.py)."""

    def this_node(self, node_id: bytes, *, now: int) -> Node: ...
    def is_gone(self, node: Node) -> bool: ...
