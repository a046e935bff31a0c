"""The five profiles: policies with a name.

Three are exactly as a known sender documents them, so that nothing changes for its receivers: no terminal
statuses, no `Retry-After`, no verdicts from bodies, no adaptive routing, and connecting may take as long as the
attempt. `standard` and `signing` are ours.
"""

from __future__ import annotations

from surehook.core.policy_parts import (
    AutoDisable,
    BreakerPolicy,
    Exponential,
    Fixed,
    HeaderNames,
    JitterAdd,
    JitterFull,
    JitterRatio,
    Policy,
    Timeouts,
    WaitFactor,
)

M, H, D = 60.0, 3600.0, 86400.0

STANDARD = Policy(
    name="standard",
    profile="standard",
    timeouts=Timeouts(first=2.0, retry=15.0, connect=5.0),
    success=("2xx",),
    redirects=0,
    schedule=Fixed((5.0, 5 * M, 30 * M, 2 * H, 5 * H, 10 * H, 14 * H, 20 * H, 24 * H)),
    jitter=JitterRatio(0.2),
    auto_retry=True,
    max_age=5 * D,
    terminal=(410,),
    honour_retry_after=1 * H,
    obey_verdicts=True,
    on_exhausted="dead_letter",
    auto_disable=None,
    breaker=BreakerPolicy(window=600.0, failure_ratio=0.4, calls=20, probe_after=300.0),
    escalate_after=None,
    adaptive=True,
    headers=HeaderNames(),
)

# 3xx is a success where it is not a redirect to follow; a third redirect in a row is never called.
YOUSIGN = Policy(
    name="yousign",
    profile="yousign",
    timeouts=Timeouts(first=1.0, retry=10.0, connect=10.0),
    success=("2xx", "3xx"),
    redirects=2,
    schedule=Fixed((2 * M, 6 * M, 30 * M, 1 * H, 5 * H, 18 * H, 24 * H, 48 * H)),
    jitter=None,
    auto_retry=True,
    max_age=None,  # kept "until it is fixed"
    terminal=(),
    honour_retry_after=None,
    obey_verdicts=False,
    on_exhausted="dead_letter",
    auto_disable=None,
    breaker=BreakerPolicy(window=600.0, failure_ratio=0.4, calls=20, probe_after=300.0),
    escalate_after=None,
    adaptive=False,
    headers=HeaderNames(retry_count="X-Yousign-Retry-Count"),
)

INSIGNER = Policy(
    name="insigner",
    profile="insigner",
    timeouts=Timeouts(first=10.0, retry=10.0, connect=10.0),
    success=("2xx",),
    redirects=0,
    schedule=Fixed((1 * M, 5 * M, 30 * M, 2 * H, 5 * H, 10 * H, 18 * H, 24 * H)),
    jitter=JitterRatio(0.1),
    auto_retry=True,
    max_age=7 * D,
    terminal=(),
    honour_retry_after=None,
    obey_verdicts=False,
    on_exhausted="dead_letter",
    auto_disable=AutoDisable(consecutive_failures=20),
    breaker=None,
    escalate_after=None,
    adaptive=False,
    headers=HeaderNames(delivery_id="X-InSigner-Delivery-Id"),
)

# The source prints its formula with `wait_factor × 30`, but both columns of its own table only fit `retry × 30`.
WEBHOOKS_UNO = Policy(
    name="webhooks_uno",
    profile="webhooks_uno",
    timeouts=Timeouts(first=10.0, retry=10.0, connect=10.0),
    success=("2xx",),
    redirects=0,
    schedule=WaitFactor(factor=100.0, retries=15),
    jitter=JitterAdd(60.0),
    auto_retry=True,
    max_age=None,
    terminal=(),
    honour_retry_after=None,
    obey_verdicts=False,
    on_exhausted="enter_failure",
    auto_disable=None,
    breaker=None,
    escalate_after=None,
    adaptive=False,
    headers=HeaderNames(),
)

# A signature that nobody learns of blocks people: many retries, a short life, and a notice after 15 minutes.
SIGNING = Policy(
    name="signing",
    profile="signing",
    timeouts=Timeouts(first=1.0, retry=10.0, connect=5.0),
    success=("2xx",),
    redirects=0,
    schedule=Exponential(base=5.0, factor=2.0, cap=1 * H, retries=60),
    jitter=JitterFull(),
    auto_retry=True,
    max_age=1 * D,
    terminal=(410,),
    honour_retry_after=1 * H,
    obey_verdicts=True,
    on_exhausted="dead_letter",
    auto_disable=None,
    breaker=BreakerPolicy(window=600.0, failure_ratio=0.4, calls=20, probe_after=300.0),
    escalate_after=15 * M,
    adaptive=True,
    headers=HeaderNames(),
)

PROFILES: dict[str, Policy] = {
    policy.profile: policy for policy in (STANDARD, YOUSIGN, INSIGNER, WEBHOOKS_UNO, SIGNING)
}
