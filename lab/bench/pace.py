"""Instants of a fixed rate, kept to a tenth of a millisecond.

An event loop's timers are whole milliseconds, which is as long as the latencies to be measured. So a
thread of its own sleeps to each instant and wakes the loop through an eventfd.
"""

from __future__ import annotations

import os
import threading
import time

STEP_NS = 500_000  # at high rates several instants share one waking


class Pacer:
    """Wakes a loop when something is due: `fd` becomes readable. Instant i is start + i × interval."""

    def __init__(self, rate: float, total: int) -> None:
        self.interval_ns = 1e9 / rate
        self.total = total
        self.fd = os.eventfd(0, os.EFD_NONBLOCK)
        self.start_ns = 0
        self.given = 0
        self._stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        """The first instant is now."""
        self.start_ns = time.monotonic_ns()
        self._thread.start()

    def due(self) -> list[int]:
        """The instants that have come since the last call."""
        os.eventfd_read(self.fd)
        until = min(self.total, int((time.monotonic_ns() - self.start_ns) / self.interval_ns) + 1)
        instants = [self.start_ns + int(i * self.interval_ns) for i in range(self.given, until)]
        self.given = until
        return instants

    def stop(self) -> None:
        """Give no more. The thread ends by itself; waiting for it would hold up the loop's last answers."""
        self._stopped = True

    def _run(self) -> None:
        number, step = 0, max(1, round(STEP_NS / self.interval_ns))
        while number < self.total and not self._stopped:
            # Short naps, so that a stop is noticed within a tenth of a second at the slowest rates.
            wait = (self.start_ns + number * self.interval_ns - time.monotonic_ns()) / 1e9
            if wait > 0.1:
                time.sleep(0.1)
                continue
            if wait > 0:
                time.sleep(wait)
            os.eventfd_write(self.fd, 1)
            number = min(number + step, self.total - 1) if number < self.total - 1 else self.total
