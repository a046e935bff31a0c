"""Refused requests: numbers and a few redacted samples in memory, never rows, so that forged traffic cannot fill a database."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, deque
from collections.abc import Iterable

from msgspec import Struct

from surehook.core import redact
from surehook.inbox.safe_log import log

SAMPLES = 20  # the last of each source: enough to see what is wrong
SOURCES = 200  # names of which samples are kept; names that nobody mounted are not counted one by one
# One sample and one log line a second and source: 10,000 forgeries a second cost a counter each.
SAMPLE_EVERY_MS = 1_000
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
    """Counters by source and code since the process began, and samples. Safe for threads."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self._samples: dict[str, deque[Sample]] = {}
        self._last: dict[str, int] = {}
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
            last = self._last.get(source)
            if last is not None and 0 <= now - last < SAMPLE_EVERY_MS:
                return
            if last is None and len(self._last) >= SOURCES:
                return
            self._last[source] = now
            sample = Sample(now, code, redact.printable(detail), _shown(headers), len(body), _hash(body))
            self._samples.setdefault(source, deque(maxlen=SAMPLES)).append(sample)
        log.warning("refused a message of %s: %s (%s)", source, code, sample.detail)

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
