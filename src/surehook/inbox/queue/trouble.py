"""Log lines about a queue that cannot be used: when that begins, once a minute while it lasts, and when it is over."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from surehook.inbox.log_limits import OncePer
from surehook.inbox.queue.port import QueueAway, QueueUnfit
from surehook.inbox.safe_log import log

AGAIN_S = 60.0
GAP_S = 1.0  # between two lines, however often it comes and goes


class QueueTrouble:
    """`meanwhile`: what is done in the meantime, as the lines say it. `boot` counts seconds."""

    def __init__(self, meanwhile: str, boot: Callable[[], float]) -> None:
        self._meanwhile, self._boot = meanwhile, boot
        self._again, self._gap = OncePer(boot, AGAIN_S), OncePer(boot, GAP_S)
        self._began: float | None = None
        self._lock = threading.Lock()

    def met(self, error: Exception) -> None:
        with self._lock:
            if self._began is None:
                self._began, self._again = self._boot(), OncePer(self._boot, AGAIN_S)
            if not self._again.may(type(error).__name__) or not self._gap.may("met"):
                return
        mended = isinstance(error, QueueUnfit) or not isinstance(error, QueueAway)  # by a person alone
        log.log(
            logging.ERROR if mended else logging.WARNING,
            "the queue in front of the inbox cannot be used, %s: %s",
            self._meanwhile,
            error,
            exc_info=None if isinstance(error, QueueAway) else error,
        )

    def full(self) -> None:
        """Log that the broker is there and takes no more."""
        with self._lock:
            if self._again.may("full") and self._gap.may("met"):
                log.warning("the queue in front of the inbox is full, %s", self._meanwhile)

    def over(self) -> None:
        if self._began is None:
            return
        with self._lock:
            began, self._began = self._began, None
            if began is not None and self._gap.may("over"):
                log.warning(
                    "the queue in front of the inbox can be used again, after %.0f s", self._boot() - began
                )
