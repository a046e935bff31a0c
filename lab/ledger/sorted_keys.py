"""Keys in order: add, remove, walk and count in far less than one pass over all.

A list of sorted blocks. A key is found by bisecting the blocks' last keys and then one block, so a change
moves at most a block's worth of pointers, and counting adds up block lengths. With a million keys that is
about a thousand blocks. (One `bisect.insort` list moves megabytes for each change in its middle; a heap
can neither be walked nor counted.)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Any)

# Keys in a block before it is split in two: keeps both steps of a look-up near a thousand at a million keys.
BLOCK_KEYS_MAX = 1_024


class SortedKeys(Generic[K]):
    """A set of comparable keys in ascending order. It must not change while a walk over it is under way."""

    __slots__ = ("_blocks", "_lasts", "_size")

    def __init__(self) -> None:
        self._blocks: list[list[K]] = []
        self._lasts: list[K] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __contains__(self, key: K) -> bool:
        at = bisect_left(self._lasts, key)
        if at == len(self._blocks):
            return False
        block = self._blocks[at]
        return bool(block[bisect_left(block, key)] == key)

    def add(self, key: K) -> None:
        """Put the key in; a key that is there already stays once."""
        if key in self:
            return
        self._size += 1
        if not self._blocks:
            self._blocks.append([key])
            self._lasts.append(key)
            return
        at = min(bisect_left(self._lasts, key), len(self._blocks) - 1)
        block = self._blocks[at]
        insort(block, key)
        self._lasts[at] = block[-1]
        if len(block) > BLOCK_KEYS_MAX:
            half = len(block) // 2
            self._blocks[at : at + 1] = [block[:half], block[half:]]
            self._lasts[at : at + 1] = [block[half - 1], block[-1]]

    def discard(self, key: K) -> None:
        """Take the key out; one that is not there is no error."""
        if key not in self:
            return
        self._size -= 1
        at = bisect_left(self._lasts, key)
        block = self._blocks[at]
        del block[bisect_left(block, key)]
        if block:
            self._lasts[at] = block[-1]
        else:
            del self._blocks[at]
            del self._lasts[at]

    def ascending(self, start: K | None = None) -> Iterator[K]:
        """Keys from the smallest (from `start`, itself included) upwards."""
        at = 0 if start is None else bisect_left(self._lasts, start)
        for index in range(at, len(self._blocks)):
            block = self._blocks[index]
            within = bisect_left(block, start) if start is not None and index == at else 0
            for place in range(within, len(block)):
                yield block[place]

    def descending(self, below: K | None = None) -> Iterator[K]:
        """Keys from the largest (from the largest below `below`) downwards."""
        at = len(self._blocks) - 1
        if below is not None:
            at = min(bisect_left(self._lasts, below), at)
        for index in range(at, -1, -1):
            block = self._blocks[index]
            within = bisect_left(block, below) if below is not None and index == at else len(block)
            for place in range(within - 1, -1, -1):
                yield block[place]

    def first(self) -> K | None:
        return self._blocks[0][0] if self._blocks else None

    def count_upto(self, key: K) -> int:
        """Count the keys at or below `key`."""
        at = bisect_right(self._lasts, key)
        whole = sum(map(len, self._blocks[:at]))
        return whole if at == len(self._blocks) else whole + bisect_right(self._blocks[at], key)
