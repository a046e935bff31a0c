"""One seed, split into named streams, so that a new draw in one place leaves all others as they were."""

from __future__ import annotations

import random


class Seed:
    """The root of all chance in a world."""

    def __init__(self, seed: int | str) -> None:
        self.seed = seed

    def stream(self, name: str) -> random.Random:
        """The stream called `name`: the same seed and name give the same numbers on every Python."""
        return random.Random(f"{self.seed}/{name}")


class SimEntropy:
    """`ports.entropy.Entropy` over one stream."""

    def __init__(self, stream: random.Random) -> None:
        self._stream = stream

    def bits(self, count: int) -> bytes:
        return self._stream.randbytes(count)

    def random(self) -> float:
        return self._stream.random()
