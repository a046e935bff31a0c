"""Lanes and shares: which lane an attempt takes, with which timeout, and how much an endpoint may use.

`first` fails fast, `retry` is patient; a slow customer costs the first lane its short timeout at most.
Within a lane the slots are shared round robin between endpoints (delivery/dispatch.py), and every endpoint
has a limit of its own that halves on pushback (timeouts, 429) and grows with successes: the slow start,
additive increase and multiplicative decrease of congestion control, for the same reason.
"""

from __future__ import annotations

from surehook.core.model import FIRST, RETRY, Lane
from surehook.core.policy import Policy

FAST_LANE_TIMEOUT_S = 2.0  # a policy with a longer first timeout has no fast lane to give
RECENT = 40  # answers that an endpoint's pace is judged by
RECENT_ENOUGH = 10  # fewer say nothing
# A timeout says slow, or not yet dead: never down to a trickle for it, or the breaker, which does tell the two
# apart, would wait for its twenty calls for ever. Refusals and 429 go down to one.
TIMEOUT_FLOOR = (4, 8)  # by lane
# First calls in a row that time out although few are asked at once: asking few does not help, the receiver is just slow.
FUTILE = 40
_MASK = (1 << RECENT) - 1


def first_lane(policy: Policy, *, is_slow: bool) -> Lane:
    """The lane of a first attempt: patient from the start where the fast one would only cost a second call."""
    if policy.timeouts.first > FAST_LANE_TIMEOUT_S or (policy.adaptive and is_slow):
        return RETRY
    return FIRST


def timeout_s(policy: Policy, *, lane: Lane, place: int, is_slow: bool, probe: bool = False) -> float:
    """Seconds an attempt may take; `place` is its place in the schedule, from 1.

    A first attempt that runs in the patient lane only because the policy's first timeout is long keeps
    that timeout; one that was moved there because the endpoint is slow gets the long one: one call, not two.
    Whoever moved it may be another process, which need not have told us.
    """
    if probe:
        return policy.timeouts.retry
    moved = policy.timeouts.first <= FAST_LANE_TIMEOUT_S or (policy.adaptive and is_slow)
    if lane == FIRST or (place == 1 and not moved):
        return policy.timeouts.first
    return policy.timeouts.retry


class Pace:
    """Whether an endpoint's recent p95 exceeds its first timeout: more than one in twenty of the last answers."""

    __slots__ = ("_seen", "_slow")

    def __init__(self) -> None:
        self._slow = 0  # one bit an answer, newest lowest
        self._seen = 0

    def note(self, slow: bool) -> None:
        if slow or self._slow:
            self._slow = (self._slow << 1 | slow) & _MASK
        if self._seen < RECENT:
            self._seen += 1

    @property
    def is_slow(self) -> bool:
        return self._slow != 0 and self._seen >= RECENT_ENOUGH and self._slow.bit_count() * 20 > self._seen


class Limit:
    """Requests in flight that one endpoint may have in a lane: slow start up to half of where it last stood, then
    one a round.

    `cuts` counts the times it shrank: pushback on a request that began before the last cut says nothing new, so that
    a wave of thirty timeouts halves it once and not thirty times.
    """

    __slots__ = ("_credit", "_futile", "_threshold", "ceiling", "cuts", "now")

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.now = ceiling
        self.cuts = 0
        self._threshold = ceiling
        self._credit = 0
        self._futile = 0

    def grow(self) -> None:
        """A success: one more slot at once below the threshold, else after as many successes as there are slots."""
        self._futile = 0
        if self.now >= self.ceiling:
            return
        self._credit += 1
        if self.now < self._threshold or self._credit >= self.now:
            self.now += 1
            self._credit = 0

    def shrink(self, *, begun: int, floor: int = 1) -> None:
        """Pushback on a request that began after `begun` cuts: half, at least `floor`."""
        if begun != self.cuts:
            return
        self.cuts += 1
        self._futile = 0
        self._threshold = max(2, self.now // 2)
        self.now = max(min(floor, self.now), self.now // 2)
        self._credit = 0

    def hang(self, *, begun: int, floor: int) -> None:
        """A first call was not answered in its short time: pushback, as long as that may help. A receiver that answers
        nothing in time at `floor` requests either is slow, and not overwhelmed, and gets one slot more after each `FUTILE`
        such calls: at the floor its events would come faster than they can be tried. Half of all is the most, so that
        retries, which have the time it needs, find slots."""
        if self.now > floor and not self._futile:
            self.shrink(begun=begun, floor=floor)
        elif begun == self.cuts:
            self._futile += 1
            if self._futile % FUTILE == 0 and self.now < self.ceiling // 2:
                self.now += 1

    def ramp(self) -> None:
        """Begin again from one slot, as after a breaker closed: the backlog must not knock the endpoint down again."""
        self._threshold = max(2, self.ceiling // 2)
        self.now = 1
        self._credit = self._futile = 0
