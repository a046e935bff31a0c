"""The nth retry to a wait: seconds, exact, from the policy and a random number that the caller draws.

`retry` counts from 1: the wait before the second attempt is that of retry 1.
"""

from __future__ import annotations

from surehook.core.policy_parts import (
    Exponential,
    Fixed,
    Jitter,
    JitterAdd,
    JitterFull,
    JitterRatio,
    Policy,
    WaitFactor,
)


def retries(policy: Policy) -> int:
    """Number of retries in the schedule. Age, `auto_retry` and the ten-day rule may allow fewer."""
    schedule = policy.schedule
    return len(schedule.waits) if isinstance(schedule, Fixed) else schedule.retries


def base_wait(policy: Policy, retry: int) -> float:
    """Seconds before retry number `retry`, without jitter."""
    match policy.schedule:
        case Fixed(waits):
            # An empty schedule has one wait all the same: a first call that timed out is retried at once.
            return waits[retry - 1] if waits else 0.0
        case Exponential(base, factor, cap, _):
            return min(cap, base * float(factor ** (retry - 1)))
        case WaitFactor(factor, _):
            return retry * 30.0 + float(2.0 ** (retry * factor / 100.0))


def wait(policy: Policy, retry: int, jitter: float) -> float:
    """Seconds before retry number `retry`; `jitter` in [0, 1) places it within its range."""
    base = base_wait(policy, retry)
    if policy.jitter is None:
        return base
    low, high = _spread(policy.jitter, base)
    return base + low + jitter * (high - low)


def jitter_range(policy: Policy, retry: int) -> tuple[float, float]:
    """Bounds of what jitter may add to the wait before retry number `retry`: lowest and highest, in seconds."""
    if policy.jitter is None:
        return (0.0, 0.0)
    return _spread(policy.jitter, base_wait(policy, retry))


def begins(policy: Policy, retry: int, waited_s: float) -> bool:
    """True if the wait before `retry` is begun after `waited_s` seconds of earlier waits (without jitter).

    webhooks.uno: a wait that would pass ten days in all is not begun.
    """
    total = policy.wait_total_s
    return total is None or waited_s + base_wait(policy, retry) <= total


def _spread(jitter: Jitter, base: float) -> tuple[float, float]:
    match jitter:
        case JitterRatio(ratio):
            return (-base * ratio, base * ratio)
        case JitterFull():
            return (-base, 0.0)
        case JitterAdd(add):
            return (0.0, add)
