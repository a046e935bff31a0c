"""Long work in steps: a generator that tells what each step has cost and returns what comes of it.

Whoever drives it decides what happens between two steps. A cost is told in bytes that are decoded, of `COST_S` each.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[int, None, T]

COST_S = 5e-9  # about
SLICE_COST = 256 * 1024  # steps that may follow each other while others wait: 1 to 2 ms


def at_once(work: Steps[T]) -> T:
    """All steps one after another."""
    while True:
        try:
            next(work)
        except StopIteration as found:
            result: T = found.value
            return result
