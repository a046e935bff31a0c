"""The circuit breaker: a sliding-window failure rate, and exactly one probe at a time.

Closed, calls are counted in ten-part buckets over the window; when at least `calls` of them lie in the
window and the fraction of failures reaches `failure_ratio`, it opens. Open, nothing is called; parked
deliveries spend no retry. After `probe_after` seconds it is half-open: one call goes through, with the long
timeout. Its success closes the breaker (with a clean window), its failure opens it for another
`probe_after`. Trouble with the signing key opens it at once, with reason `key`.

Who makes that call owns a `Probe`, and only the probe that the breaker knows decides: one that was dropped (its
node was evicted, it was never sent) or has outlived its time changes nothing, and another may be taken.

Where several nodes call the same URL, each reports what it counted and learns what all counted together
(`report`, `learn`), and decides on the sum. A node that cannot ask goes on with its own window.

Every opening and closing has a *generation*: the Unix millisecond of its decision, made greater than every one that its
node knew of this breaker. Decisions of other nodes are judged by it alone (`hear`), so that one that comes
late undoes nothing newer. Of two decisions of one generation the closing wins: a breaker closed wrongly costs some calls, one
open wrongly holds everything back until a probe.

The numbers of `yousign` (600 s, 40 %, 20, 300 s) are those of the published Ganesha configuration; unlike
there, the half-open test and taking the probe are one step, so two callers can never both be the probe.
"""

from __future__ import annotations

from typing import Literal

from surehook.core import limits
from surehook.core.model import BreakerRow
from surehook.core.policy import BreakerPolicy

BUCKETS = 60  # the window slides in steps of a sixtieth (10 s of 600 s)
# What others counted is forgotten then: an endpoint that is called learns anew every second.
STALE_BUCKETS = 2
# Of a clock that was set back: what was counted further ahead is forgotten, or it would never leave.
AHEAD_BUCKETS = 1
KEY_PROBE_AFTER_S = 300.0  # key trouble probes at this pace even where the policy has no breaker

_PROBE_MS = int(limits.PROBE_S * 1000)

Change = Literal["opened", "closed", "reopened"]


class Probe:
    """The right to make the one call through a half-open breaker, until the instant `until` (Unix milliseconds)."""

    __slots__ = ("until",)

    def __init__(self, until: int) -> None:
        self.until = until


class Breaker:
    """One breaker, kept by tenant and URL without its query. Times are Unix milliseconds."""

    __slots__ = (
        "_buckets", "_calls", "_failures", "_fresh", "_others", "_others_at", "_touched", "_unclosed",
        "generation", "key", "opened_at", "policy", "probe", "probe_at", "reason", "state", "tenant",
    )  # fmt: skip

    def __init__(
        self,
        tenant: str,
        key: str,
        policy: BreakerPolicy | None,
        touched: list[Breaker] | None = None,
        unclosed: dict[tuple[str, str], None] | None = None,
    ) -> None:
        """`touched` collects breakers that have something to report; None where health is not shared. `unclosed` has the
        tenant and key of every breaker that is not closed."""
        self.tenant = tenant
        self.key = key
        self.policy = policy
        self.state: Literal["closed", "open", "half_open"] = "closed"
        self.reason: str | None = None
        self.opened_at = 0
        self.probe_at = 0
        self.probe: Probe | None = None  # the one that decides
        # [bucket number, calls, failures], oldest first; a list, since an empty deque takes 760 bytes
        self._buckets: list[list[int]] = []
        self._calls = 0
        self._failures = 0
        self._touched = touched
        self._unclosed = {} if unclosed is None else unclosed
        self._fresh: dict[int, list[int]] = {}  # bucket number → [calls, failures] not reported yet
        self._others: tuple[int, int] | None = None  # calls and failures of all nodes, as last learnt
        self._others_at = 0  # in which bucket
        self.generation = 0  # of what was last decided, here or elsewhere

    @property
    def is_closed(self) -> bool:
        return self.state == "closed"

    @property
    def is_known(self) -> bool:
        """True once anything was counted or decided, here or elsewhere."""
        return bool(self.generation or self._calls or self._others or self.state != "closed")

    def counts(self, now: int) -> tuple[int, int]:
        """Calls and failures within the window, of all nodes where they are known."""
        self._forget(now)
        return self._together()

    @property
    def is_probing(self) -> bool:
        """True while somebody owns the probe. A lost probe counts until another one is taken."""
        return self.probe is not None

    def take_probe(self, now: int) -> Probe | None:
        """Take the probe, if one is due and nobody has it; its owner must report the result, or `drop_probe`."""
        if self.state == "closed" or now < self.probe_at:
            return None
        if self.probe is not None and now < self.probe.until:
            return None
        self.state = "half_open"
        self.probe = Probe(now + _PROBE_MS)
        return self.probe

    def hasten(self, now: int) -> None:
        """Make the next probe due now: the cause may have been mended."""
        if self.state != "closed":
            self.probe_at = min(self.probe_at, now)

    def mind_the_clock(self, now: int) -> None:
        """Bring instants that lie too far ahead within reach: a probe is never further away than `probe_after`, and none lasts
        longer than `limits.PROBE_S`; where it seems so, the clock was set back, or the policy says less than it did."""
        self.probe_at = min(self.probe_at, now + self._probe_after_ms())
        if self.probe is not None:
            self.probe.until = min(self.probe.until, now + _PROBE_MS)

    def drop_probe(self, probe: Probe, *, next_at: int | None = None) -> None:
        """The probe says nothing (never sent, abandoned, no word about the receiver): another may be taken, from
        `next_at` on."""
        if self.probe is not probe:
            return
        self.probe = None
        if next_at is not None:
            self.probe_at = next_at

    def after(self, failed: bool, now: int, *, probe: Probe | None) -> Change | None:
        """Count one call. Calls begun before the breaker opened change nothing once it is open."""
        if probe is not None:
            if self.probe is not probe:
                return None
            self.probe = None
            if failed:
                self._open(now, self.reason or "failures")
                return "reopened"
            return self.close(now)
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
        self.probe = None
        self._open(now, reason)
        return "opened" if was_closed else "reopened"

    def close(self, now: int) -> Change | None:
        was_closed = self.state == "closed"
        self._decide(now)
        self._shut()
        return None if was_closed else "closed"

    def hear(
        self, *, is_open: bool, reason: str | None, opened_at: int, probe_at: int, generation: int
    ) -> bool:
        """Take over a decision made elsewhere, where it is newer than what is known here. True where it opened or closed
        the breaker, or brought its probe forward."""
        if generation < self.generation or (generation == self.generation and (is_open or self.is_closed)):
            return False
        was_closed, was_probe_at = self.is_closed, self.probe_at
        self.generation = generation
        if is_open:
            self.take_over(reason, opened_at, probe_at)
        elif not was_closed:
            self._shut()
        return self.is_closed is not was_closed or (is_open and self.probe_at < was_probe_at)

    def _shut(self) -> None:
        self.state, self.reason, self.probe = "closed", None, None
        self._unclosed.pop((self.tenant, self.key), None)
        self._buckets.clear()
        self._calls = self._failures = 0
        self._fresh.clear()
        self._others = None

    def restore(self, row: BreakerRow) -> None:
        """Go on where the ledger says this breaker stood."""
        self._others = None
        self.take_over(row.reason, row.opened_at, row.probe_at)
        self.generation = row.generation
        self._calls, self._failures = row.calls, row.failures

    def take_over(self, reason: str | None, opened_at: int, probe_at: int) -> None:
        """Open it, as was decided here or by another node."""
        self.state, self.reason = "open", reason
        self.opened_at, self.probe_at = opened_at, probe_at
        self._unclosed[self.tenant, self.key] = None

    def row(self) -> BreakerRow:
        calls, failures = self._together()
        return BreakerRow(
            tenant=self.tenant, key=self.key, state=self.state, reason=self.reason or "",
            opened_at=self.opened_at, probe_at=self.probe_at, failures=failures, calls=calls,
            generation=self.generation,
        )  # fmt: skip

    # -- together with other nodes ----------------------------------------------------------------------

    def report(self) -> tuple[tuple[int, int, int], ...]:
        """Counts since the last report, as (bucket, calls, failures); from now on they are reported."""
        fresh, self._fresh = self._fresh, {}
        if self._others is not None:  # until `learn` they would be in neither sum
            calls, failures = self._others
            self._others = (
                calls + sum(bucket[0] for bucket in fresh.values()),
                failures + sum(bucket[1] for bucket in fresh.values()),
            )
        return tuple((number, calls, failures) for number, (calls, failures) in sorted(fresh.items()))

    def learn(self, calls: int, failures: int, now: int, *, failed: bool) -> Change | None:
        """Take over what all nodes counted within the window, this one's reports included. `failed`: the last report
        had failures of this node, so the sum may open the breaker here and now."""
        if self.state != "closed" or self.policy is None:
            return None
        self._others, self._others_at = (calls, failures), self._number(now, self.policy)
        if failed and self._is_over(self.policy):
            self._open(now, "failures")
            return "opened"
        return None

    def alone(self) -> None:
        """Go on with this node's own window: the others cannot be asked, and what it counts need not be reported."""
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

    def _decide(self, now: int) -> None:
        self.generation = max(now, self.generation + 1)

    def _open(self, now: int, reason: str) -> None:
        self._decide(now)
        self.take_over(reason, now, now + self._probe_after_ms())

    def _probe_after_ms(self) -> int:
        return int((self.policy.probe_after if self.policy is not None else KEY_PROBE_AFTER_S) * 1000)

    def _is_over(self, policy: BreakerPolicy) -> bool:
        calls, failures = self._together()
        if policy.strategy == "count":
            return failures >= policy.failures
        return calls >= policy.calls and failures >= policy.failure_ratio * calls

    @staticmethod
    def _number(now: int, policy: BreakerPolicy) -> int:
        return int(now * BUCKETS // (policy.window * 1000))

    def _count(self, failed: bool, now: int) -> None:
        assert self.policy is not None
        number, buckets = self._number(now, self.policy), self._buckets
        # Otherwise no time has passed in buckets.
        if self._others is not None or not buckets or buckets[-1][0] != number:
            self._forget_before(number)
            if not buckets or buckets[-1][0] < number:
                buckets.append([number, 0, 0])
        bucket = buckets[-1]
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
        if self.policy is not None and self.state == "closed":
            self._forget_before(self._number(now, self.policy))

    def _forget_before(self, number: int) -> None:
        """Drop the buckets outside the window that ends with this one."""
        if self._others is not None and abs(number - self._others_at) >= STALE_BUCKETS:
            self._others = None
        oldest = number - BUCKETS
        while self._buckets and self._buckets[0][0] <= oldest:
            self._subtract(self._buckets.pop(0))
        while self._buckets and self._buckets[-1][0] > number + AHEAD_BUCKETS:
            self._subtract(self._buckets.pop())

    def _subtract(self, bucket: list[int]) -> None:
        self._calls -= bucket[1]
        self._failures -= bucket[2]
