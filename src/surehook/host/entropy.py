"""The operating system's randomness, drawn in blocks: one system call for some four hundred ids.

A child process draws a block of its own: with its parent's it would make the same ids, and the same tokens of leases.
"""

from __future__ import annotations

import os

from surehook.host.forking import renew_in_children

BLOCK_BYTES = 4096


class SystemEntropy:
    """ports.Entropy on the kernel's generator."""

    __slots__ = ("__weakref__", "_at", "_block")

    def __init__(self) -> None:
        self.forked()
        renew_in_children(self)

    def forked(self) -> None:
        """Forget what was drawn."""
        self._block = b""
        self._at = 0

    def bits(self, count: int) -> bytes:
        at = self._at
        taken = self._block[at : at + count]
        if len(taken) < count:
            if count > BLOCK_BYTES:
                return os.urandom(count)
            self._block = os.urandom(BLOCK_BYTES)
            at, taken = 0, self._block[:count]
        self._at = at + count
        return taken

    def random(self) -> float:
        return int.from_bytes(self.bits(7), "big") / (1 << 56)
