"""Publishing the workflow through the client, in a thread, at an even pace.

A connection that breaks while the server is dead tells nothing about the event. The client repeats the call
under the same idempotency key until somebody answers; whatever the answer, it is one event.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from surehook.client import Client
from surehook.core.errors import SurehookError
from surehook.demo.plan import TENANT, DemoEvent

PATIENCE_S = 25.0  # for one event; a restart takes about two
THREADS = 4  # so that requests are under way at the moment of the kill


class DemoPublisher:
    """`accepted`: how many deliveries the server promised for each event id."""

    def __init__(self, url: str, key: str, steps: Sequence[DemoEvent], *, seconds: float) -> None:
        self.accepted: dict[str, int] = {}
        self.failure: SurehookError | None = None
        self._client = Client(url, key, timeout_s=5.0, patience_s=PATIENCE_S)
        self._steps = steps
        self._pause_s = seconds / max(len(steps), 1)
        self._next = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(THREADS)]

    def start(self) -> None:
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()

    @property
    def share(self) -> float:
        """Fraction of the workflow that is accepted, 0 to 1."""
        return len(self.accepted) / max(len(self._steps), 1)

    @property
    def is_done(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        """Publish nothing more; a call under way is given up when its patience ends."""
        self._stopped.set()
        self._client.close()

    def _work(self) -> None:
        while not self._stopped.is_set():
            with self._lock:
                place = self._next
                self._next += 1
            if place >= len(self._steps):
                return
            self._stopped.wait(max(0.0, self._began + place * self._pause_s - time.monotonic()))
            step = self._steps[place]
            try:
                sent = self._client.send(
                    step.type,
                    step.data,
                    tenant=TENANT,
                    key=step.key,
                    subject=step.subject,
                    sequence=step.sequence,
                )
            except SurehookError as error:
                self.failure = error
                self._stopped.set()
                return
            with self._lock:
                self.accepted[sent.id] = sent.deliveries
