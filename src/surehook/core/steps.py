"""Long work in steps: a generator that yields the cost of each step and returns the result.

The caller decides what happens between two steps. Costs are given as bytes to decode, of `COST_S` each.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[int, None, T]

COST_S = 5e-9  # about
SLICE_COST = 256 * 1024  # cost of steps without a break while other work waits: 1 to 2 ms


def at_once(work: Steps[T]) -> T:
    """Run all steps; returns the result."""
    while True:
        try:
            next(work)
        except StopIteration as found:
            result: T = found.value
            return result
