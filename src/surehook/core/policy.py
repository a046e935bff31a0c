"""A policy is data: how patiently, how often and until when one event is offered to one endpoint.

A policy is written as the name of a profile, or as an object that starts from one and says what differs:
`{"profile": "yousign", "auto_retry": false}`. Nested objects are merged the same way, lists are replaced,
and so is the schedule, except that `wait_factor` and `exponential` keep the numbers of a profile of the same
kind. Whatever is unknown or out of range is refused with its path; nothing is ignored.

All durations are seconds.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from surehook.core import header_names, json_text, limits
from surehook.core.errors import Problem
from surehook.core.policy_given import (
    GivenAutoDisable,
    GivenBreaker,
    GivenExponential,
    GivenJitter,
    GivenPolicy,
    GivenSchedule,
    GivenWaitFactor,
)
from surehook.core.policy_parts import (
    AutoDisable,
    BreakerPolicy,
    Exponential,
    Fixed,
    HeaderNames,
    Jitter,
    JitterAdd,
    JitterFull,
    JitterRatio,
    OnExhausted,
    Policy,
    Schedule,
    Timeouts,
    WaitFactor,
)

__all__ = [
    "AutoDisable",
    "BreakerPolicy",
    "Exponential",
    "Fixed",
    "HeaderNames",
    "Jitter",
    "JitterAdd",
    "JitterFull",
    "JitterRatio",
    "OnExhausted",
    "Policy",
    "Schedule",
    "Timeouts",
    "WaitFactor",
    "parse_policy",
    "policy_json",
]

DEFAULT = "standard"

_HINTS = {
    "timeouts": 'such as {"first": 2, "retry": 15, "connect": 5}, seconds',
    "success": 'such as ["2xx"] or ["2xx", "304"]',
    "schedule": 'one of {"fixed": [5, 300]}, {"exponential": {"base": 5, "factor": 2, "cap": 3600, "retries": 20}}, '
    '{"wait_factor": {"factor": 100, "retries": 15}}, waits in seconds',
    "jitter": 'null, or one of {"ratio": 0.2}, {"full": true}, {"add": 60}',
    "on_exhausted": "dead_letter, drop or enter_failure",
    "auto_disable": 'null or {"consecutive_failures": 20}',
    "breaker": 'null or {"window": 600, "failure_ratio": 0.4, "calls": 20, "probe_after": 300} '
    'or {"strategy": "count", "window": 600, "failures": 10, "probe_after": 300}',
    "headers": 'such as {"retry_count": "X-Retry-Count", "delivery_id": null}',
    "terminal": "statuses such as [410]",
}

S = TypeVar("S", bound=Struct)


def parse_policy(reference: bytes | str | dict[str, object] | None, profiles: Mapping[str, Policy]) -> Policy:
    """The policy a reference means.

    `reference` is JSON as given (bytes), a bare name (str; JSON text is read as such), an object (dict), or None
    for the default. `profiles` are the named policies that may be named or started from.
    Raises Problem `unknown_policy` or `invalid_policy` with the path of the value (`policy.schedule.fixed.2`).
    """
    given = _read(reference)
    if given is None:
        return profiles[DEFAULT]
    if isinstance(given, str):
        return _named(given, profiles, field="policy")
    start = _named(DEFAULT if given.profile is UNSET else given.profile, profiles, field="policy.profile")
    policy = _merged(given, start)
    _check(policy)
    named = start if msgspec.structs.replace(policy, name=start.name) == start else policy
    if given.name not in (UNSET, None, named.name):
        raise _refused("name", "only profiles have names", hint="leave `name` out, or null")
    return named


def _read(reference: bytes | str | dict[str, object] | None) -> GivenPolicy | str | None:
    if isinstance(reference, str) and reference[:1] not in ("{", '"'):
        return reference
    try:
        if not isinstance(reference, bytes | str):
            return msgspec.convert(reference, type=GivenPolicy | str | None)
        if len(reference) > limits.POLICY_REFERENCE_BYTES:
            raise _refused("", f"longer than {limits.POLICY_REFERENCE_BYTES} bytes")
        return msgspec.json.decode(reference, type=GivenPolicy | str | None)
    except json_text.DECODE_ERRORS as error:
        fault = json_text.fault(error)
        raise _refused(fault.path, fault.detail) from None


def _named(name: str, profiles: Mapping[str, Policy], *, field: str) -> Policy:
    if name in profiles:
        return profiles[name]
    near = difflib.get_close_matches(name[:64].lower(), profiles, n=1)
    guess = f"did you mean {near[0]}? " if near else ""
    raise Problem(
        "unknown_policy",
        f"there is no policy named {json_text.quoted(name)}",
        field=field,
        hint=f"{guess}known: {', '.join(sorted(profiles))}",
    )


def _merged(given: GivenPolicy, start: Policy) -> Policy:
    changes: dict[str, object] = {
        key: value
        for key, value in msgspec.structs.asdict(given).items()
        if value is not UNSET and key not in ("name", "profile")
    }
    if given.timeouts is not UNSET:
        changes["timeouts"] = _over(start.timeouts, given.timeouts)
    if given.headers is not UNSET:
        changes["headers"] = _over(start.headers, given.headers)
    if isinstance(given.breaker, GivenBreaker):
        changes["breaker"] = _breaker(given.breaker, start.breaker or BreakerPolicy())
    if isinstance(given.auto_disable, GivenAutoDisable):
        changes["auto_disable"] = AutoDisable(given.auto_disable.consecutive_failures)
    if isinstance(given.jitter, GivenJitter):
        changes["jitter"] = _jitter(given.jitter)
    if given.schedule is not UNSET:
        changes["schedule"] = _schedule(given.schedule, start.schedule)
    if given.honour_retry_after == 0:
        changes["honour_retry_after"] = None
    return msgspec.structs.replace(start, name=None, **changes)


def _over(start: S, given: Struct) -> S:
    """`start` with the given values in place of its own."""
    laid = {key: value for key, value in msgspec.structs.asdict(given).items() if value is not UNSET}
    return msgspec.structs.replace(start, **laid)


def _breaker(given: GivenBreaker, start: BreakerPolicy) -> BreakerPolicy:
    """Refuses numbers of the other strategy, which would have no effect."""
    breaker = _over(start, given)
    strange = ("failure_ratio", "calls") if breaker.strategy == "count" else ("failures",)
    for key in strange:
        if getattr(given, key) is not UNSET:
            raise _refused(f"breaker.{key}", f"the strategy `{breaker.strategy}` does not look at it")
    return breaker


def _jitter(given: GivenJitter) -> Jitter:
    kinds = [key for key, value in msgspec.structs.asdict(given).items() if value is not UNSET]
    if len(kinds) != 1:
        raise _refused("jitter", "exactly one kind of jitter is given")
    if given.full is False:
        raise _refused("jitter.full", "full jitter is either true or not given", hint="null is no jitter")
    if isinstance(given.ratio, float):
        return JitterRatio(given.ratio)
    return JitterAdd(given.add) if isinstance(given.add, float) else JitterFull()


def _schedule(given: GivenSchedule, start: Schedule) -> Schedule:
    kinds = [key for key, value in msgspec.structs.asdict(given).items() if value is not UNSET]
    if len(kinds) != 1:
        raise _refused("schedule", "exactly one kind of schedule is given")
    if isinstance(given.wait_factor, GivenWaitFactor):
        return _over(start if isinstance(start, WaitFactor) else WaitFactor(), given.wait_factor)
    if isinstance(given.exponential, GivenExponential):
        return _exponential(given.exponential, start)
    assert not isinstance(given.fixed, UnsetType)
    return Fixed(given.fixed)


def _exponential(given: GivenExponential, start: Schedule) -> Exponential:
    if isinstance(start, Exponential):
        return _over(start, given)
    for key, value in msgspec.structs.asdict(given).items():
        if value is UNSET:
            raise _refused(f"schedule.exponential.{key}", "is missing; the profile has no such schedule")
    return Exponential(**msgspec.structs.asdict(given))


def _check(policy: Policy) -> None:
    """Refuse values that contradict each other."""
    if policy.timeouts.retry < policy.timeouts.first:
        raise _refused("timeouts.retry", "the retry timeout is shorter than the first one")
    if isinstance(policy.schedule, Exponential) and policy.schedule.cap < policy.schedule.base:
        raise _refused("schedule.exponential.cap", "the cap is below the base")
    for place, status in enumerate(policy.terminal):
        if str(status) in policy.success or f"{status // 100}xx" in policy.success:
            raise _refused(f"terminal.{place}", f"{status} is a success of this policy")
    names = (("retry_count", policy.headers.retry_count), ("delivery_id", policy.headers.delivery_id))
    for key, name in names:
        fault = None if name is None else header_names.fault(name)
        if fault is not None:
            raise _refused(f"headers.{key}", fault)
    written = [name.lower() for _, name in names if name is not None]
    if len(written) != len(set(written)):
        raise _refused("headers.delivery_id", "both headers have the same name")


def _refused(path: str, detail: str, *, hint: str | None = None) -> Problem:
    top = re.split(r"\W", path, maxsplit=1)[0]
    return Problem(
        "invalid_policy",
        detail,
        field=f"policy.{path}" if path else "policy",
        hint=hint or _HINTS.get(top),
    )


def policy_json(policy: Policy) -> dict[str, object]:
    """The policy as the API shows it: shape and key order are part of the contract."""
    t, breaker, jitter = policy.timeouts, policy.breaker, policy.jitter
    return {
        "name": policy.name,
        "profile": policy.profile,
        "timeouts": {"first": t.first, "retry": t.retry, "connect": t.connect},
        "success": list(policy.success),
        "redirects": policy.redirects,
        "schedule": _schedule_json(policy.schedule),
        "jitter": None if jitter is None else _jitter_json(jitter),
        "auto_retry": policy.auto_retry,
        "max_age": _short(policy.max_age),
        "terminal": list(policy.terminal),
        "honour_retry_after": _short(policy.honour_retry_after),
        "obey_verdicts": policy.obey_verdicts,
        "on_exhausted": policy.on_exhausted,
        "auto_disable": policy.auto_disable
        and {"consecutive_failures": policy.auto_disable.consecutive_failures},
        "breaker": breaker and _breaker_json(breaker),
        "escalate_after": _short(policy.escalate_after),
        "adaptive": policy.adaptive,
        "headers": {"retry_count": policy.headers.retry_count, "delivery_id": policy.headers.delivery_id},
    }


def _breaker_json(breaker: BreakerPolicy) -> dict[str, object]:
    """`rate` is the default, and not written."""
    window, probe_after = _short(breaker.window), _short(breaker.probe_after)
    if breaker.strategy == "count":
        return {
            "strategy": "count",
            "window": window,
            "failures": breaker.failures,
            "probe_after": probe_after,
        }
    return {
        "window": window,
        "failure_ratio": breaker.failure_ratio,
        "calls": breaker.calls,
        "probe_after": probe_after,
    }


def _schedule_json(schedule: Schedule) -> dict[str, object]:
    match schedule:
        case Fixed(waits):
            return {"fixed": [_short(wait) for wait in waits]}
        case Exponential(base, factor, cap, retries):
            return {
                "exponential": {
                    "base": _short(base),
                    "factor": _short(factor),
                    "cap": _short(cap),
                    "retries": retries,
                }
            }
        case WaitFactor(factor, retries):
            return {"wait_factor": {"factor": _short(factor), "retries": retries}}


def _jitter_json(jitter: Jitter) -> dict[str, object]:
    match jitter:
        case JitterRatio(ratio):
            return {"ratio": ratio}
        case JitterFull():
            return {"full": True}
        case JitterAdd(add):
            return {"add": _short(add)}


def _short(seconds: float | None) -> float | None:
    """Whole numbers are shown without a fraction: 300, not 300.0."""
    return int(seconds) if seconds is not None and seconds == int(seconds) else seconds
