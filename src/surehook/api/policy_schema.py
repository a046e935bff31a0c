"""The policy as the API shows it (`core.policy.policy_json`), as types for the OpenAPI document and the tests."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from surehook.core.policy_parts import OnExhausted


class PolicyTimeouts(Struct, frozen=True):
    first: float
    retry: float
    connect: float


class ExponentialNumbers(Struct, frozen=True):
    base: float
    factor: float
    cap: float
    retries: int


class WaitFactorNumbers(Struct, frozen=True):
    factor: float
    retries: int


class PolicySchedule(Struct, frozen=True, omit_defaults=True):
    """Exactly one of the three."""

    fixed: list[float] | None = None
    exponential: ExponentialNumbers | None = None
    wait_factor: WaitFactorNumbers | None = None


class PolicyJitter(Struct, frozen=True, omit_defaults=True):
    """Exactly one of the three."""

    ratio: float | None = None
    full: bool | None = None
    add: float | None = None


class PolicyAutoDisable(Struct, frozen=True):
    consecutive_failures: int


class PolicyBreaker(Struct, frozen=True, omit_defaults=True):
    """`failure_ratio` and `calls`, or with `strategy` `count`: `failures`."""

    window: float
    probe_after: float
    failure_ratio: float | None = None
    calls: int | None = None
    strategy: Literal["count"] | None = None
    failures: int | None = None


class PolicyHeaders(Struct, frozen=True):
    retry_count: str | None
    delivery_id: str | None


class PolicyDocument(Struct, frozen=True):
    """All durations are seconds."""

    name: str | None
    profile: str
    timeouts: PolicyTimeouts
    success: list[str]
    redirects: int
    schedule: PolicySchedule
    jitter: PolicyJitter | None
    auto_retry: bool
    max_age: float | None
    terminal: list[int]
    honour_retry_after: float | None
    obey_verdicts: bool
    on_exhausted: OnExhausted
    auto_disable: PolicyAutoDisable | None
    breaker: PolicyBreaker | None
    escalate_after: float | None
    adaptive: bool
    headers: PolicyHeaders


class TimelineEntry(Struct, frozen=True):
    """One attempt; all values in seconds. `after_s` is the sum of the waits before it, without jitter."""

    attempt: int
    lane: str
    timeout_s: float
    wait_s: float
    after_s: float
    jitter_s: tuple[float, float]


class PreviewDocument(Struct, frozen=True):
    policy: PolicyDocument
    timeline: list[TimelineEntry]
