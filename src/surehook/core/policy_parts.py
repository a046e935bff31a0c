"""The parts of a policy as values. All durations are seconds; `policy.py` reads and writes them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from surehook.core import limits

OnExhausted = Literal["dead_letter", "drop", "enter_failure"]


class Timeouts(Struct, frozen=True):
    """`first` and `retry` bound a whole attempt (DNS to the last header), `connect` its way to a connection."""

    first: float
    retry: float
    connect: float


class Fixed(Struct, frozen=True):
    """The wait before each retry, written out."""

    waits: tuple[float, ...]


class Exponential(Struct, frozen=True):
    """`base × factor^(retry − 1)`, at most `cap`."""

    base: float
    factor: float
    cap: float
    retries: int


class WaitFactor(Struct, frozen=True):
    """The formula of webhooks.uno: `retry × 30 + 2^(retry × factor / 100)`, ten days in all at most."""

    factor: float = 100.0
    retries: int = 15


class JitterRatio(Struct, frozen=True):
    """± this fraction of the wait."""

    ratio: float


class JitterFull(Struct, frozen=True):
    """Anything between nothing and the wait."""


class JitterAdd(Struct, frozen=True):
    """The wait plus up to so many seconds."""

    add: float


class AutoDisable(Struct, frozen=True):
    """The endpoint becomes inactive after so many failures with no success between them."""

    consecutive_failures: int


class BreakerPolicy(Struct, frozen=True):
    """Rules for opening a breaker; while open, a probe is made after `probe_after`.

    `rate` opens at `failure_ratio` of at least `calls` calls within `window`; `count` at `failures` failures within it,
    however many calls succeeded. Each strategy uses its own numbers alone.
    """

    window: float = 600.0
    failure_ratio: float = 0.4
    calls: int = 20
    probe_after: float = 300.0
    strategy: Literal["rate", "count"] = "rate"
    failures: int = 10


class HeaderNames(Struct, frozen=True):
    """Names under which a profile repeats the retry count and the delivery id, beside the `webhook-` headers."""

    retry_count: str | None = None
    delivery_id: str | None = None


Schedule = Fixed | Exponential | WaitFactor
Jitter = JitterRatio | JitterFull | JitterAdd


class Policy(Struct, frozen=True):
    """Rules of delivery. `name` is set on profiles; `profile` is the one a policy started from."""

    name: str | None
    profile: str
    timeouts: Timeouts
    success: tuple[str, ...]  # classes (`2xx`) or exact statuses (`204`)
    redirects: int  # followed per attempt
    schedule: Schedule
    jitter: Jitter | None
    auto_retry: bool  # off: only a first call that timed out is retried, once
    max_age: float | None  # counted from acceptance; stands still while paused, inactive or in failure
    terminal: tuple[int, ...]  # statuses that end a delivery at once
    honour_retry_after: float | None  # the longest wait a receiver may ask for; None: it is ignored
    obey_verdicts: bool  # believe `"retryable": false` in a problem+json answer
    on_exhausted: OnExhausted
    auto_disable: AutoDisable | None
    breaker: BreakerPolicy | None
    escalate_after: float | None  # a notice when still undelivered
    adaptive: bool  # endpoints known to be slow start with the long timeout
    headers: HeaderNames

    @property
    def redirect_style(self) -> Literal["strict", "yousign"]:
        """The redirects that are followed: `yousign` takes 301, 302, 303, 307 and 308 with a Location, method kept."""
        return "yousign" if self.profile == "yousign" else "strict"

    @property
    def wait_total_s(self) -> float | None:
        """Bound of the sum of waits: a wait that would exceed it is not begun; None: no bound."""
        return limits.WAIT_FACTOR_TOTAL_S if isinstance(self.schedule, WaitFactor) else None
