"""The circuit breaker: a sliding-window failure rate, and exactly one probe at a time.

Closed, calls are counted in ten-part buckets over the window; when at least `calls` of them lie in the
window and the share of failures reaches `failure_ratio`, it opens. Open, nothing is called; parked
deliveries spend no retry. After `probe_after` seconds it is half-open: one call goes through, with the long
timeout. Its success closes the breaker (with a clean window), its failure opens it for another
`probe_after`. Trouble with the signing key opens it at once, with reason `key`.

The numbers of `yousign` (600 s, 40 %, 20, 300 s) are those of the published Ganesha configuration; unlike
there, the half-open test and taking the probe are one step, so two callers can never both be the probe.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

from surehook.core.model import BreakerRow
from surehook.core.policy import BreakerPolicy

BUCKETS = 60  # the window slides in steps of a sixtieth (10 s of 600 s)
KEY_PROBE_AFTER_S = 300.0  # key trouble probes at this pace even where the policy has no breaker

Change = Literal["opened", "closed", "reopened"]


class Breaker:
    """One breaker, kept by tenant and URL without its query. Times are Unix milliseconds."""

    __slots__ = (
        "_buckets", "_calls", "_failures", "key", "opened_at", "policy", "probe_at", "probing", "reason",
        "state", "tenant",
    )  # fmt: skip

    def __init__(self, tenant: str, key: str, policy: BreakerPolicy | None) -> None:
        self.tenant = tenant
        self.key = key
        self.policy = policy
        self.state: Literal["closed", "open", "half_open"] = "closed"
        self.reason: str | None = None
        self.opened_at = 0
        self.probe_at = 0
        self.probing = False
        self._buckets: deque[list[int]] = deque()  # [bucket number, calls, failures], oldest first
        self._calls = 0
        self._failures = 0

    @property
    def is_closed(self) -> bool:
        return self.state == "closed"

    def counts(self, now: int) -> tuple[int, int]:
        """Calls and failures within the window."""
        self._forget(now)
        return self._calls, self._failures

    def take_probe(self, now: int) -> bool:
        """Become the probe if one is due and nobody is it; the caller must send it, or `give_up_probe`."""
        if self.state == "closed" or self.probing or now < self.probe_at:
            return False
        self.state = "half_open"
        self.probing = True
        return True

    def give_up_probe(self) -> None:
        """The probe was not sent after all: the next asker may be it."""
        self.probing = False

    def after(self, failed: bool, now: int, *, probe: bool) -> Change | None:
        """Count one call. Calls begun before the breaker opened change nothing once it is open."""
        if probe:
            self.probing = False
            if failed:
                self._open(now, self.reason or "failures")
                return "reopened"
            return self.close()
        if self.state != "closed" or self.policy is None:
            return None
        self._count(failed, now)
        if failed and self._is_over(self.policy):
            self._open(now, "failures")
            return "opened"
        return None

    def trip(self, reason: str, now: int) -> Change | None:
        """Open at once (key trouble)."""
        was_closed = self.state == "closed"
        self.probing = False
        self._open(now, reason)
        return "opened" if was_closed else "reopened"

    def close(self) -> Change | None:
        was_closed = self.state == "closed"
        self.state, self.reason, self.probing = "closed", None, False
        self._buckets.clear()
        self._calls = self._failures = 0
        return None if was_closed else "closed"

    def restore(self, row: BreakerRow) -> None:
        """Go on where the book says this breaker stood."""
        self.state, self.reason = "open", row.reason
        self.opened_at, self.probe_at = row.opened_at, row.probe_at
        self._calls, self._failures = row.calls, row.failures

    def row(self) -> BreakerRow:
        return BreakerRow(
            tenant=self.tenant, key=self.key, state=self.state, reason=self.reason or "",
            opened_at=self.opened_at, probe_at=self.probe_at, failures=self._failures, calls=self._calls,
        )  # fmt: skip

    def _open(self, now: int, reason: str) -> None:
        self.state, self.reason, self.opened_at = "open", reason, now
        probe_after = self.policy.probe_after if self.policy is not None else KEY_PROBE_AFTER_S
        self.probe_at = now + int(probe_after * 1000)

    def _is_over(self, policy: BreakerPolicy) -> bool:
        return self._calls >= policy.calls and self._failures >= policy.failure_ratio * self._calls

    def _count(self, failed: bool, now: int) -> None:
        assert self.policy is not None
        number = int(now * BUCKETS // (self.policy.window * 1000))
        if not self._buckets or self._buckets[-1][0] < number:
            self._buckets.append([number, 0, 0])
            self._forget(now)
        bucket = self._buckets[-1]
        bucket[1] += 1
        bucket[2] += failed
        self._calls += 1
        self._failures += failed

    def _forget(self, now: int) -> None:
        if self.policy is None or self.state != "closed":
            return
        oldest = int(now * BUCKETS // (self.policy.window * 1000)) - BUCKETS
        while self._buckets and self._buckets[0][0] <= oldest:
            _, calls, failures = self._buckets.popleft()
            self._calls -= calls
            self._failures -= failures
