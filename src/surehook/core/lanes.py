"""Lanes and limits: the lane and the timeout of an attempt, and the slots that an endpoint may use.

`first` fails fast, `retry` is patient; a slow customer costs the first lane its short timeout at most.
Within a lane the slots are shared round robin between endpoints (delivery/dispatch.py), and every endpoint
has a limit of its own that halves on pushback (timeouts, 429) and grows with successes: the slow start,
additive increase and multiplicative decrease of congestion control, for the same reason.
"""

from __future__ import annotations

from surehook.core.model import FIRST, RETRY, Lane
from surehook.core.policy import Policy

FAST_LANE_TIMEOUT_S = 2.0  # policies with a longer first timeout start in the retry lane
RECENT = 40  # answers by which an endpoint is judged slow or not
RECENT_ENOUGH = 10  # fewer say nothing
# A timeout means slow, or not yet dead. The limit stays above a trickle for it, since the breaker tells the two apart and
# needs its twenty calls for that. Refusals and 429 go down to one.
TIMEOUT_FLOOR = (4, 8)  # by lane
# So many first calls tell whether asking little helps: it does not where a quarter of them time out all the same.
TRIAL = 40
TRIAL_HUNG = TRIAL // 4
TRIAL_WORSE = TRIAL // 5  # more time-outs than at the floor: asking more does harm
# Before that is believed, so many calls are made one at a time: an overwhelmed receiver catches up meanwhile.
ALONE, ALONE_JUDGED = 20, 8  # … and the last of them are counted
_MASK = (1 << RECENT) - 1


def first_lane(policy: Policy, *, is_slow: bool) -> Lane:
    """The lane of a first attempt: `retry` from the start where a short timeout would only cost a second call."""
    if policy.timeouts.first > FAST_LANE_TIMEOUT_S or (policy.adaptive and is_slow):
        return RETRY
    return FIRST


def timeout_s(policy: Policy, *, lane: Lane, place: int, is_slow: bool, probe: bool = False) -> float:
    """Seconds an attempt may take; `place` is its place in the schedule, from 1.

    A first attempt that is in the retry lane only because the policy's first timeout is long keeps that timeout. One that
    was moved there because the endpoint is slow gets the long one, so that one call is enough. Another process may have
    moved it, so the lane alone decides.
    """
    if probe:
        return policy.timeouts.retry
    moved = policy.timeouts.first <= FAST_LANE_TIMEOUT_S or (policy.adaptive and is_slow)
    if lane == FIRST or (place == 1 and not moved):
        return policy.timeouts.first
    return policy.timeouts.retry


class Pace:
    """Recent answer times of an endpoint: slow where more than one in twenty of the last exceeded its first timeout."""

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

    __slots__ = (
        "_alone", "_credit", "_floor", "_hung", "_least", "_seen", "_since", "_threshold", "ceiling", "cuts", "now",
    )  # fmt: skip

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.now = ceiling
        self.cuts = 0
        self._threshold = ceiling
        self._credit = 0
        self._floor = 0
        self._since: int | None = None  # first calls that began after so many cuts are on trial
        self._seen = self._hung = 0  # of this trial
        # Timeouts of the trial at the floor; while it is set, `now` is on trial.
        self._least: int | None = None
        self._alone = False  # the trial is one call at a time

    def grow(self, *, begun: int = 0) -> None:
        """Note a success: one more slot at once below the threshold, else after as many successes as there are slots."""
        if self._since is not None:
            self._try(begun=begun, hung=0)
            if self._least is not None:
                return
        if self.now >= self.ceiling:
            return
        self._credit += 1
        if self.now < self._threshold or self._credit >= self.now:
            self.now += 1
            self._credit = 0

    def shrink(self, *, begun: int, floor: int = 1) -> None:
        """Halve the limit, down to `floor`, after pushback on a request that began after `begun` cuts."""
        if begun != self.cuts:
            return
        self.cuts += 1
        self._threshold = max(2, self.now // 2)
        self.now = max(min(floor, self.now), self.now // 2)
        self._credit = 0

    def refuse(self, *, begun: int) -> None:
        """Note a failure, or a request to slow down: pushback whatever was known, down to one."""
        self._forget_trials()
        self.shrink(begun=begun)

    def hang(self, *, begun: int, floor: int) -> None:
        """Note a first call that timed out: pushback, as long as that helps.

        A receiver that lets a quarter of its calls time out with `floor` of them at once, and no fewer with one at a time,
        is slow and not overwhelmed: held at the floor, its events would come faster than they can be tried. It gets twice
        the floor and one slot more after each trial, up to half of all, so that retries find slots. Where that makes more
        calls time out, it goes back to the floor.
        """
        if self._since is not None:
            self._try(begun=begun, hung=1)
        if self._least is None:
            if self.now > floor:
                self.shrink(begun=begun, floor=floor)
            if self._since is None and self.now <= floor:
                self._floor, self._since = floor, self.cuts
                self._seen = self._hung = 0

    def _try(self, *, begun: int, hung: int) -> None:
        """Count one more call of a trial, and judge the trial with its last."""
        if self._since is None or begun < self._since:
            return
        self._seen += 1
        if not self._alone or self._seen > ALONE - ALONE_JUDGED:
            self._hung += hung
        if self._seen == (ALONE if self._alone else TRIAL):
            self._judge(self._hung)
            self._seen = self._hung = 0
            self.cuts += 1
            if self._since is not None:
                self._since = self.cuts  # calls begun under another limit do not count for this one

    def _judge(self, hung: int) -> None:
        """Judge a trial that is over, and set the limit from now on."""
        if self._alone:
            assert self._least is not None
            self._alone = False
            if hung * TRIAL * 2 <= self._least * ALONE_JUDGED:
                self._since = self._least = None  # it was overwhelmed
                self._threshold = self._floor
            else:
                self.now = min(2 * self._floor, max(self._floor, self.ceiling // 2))
        elif hung < TRIAL_HUNG:
            self._since = self._least = None  # it can take this much
        elif self._least is None:
            self._least, self._alone, self.now = hung, True, 1
        elif hung > self._least + TRIAL_WORSE:
            self._least, self.now = None, min(self.now, self._floor)
        elif self.now < self.ceiling // 2:
            self.now += 1

    def ramp(self) -> None:
        """Begin again from one slot, as after a breaker closed: the backlog must not knock the endpoint down again."""
        self._threshold = max(2, self.ceiling // 2)
        self.now = 1
        self._credit = 0
        self._forget_trials()

    def _forget_trials(self) -> None:
        self._since = self._least = None
        self._alone = False
