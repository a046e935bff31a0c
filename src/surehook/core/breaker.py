"""The circuit breaker: a sliding-window failure rate, and exactly one probe at a time.

Closed, calls are counted in ten-part buckets over the window; when at least `calls` of them lie in the
window and the share of failures reaches `failure_ratio`, it opens. Open, nothing is called; parked
deliveries spend no retry. After `probe_after` seconds it is half-open: one call goes through, with the long
timeout. Its success closes the breaker (with a clean window), its failure opens it for another
`probe_after`. Trouble with the signing key opens it at once, with reason `key`.

Where several nodes call the same URL, each reports what it counted and learns what all counted together
(`report`, `learn`); what is decided is decided on the sum. A node that cannot ask goes on with its own window.

The numbers of `yousign` (600 s, 40 %, 20, 300 s) are those of the published Ganesha configuration; unlike
there, the half-open test and taking the probe are one step, so two callers can never both be the probe.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

from surehook.core.model import BreakerRow
from surehook.core.policy import BreakerPolicy

BUCKETS = 60  # the window slides in steps of a sixtieth (10 s of 600 s)
STALE_BUCKETS = (
    2  # what others counted is forgotten then: an endpoint that is called learns anew every second
)
KEY_PROBE_AFTER_S = 300.0  # key trouble probes at this pace even where the policy has no breaker

Change = Literal["opened", "closed", "reopened"]


class Breaker:
    """One breaker, kept by tenant and URL without its query. Times are Unix milliseconds."""

    __slots__ = (
        "_buckets", "_calls", "_failures", "_fresh", "_others", "_others_at", "_touched", "generation", "key",
        "opened_at", "policy", "probe_at", "probing", "reason", "state", "tenant",
    )  # fmt: skip

    def __init__(
        self, tenant: str, key: str, policy: BreakerPolicy | None, touched: list[Breaker] | None = None
    ) -> None:
        """`touched`: where to note that there is something to report; None where nobody shares."""
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
        self._touched = touched
        self._fresh: dict[int, list[int]] = {}  # bucket number → [calls, failures] not reported yet
        self._others: tuple[int, int] | None = None  # calls and failures of all nodes, as last learnt
        self._others_at = 0  # in which bucket
        self.generation = 0  # of the shared state that was last learnt
        self._others_at = 0  # in which bucket

    @property
    def is_closed(self) -> bool:
        return self.state == "closed"

    def counts(self, now: int) -> tuple[int, int]:
        """Calls and failures within the window, of all nodes where they are known."""
        self._forget(now)
        return self._together()

    def take_probe(self, now: int) -> bool:
        """Become the probe if one is due and nobody is it; the caller must send it, or `give_up_probe`."""
        if self.state == "closed" or self.probing or now < self.probe_at:
            return False
        self.state = "half_open"
        self.probing = True
        return True

    def mind_the_clock(self, now: int) -> None:
        """A probe is never further away than `probe_after`: where it seems so, the clock was set back."""
        self.probe_at = min(self.probe_at, now + self._probe_after_ms())

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
        self._fresh.clear()
        self._others = None
        return None if was_closed else "closed"

    def restore(self, row: BreakerRow) -> None:
        """Go on where the book says this breaker stood."""
        self._others = None
        self.state, self.reason = "open", row.reason
        self.opened_at, self.probe_at = row.opened_at, row.probe_at
        self._calls, self._failures = row.calls, row.failures

    def take_over(self, reason: str | None, opened_at: int, probe_at: int) -> None:
        """Another node opened it, or opened it again."""
        self.state, self.reason = "open", reason
        self.opened_at, self.probe_at = opened_at, probe_at

    def row(self) -> BreakerRow:
        calls, failures = self._together()
        return BreakerRow(
            tenant=self.tenant, key=self.key, state=self.state, reason=self.reason or "",
            opened_at=self.opened_at, probe_at=self.probe_at, failures=failures, calls=calls,
        )  # fmt: skip

    # -- together with other nodes ----------------------------------------------------------------------

    def report(self) -> tuple[tuple[int, int, int], ...]:
        """What was counted since the last report: (bucket, calls, failures). It counts as reported from now on."""
        fresh, self._fresh = self._fresh, {}
        if self._others is not None:  # until `learn` they would be in neither sum
            calls, failures = self._others
            self._others = (
                calls + sum(bucket[0] for bucket in fresh.values()),
                failures + sum(bucket[1] for bucket in fresh.values()),
            )
        return tuple((number, calls, failures) for number, (calls, failures) in sorted(fresh.items()))

    def learn(self, calls: int, failures: int, now: int, *, failed: bool) -> Change | None:
        """What all nodes counted within the window, this one's reports included. `failed`: failures of ours were
        among the last report, so that the sum may open the breaker here and now."""
        if self.state != "closed" or self.policy is None:
            return None
        self._others, self._others_at = (calls, failures), self._number(now, self.policy)
        if failed and self._is_over(self.policy):
            self._open(now, "failures")
            return "opened"
        return None

    def alone(self) -> None:
        """The other nodes cannot be asked: the own window decides, and what it counted need not be told."""
        self._others = None
        self._fresh.clear()

    def _together(self) -> tuple[int, int]:
        if self._others is None:
            return self._calls, self._failures
        calls, failures = self._others
        for fresh_calls, fresh_failures in self._fresh.values():
            calls += fresh_calls
            failures += fresh_failures
        return calls, failures

    def _open(self, now: int, reason: str) -> None:
        self.state, self.reason, self.opened_at = "open", reason, now
        self.probe_at = now + self._probe_after_ms()

    def _probe_after_ms(self) -> int:
        return int((self.policy.probe_after if self.policy is not None else KEY_PROBE_AFTER_S) * 1000)

    def _is_over(self, policy: BreakerPolicy) -> bool:
        calls, failures = self._together()
        return calls >= policy.calls and failures >= policy.failure_ratio * calls

    @staticmethod
    def _number(now: int, policy: BreakerPolicy) -> int:
        return int(now * BUCKETS // (policy.window * 1000))

    def _count(self, failed: bool, now: int) -> None:
        assert self.policy is not None
        number = self._number(now, self.policy)
        if not self._buckets or self._buckets[-1][0] < number:
            self._buckets.append([number, 0, 0])
            self._forget(now)
        bucket = self._buckets[-1]
        bucket[1] += 1
        bucket[2] += failed
        self._calls += 1
        self._failures += failed
        if self._touched is not None:
            if not self._fresh:
                self._touched.append(self)
            fresh = self._fresh.setdefault(number, [0, 0])
            fresh[0] += 1
            fresh[1] += failed

    def _forget(self, now: int) -> None:
        if self.policy is None or self.state != "closed":
            return
        number = self._number(now, self.policy)
        if self._others is not None and number - self._others_at >= STALE_BUCKETS:
            self._others = None
        oldest = number - BUCKETS
        while self._buckets and self._buckets[0][0] <= oldest:
            _, calls, failures = self._buckets.popleft()
            self._calls -= calls
            self._failures -= failures
