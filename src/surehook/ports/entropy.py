"""Randomness, handed in."""

from __future__ import annotations

from typing import Protocol


class Entropy(Protocol):
    def bits(self, count: int) -> bytes:
        """`count` unpredictable bytes, fit for secrets."""
        ...

    def random(self) -> float:
        """A number in [0, 1), for jitter."""
        ...
