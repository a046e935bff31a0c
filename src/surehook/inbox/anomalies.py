"""Anomalies that are no failures: another body under a known id, another result of a replay.

Each kind is logged ten times a second at most, and then how many more there were: all of them are counted, listed and kept
elsewhere.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from surehook.core import ids
from surehook.inbox.event import PREFIX
from surehook.inbox.log_limits import LinesPerSecond
from surehook.inbox.safe_log import log

LINES_S = 10


class Anomalies:
    """`boot` counts seconds."""

    def __init__(self, boot: Callable[[], float]) -> None:
        self._conflicts, self._changes = LinesPerSecond(boot, LINES_S), LinesPerSecond(boot, LINES_S)
        self._telling = threading.Lock()

    def conflict(self, source: str, stands: bytes) -> None:
        """Log that another body came under the id of an event that stands."""
        ref = ids.text(PREFIX, stands)
        self._tell(self._conflicts, f"another body under a known id of {source}: kept as a conflict of {ref}")

    def changed(self, event: bytes) -> None:
        """Log that a replay gave another result than the event gave before."""
        ref = ids.text(PREFIX, event)
        self._tell(self._changes, f"a replay of {ref} gave another result than before: see handler_version")

    def say_left_out(self, *, at_end: bool = False) -> None:
        """Log how many lines were not, where no further one did."""
        for lines, said in (
            (self._conflicts, "bodies under known ids"),
            (self._changes, "replays with another result"),
        ):
            if left_out := lines.rest(at_end=at_end):
                log.warning("%d further %s were not written", left_out, said)

    def _tell(self, lines: LinesPerSecond, said: str) -> None:
        with self._telling:
            left_out = lines.may()
        if left_out is not None:
            more = f" ({left_out} lines before this one were not written)" if left_out else ""
            log.warning("%s%s", said, more)
