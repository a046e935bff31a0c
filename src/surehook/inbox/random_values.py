"""Ids and random values, for all threads of an inbox."""

from __future__ import annotations

import threading

from surehook.core import ids
from surehook.ports.entropy import Entropy


class RandomValues:
    """Random values from one source of entropy, for one thread at a time."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._lock = threading.Lock()
        self._counted = self._count = 0

    def identify(self, now: int) -> bytes:
        """Make an id of sixteen bytes for this instant (Unix milliseconds); within one process, ids sort as they were made.

        The twelve bits after the version count within a millisecond (RFC 9562, method 1).
        """
        with self._lock:
            self._count = self._count + 1 if now == self._counted else 0
            self._counted = now
            return ids.uuid7(now, (self._count & 0xFFF).to_bytes(2, "big") + self._entropy.bits(8))

    def fraction(self) -> float:
        """Draw a number in [0, 1)."""
        with self._lock:
            return self._entropy.random()

    def bits(self, count: int) -> bytes:
        """Draw so many bytes."""
        with self._lock:
            return self._entropy.bits(count)

    def token(self) -> bytes:
        """Make a token that identifies a lease."""
        return self.bits(16)
