"""How long a failed event waits."""

from __future__ import annotations

from msgspec import Struct


class Backoff(Struct, frozen=True):
    """How long a failed event waits: `first_s`, then `factor` times as long each time, up to `max_s`, plus up to `jitter` of it.

    The defaults give up after ten attempts and about three hours: a handler that still fails needs a person.
    """

    first_s: float = 1.0
    factor: float = 4.0
    max_s: float = 3600.0
    attempts: int = 10
    jitter: float = 0.2

    def wait_ms(self, attempts: int, fraction: float) -> int | None:
        """After so many attempts the wait, in milliseconds; None: it was the last. `fraction` is in [0, 1)."""
        if attempts >= self.attempts:
            return None
        wait = min(self.first_s * self.factor ** min(attempts - 1, 60), self.max_s)
        return round(wait * (1 + self.jitter * fraction) * 1000)
