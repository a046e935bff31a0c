"""Refused requests: numbers and a few redacted samples in memory, never rows, so that forged traffic cannot fill a database."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable

from msgspec import Struct

from surehook.core import redact
from surehook.inbox.log_limits import LinesPerSecond
from surehook.inbox.safe_log import log

SAMPLES = 20  # the last of each source: enough to see what is wrong
KINDS = 4_000  # pairs of a source and a code of which samples are kept; names that nobody mounted are none
LINES_S = 1  # and samples, a second, of a source and code: 10,000 forgeries a second cost a counter each, and hide nothing else
HEADERS = 40  # of a sample


class Sample(Struct, frozen=True):
    """One refused request: when, why, its headers with values hidden, size and hash of its body. Never the body."""

    at: int
    code: str
    detail: str
    headers: dict[str, str]
    body_bytes: int
    body_sha256: str


class Refusals:
    """Counters by source and code since the process began, and samples. Safe for threads. `boot` counts seconds."""

    def __init__(self, boot: Callable[[], float]) -> None:
        self._boot = boot
        self.counts: Counter[tuple[str, str]] = Counter()
        self._samples: dict[str, deque[Sample]] = {}
        self._lines: dict[tuple[str, str], LinesPerSecond] = {}
        self._lock = threading.Lock()

    def note(
        self,
        source: str,
        code: str,
        detail: str,
        *,
        headers: Iterable[tuple[str, str]],
        body: bytes,
        now: int,
    ) -> None:
        with self._lock:
            self.counts[source, code] += 1
            lines = self._lines.get((source, code))
            if lines is None:
                if len(self._lines) >= KINDS:
                    return
                lines = self._lines[source, code] = LinesPerSecond(self._boot, LINES_S)
            left_out = lines.may()
            if left_out is None:
                return
            sample = Sample(now, code, redact.printable(detail), _shown(headers), len(body), _hash(body))
            self._samples.setdefault(source, deque(maxlen=SAMPLES)).append(sample)
        more = f"; {left_out} more like it were not written" if left_out else ""
        log.warning("refused a message of %s: %s (%s)%s", source, code, sample.detail, more)

    def say_left_out(self, *, at_end: bool = False) -> None:
        """Log how many refusals were not, where no further one of their kind did."""
        with self._lock:
            rests = [(kind, lines.rest(at_end=at_end)) for kind, lines in self._lines.items()]
        for (source, code), left_out in rests:
            if left_out:
                log.warning("refused %d further messages of %s: %s", left_out, source, code)

    def count(self, source: str, code: str) -> None:
        """Count a refusal of which no sample is worth keeping."""
        with self._lock:
            self.counts[source, code] += 1

    def counted(self) -> dict[tuple[str, str], int]:
        """Return the counters, as they are now."""
        with self._lock:
            return dict(self.counts)

    def samples(self, source: str) -> list[Sample]:
        """Return the last samples of a source, oldest first."""
        with self._lock:
            return list(self._samples.get(source, ()))


def _shown(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    shown: dict[str, str] = {}
    for name, value in headers:
        if len(shown) >= HEADERS:
            break
        shown[redact.printable(name, chars=64)] = redact.header(name, value)
    return shown


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]
