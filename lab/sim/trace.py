"""Record of what happened, in order: a digest over everything, and the last lines for people."""

from __future__ import annotations

import hashlib
from collections import Counter, deque

from lab.sim.loop import SimLoop

LINES_KEPT = 2_000  # about 200 kB: enough to see what led to a finding


class Trace:
    """The story of one run. Two runs are the same if their digests are.

    `counts` says how often each kind of thing happened: a campaign in which a fault never fired has not
    tested it.
    """

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self._began = loop.time()
        self._hash = hashlib.blake2b(digest_size=16)
        self.counts: Counter[str] = Counter()
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        self.finding: str | None = None

    def note(self, kind: str, text: str = "") -> None:
        line = f"{self._loop.time() - self._began:12.4f} {self._loop.steps:8d} {kind} {text}"
        self._hash.update(line.encode())
        self._hash.update(b"\n")
        self.counts[kind.partition(" ")[0]] += 1
        if self.finding is None:
            self.lines.append(line)

    def stop(self, finding: str) -> None:
        """The lines end with what was found; what happens until the run ends is not worth reading."""
        self.note("FINDING", finding)
        self.finding = finding

    def fired(self, kind: str) -> None:
        """A fault or a rare branch that leaves no line of its own."""
        self.counts[kind] += 1

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()
