"""The wait of a failed event before its next attempt."""

from __future__ import annotations

from msgspec import Struct

from surehook.core.errors import SettingsError
from surehook.inbox.rules import check_kind, within

WAIT_MOST_S = 30 * 86_400.0  # longer than that nobody remembers what was waited for
ATTEMPTS_MOST = 1_000
AGAIN_MS = (1_000, 3_600_000)  # least and most, by when a document is looked at again that could not go on

# Field → least, most, unit. Sixty times a thousand-fold is a number that a float holds.
_BOUNDS: dict[str, tuple[float, float, str]] = {
    "first_s": (0, WAIT_MOST_S, "seconds"),
    "factor": (1, 1_000, "times as long"),
    "max_s": (0, WAIT_MOST_S, "seconds"),
    "attempts": (1, ATTEMPTS_MOST, "attempts"),
    "jitter": (0, 1, "of a wait"),
}


class Backoff(Struct, frozen=True):
    """The wait of a failed event: `first_s`, then `factor` times as long each time, up to `max_s`, plus up to `jitter` of it.

    The defaults give up after ten attempts and about three hours: a handler that still fails needs a person. Raises
    SettingsError.
    """

    first_s: float = 1.0
    factor: float = 4.0
    max_s: float = 3600.0
    attempts: int = 10
    jitter: float = 0.2

    def __post_init__(self) -> None:
        for field, (least, most, unit) in _BOUNDS.items():
            within(field, getattr(self, field), least, most, unit, hint="Backoff(first_s=60, attempts=5)")
        if not isinstance(self.attempts, int):
            raise SettingsError("attempts", "a whole number", hint="Backoff(attempts=5)")

    def wait_ms(self, attempts: int, fraction: float) -> int | None:
        """After so many attempts the wait, in milliseconds; None: it was the last. `fraction` is in [0, 1)."""
        if attempts >= self.attempts:
            return None
        wait = min(self.first_s * self.factor ** min(attempts - 1, 60), self.max_s)
        return round(wait * (1 + self.jitter * fraction) * 1000)


def checked_backoff(backoff: Backoff | None) -> Backoff:
    """Check the waits of an inbox; None: the defaults. Raises SettingsError."""
    check_kind("backoff", backoff, Backoff, hint="backoff=Backoff(first_s=60, attempts=5)")
    return backoff or Backoff()


def for_as_long(ms: int, bounds: tuple[int, int] = AGAIN_MS) -> int:
    """Put off for as long as something has lasted, within bounds: twice as long each time, so that it costs little."""
    least, most = bounds
    return min(max(ms, least), most)
