"""A policy as a timeline: what a delivery that never succeeds would live through."""

from __future__ import annotations

from surehook.core import lanes, schedule
from surehook.core.model import LANES, RETRY
from surehook.core.policy_parts import Policy


def timeline(policy: Policy) -> list[dict[str, object]]:
    """One entry an attempt, in the shape and key order of the API; all values in seconds.

    `wait_s` is without jitter and not rounded, `after_s` the sum of the waits, `jitter_s` what jitter may add to the
    wait. Attempts past `max_age` or past the ten-day rule are not listed. With `auto_retry` off the second entry is
    the one retry that a first call which timed out is given.
    """
    lane = lanes.first_lane(policy, is_slow=False)
    entries = [
        {
            "attempt": 1,
            "lane": LANES[lane],
            "timeout_s": lanes.timeout_s(policy, lane=lane, place=1, is_slow=False),
            "wait_s": 0.0,
            "after_s": 0.0,
            "jitter_s": [0.0, 0.0],
        }
    ]
    after = 0.0
    for retry in range(1, (schedule.retries(policy) if policy.auto_retry else 1) + 1):
        wait = schedule.base_wait(policy, retry)
        if not schedule.begins(policy, retry, after) or _past(policy, after + wait):
            break
        after += wait
        entries.append(
            {
                "attempt": retry + 1,
                "lane": LANES[RETRY],
                "timeout_s": lanes.timeout_s(policy, lane=RETRY, place=retry + 1, is_slow=False),
                "wait_s": wait,
                "after_s": after,
                "jitter_s": list(schedule.jitter_range(policy, retry)),
            }
        )
    return entries


def _past(policy: Policy, after_s: float) -> bool:
    return policy.max_age is not None and after_s > policy.max_age
