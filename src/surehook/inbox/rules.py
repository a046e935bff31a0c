"""Settings of workers: every bound, in the unit that runs out."""

from __future__ import annotations

from msgspec import Struct

from surehook.core.errors import SettingsError

BATCH = 64  # runs in one transaction: handlers are the larger part of its cost by then
BATCH_S = 0.25  # of work in one transaction: so long the rows that its first handler wrote are locked
LEASE_MS = 60_000  # after that, work of a worker that died or hangs is taken up by another
IDLE_S = 1.0  # how late work is found that another process stored
TIMEOUT_S = 20.0  # for one handler: senders of what it asks for give up sooner
STOP_S = 10.0  # from the order to stop until what hangs is left behind
TIMEOUT_MOST_S = 3_600
DAY_MS = 86_400_000

# Field → least, most, unit, what is usual. A batch of more would be locked for long, whatever `batch_s` says; a lease of less
# would lapse while a quick transaction is committed.
_BOUNDS: dict[str, tuple[float, float, str, str]] = {
    "batch": (1, 1_000, "runs", f"batch={BATCH}"),
    "batch_s": (0, 60, "seconds", f"batch_s={BATCH_S:g}"),
    "lease_ms": (100, DAY_MS, "milliseconds", f"lease_ms={LEASE_MS:_}"),
    "idle_s": (0.001, 3_600, "seconds", f"idle_s={IDLE_S:g}"),
    "stop_s": (0, 3_600, "seconds", f"stop_s={STOP_S:g}"),
}


class Rules(Struct, frozen=True):
    """The bounds of workers. Raises SettingsError.

    batch      runs that share a transaction, at most
    batch_s    seconds of work after which such a transaction is committed; what it did not come to, others may take
    lease_ms   after so many milliseconds the work of a worker that died or hangs is taken up: twice what a handler may take
    idle_s     seconds until work is found that another process stored
    timeout_s  seconds that a handler may take which says nothing else (`on(…, timeout_s=…)`)
    stop_s     seconds that `stop` waits for handlers that are at work, before it leaves them behind
    """

    batch: int = BATCH
    lease_ms: int = LEASE_MS
    idle_s: float = IDLE_S
    batch_s: float = BATCH_S
    timeout_s: float | None = None
    stop_s: float = STOP_S

    def __post_init__(self) -> None:
        for field, (least, most, unit, usual) in _BOUNDS.items():
            within(field, getattr(self, field), least, most, unit, hint=f"Rules({usual})")
        if not isinstance(self.batch, int) or not isinstance(self.lease_ms, int):
            field = "lease_ms" if isinstance(self.batch, int) else "batch"
            raise SettingsError(field, "a whole number", hint=f"Rules({_BOUNDS[field][3]})")
        self.timeout(None)

    @property
    def within_s(self) -> float:
        """The longest time of a handler. Half a lease: a transaction that began with it is over before the lease is,
        also where its process freezes in the middle (sql/transaction.py)."""
        return self.lease_ms / 2_000

    def timeout(self, timeout_s: float | None) -> float:
        """Return the timeout of a handler that wants this one. Raises SettingsError."""
        if timeout_s is None:
            timeout_s = self.timeout_s
        if timeout_s is None:
            return min(TIMEOUT_S, self.within_s)
        if (
            isinstance(timeout_s, bool)
            or not isinstance(timeout_s, int | float)
            or not 0 < timeout_s <= TIMEOUT_MOST_S
        ):
            raise SettingsError(
                "timeout_s",
                f"more than 0 and at most {TIMEOUT_MOST_S} seconds, and not {timeout_s!r:.40}",
                hint=f"Rules(timeout_s={TIMEOUT_S:g}), or on(…, timeout_s={TIMEOUT_S:g}) for one handler",
            )
        if timeout_s > self.within_s:
            raise SettingsError(
                "timeout_s",
                f"{timeout_s:g} seconds are more than half a lease of {self.lease_ms / 1000:g} seconds",
                hint=f"rules=Rules(lease_ms={round(timeout_s * 2_000)}), or less to do for one handler",
            )
        return timeout_s


def within(field: str, value: float, least: float, most: float, unit: str, *, hint: str) -> None:
    """Check a number from `least` to `most`. Raises SettingsError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise SettingsError(
            field, f"{least:,g} to {most:,.10g} {unit}, and not {value!r:.40}".strip(), hint=hint
        )


def check_kind(field: str, value: object, kind: type, *, hint: str) -> None:
    """Check that a value is of a type, or None. Raises SettingsError."""
    if value is not None and not isinstance(value, kind):
        raise SettingsError(field, f"a {type(value).__name__} is no {kind.__name__}", hint=hint)


def checked(rules: Rules | None) -> Rules:
    """Check the rules; None: the defaults. Raises SettingsError."""
    check_kind("rules", rules, Rules, hint="rules=Rules(lease_ms=120_000)")
    return rules or Rules()


def checked_workers(workers: int) -> int:
    """Check a number of workers to start. Raises SettingsError."""
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise SettingsError(
            "workers",
            f"a whole number from 1, and not {workers!r:.40}",
            hint="start(workers=4); a process that only receives starts none",
        )
    return workers
