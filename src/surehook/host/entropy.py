"""The operating system's randomness, drawn in blocks: one system call for some four hundred ids."""

from __future__ import annotations

import os

BLOCK_BYTES = 4096


class SystemEntropy:
    """ports.Entropy on the kernel's generator."""

    __slots__ = ("_at", "_block")

    def __init__(self) -> None:
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
