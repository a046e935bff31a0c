"""The choice of runs that share a transaction: those whose handlers are known to be quick.

What a handler writes stays locked until the commit: its rows on a server, all of the file on SQLite. So a slow one has a
transaction to itself, and neither waits with the rows of others in its hands nor lets others wait with its own. How long a
handler takes is remembered, the longest of late; one that was never seen is taken for slow, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from surehook.inbox.handlers import Handler, Handlers
from surehook.ports.inbox_runs import Run

QUICK_S = 0.05
LONG_S = 1.0  # as long as a batch may take by itself
# Of a long call, with each other one: 20 s are forgotten after some hundred and eighty quick ones.
FADES = 0.98
SHARE = 0.1  # of one call in what a handler commonly takes


class HandlerTimes:
    """The times that handlers take. `boot` counts seconds."""

    def __init__(self, handlers: Handlers, boot: Callable[[], float]) -> None:
        self._handlers = handlers
        self.boot = boot
        self._seen: dict[int, float] = {}  # by the handler's identity: they live as long as we do

    def took(self, handler: Handler, seconds: float) -> None:
        """Note the time of a call that is over."""
        before = self._seen.get(id(handler), seconds)
        if seconds >= LONG_S or before >= LONG_S:
            self._seen[id(handler)] = max(seconds, before * FADES)
        else:
            self._seen[id(handler)] = before + (seconds - before) * SHARE

    @property
    def is_known(self) -> bool:
        """True once a handler was at work."""
        return bool(self._seen)

    def together(self, runs: Sequence[Run]) -> int:
        """Count those, from the first on, that share a transaction; none: the first one has it alone."""
        for number, run in enumerate(runs):
            for handler in self._handlers.fitting(run.source, run.type):
                if self._seen.get(id(handler), QUICK_S) >= QUICK_S:
                    return number
        return len(runs)
