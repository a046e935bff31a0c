"""A policy as a caller may write it: every key optional, every bound beside its key.

`UNSET` is "not given", which keeps the profile's value; null means off where a key allows it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from surehook.core import limits
from surehook.core.policy_parts import OnExhausted

_Timeout = Annotated[float, Meta(ge=limits.TIMEOUT_S[0], le=limits.TIMEOUT_S[1])]
_Wait = Annotated[float, Meta(ge=limits.WAIT_S[0], le=limits.WAIT_S[1])]
_Retries = Annotated[int, Meta(ge=0, le=limits.SCHEDULE_STEPS)]


class GivenTimeouts(Struct, forbid_unknown_fields=True):
    first: _Timeout | UnsetType = UNSET
    retry: _Timeout | UnsetType = UNSET
    connect: _Timeout | UnsetType = UNSET


class GivenExponential(Struct, forbid_unknown_fields=True):
    base: _Wait | UnsetType = UNSET
    factor: Annotated[float, Meta(ge=limits.GROWTH[0], le=limits.GROWTH[1])] | UnsetType = UNSET
    cap: _Wait | UnsetType = UNSET
    retries: _Retries | UnsetType = UNSET


class GivenWaitFactor(Struct, forbid_unknown_fields=True):
    factor: Annotated[float, Meta(ge=limits.WAIT_FACTOR[0], le=limits.WAIT_FACTOR[1])] | UnsetType = UNSET
    retries: _Retries | UnsetType = UNSET


class GivenSchedule(Struct, forbid_unknown_fields=True):
    fixed: Annotated[tuple[_Wait, ...], Meta(max_length=limits.SCHEDULE_STEPS)] | UnsetType = UNSET
    exponential: GivenExponential | UnsetType = UNSET
    wait_factor: GivenWaitFactor | UnsetType = UNSET


class GivenJitter(Struct, forbid_unknown_fields=True):
    ratio: Annotated[float, Meta(gt=0, lt=1)] | UnsetType = UNSET
    full: bool | UnsetType = UNSET
    add: Annotated[float, Meta(gt=limits.JITTER_ADD_S[0], le=limits.JITTER_ADD_S[1])] | UnsetType = UNSET


class GivenAutoDisable(Struct, forbid_unknown_fields=True):
    consecutive_failures: Annotated[int, Meta(ge=1, le=limits.AUTO_DISABLE_FAILURES)]


class GivenBreaker(Struct, forbid_unknown_fields=True):
    window: (
        Annotated[float, Meta(ge=limits.BREAKER_WINDOW_S[0], le=limits.BREAKER_WINDOW_S[1])] | UnsetType
    ) = UNSET
    failure_ratio: Annotated[float, Meta(gt=0, le=1)] | UnsetType = UNSET
    calls: Annotated[int, Meta(ge=1, le=limits.BREAKER_CALLS)] | UnsetType = UNSET
    strategy: Literal["rate", "count"] | UnsetType = UNSET
    failures: Annotated[int, Meta(ge=1, le=limits.BREAKER_CALLS)] | UnsetType = UNSET
    probe_after: (
        Annotated[float, Meta(ge=limits.PROBE_AFTER_S[0], le=limits.PROBE_AFTER_S[1])] | UnsetType
    ) = UNSET


class GivenHeaderNames(Struct, forbid_unknown_fields=True):
    retry_count: str | UnsetType | None = UNSET
    delivery_id: str | UnsetType | None = UNSET


class GivenPolicy(Struct, forbid_unknown_fields=True):
    """A policy as a caller may write it; every key is optional."""

    name: str | UnsetType | None = UNSET
    profile: str | UnsetType = UNSET
    timeouts: GivenTimeouts | UnsetType = UNSET
    success: (
        Annotated[
            tuple[Annotated[str, Meta(pattern=r"\A([234]xx|[234][0-9][0-9])\Z")], ...],
            Meta(min_length=1, max_length=limits.SUCCESS_ENTRIES),
        ]
        | UnsetType
    ) = UNSET
    redirects: Annotated[int, Meta(ge=0, le=limits.REDIRECTS)] | UnsetType = UNSET
    schedule: GivenSchedule | UnsetType = UNSET
    jitter: GivenJitter | UnsetType | None = UNSET
    auto_retry: bool | UnsetType = UNSET
    max_age: Annotated[float, Meta(ge=limits.MAX_AGE_S[0], le=limits.MAX_AGE_S[1])] | UnsetType | None = UNSET
    terminal: (
        Annotated[tuple[Annotated[int, Meta(ge=300, le=599)], ...], Meta(max_length=limits.TERMINAL_ENTRIES)]
        | UnsetType
    ) = UNSET
    honour_retry_after: Annotated[float, Meta(ge=0, le=limits.WAIT_S[1])] | UnsetType | None = UNSET
    obey_verdicts: bool | UnsetType = UNSET
    on_exhausted: OnExhausted | UnsetType = UNSET
    auto_disable: GivenAutoDisable | UnsetType | None = UNSET
    breaker: GivenBreaker | UnsetType | None = UNSET
    escalate_after: (
        Annotated[float, Meta(ge=limits.ESCALATE_S[0], le=limits.ESCALATE_S[1])] | UnsetType | None
    ) = UNSET
    adaptive: bool | UnsetType = UNSET
    headers: GivenHeaderNames | UnsetType = UNSET
