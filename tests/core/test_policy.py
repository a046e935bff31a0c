"""Reading and writing policies: every reference is a policy or a Problem with its field, never anything else."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehook.core import limits
from surehook.core.errors import Problem
from surehook.core.policy import WaitFactor, parse_policy, policy_json
from surehook.core.profiles import PROFILES


def parse(reference):
    return parse_policy(reference, PROFILES)


def refusal(reference):
    with pytest.raises(Problem) as caught:
        parse(reference)
    return caught.value


STANDARD_JSON = (
    '{"name":"standard","profile":"standard","timeouts":{"first":2.0,"retry":15.0,"connect":5.0},'
    '"success":["2xx"],"redirects":0,"schedule":{"fixed":[5,300,1800,7200,18000,36000,50400,72000,86400]},'
    '"jitter":{"ratio":0.2},"auto_retry":true,"max_age":432000,"terminal":[410],"honour_retry_after":3600,'
    '"obey_verdicts":true,"on_exhausted":"dead_letter","auto_disable":null,'
    '"breaker":{"window":600,"failure_ratio":0.4,"calls":20,"probe_after":300},"escalate_after":null,'
    '"adaptive":true,"headers":{"retry_count":null,"delivery_id":null}}'
)


def test_a_policy_is_shown_in_the_shape_and_key_order_of_the_api():
    assert json.dumps(policy_json(PROFILES["standard"]), separators=(",", ":")) == STANDARD_JSON


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_survives_being_shown_and_read_again(name):
    assert parse(policy_json(PROFILES[name])) == PROFILES[name]
    assert parse(json.dumps(policy_json(PROFILES[name])).encode()) == PROFILES[name]


@pytest.mark.parametrize("reference", [None, "standard", b'"standard"', '"standard"', b"null", {}, b"{}"])
def test_nothing_said_is_the_standard_policy(reference):
    assert parse(reference) == PROFILES["standard"]


def test_an_object_starts_from_its_profile_and_says_what_differs():
    changed = parse(
        b'{"profile":"webhooks_uno","schedule":{"wait_factor":{"factor":150,"retries":5}},"on_exhausted":"drop"}'
    )
    expected = {
        **policy_json(PROFILES["webhooks_uno"]),
        "name": None,
        "schedule": {"wait_factor": {"factor": 150, "retries": 5}},
        "on_exhausted": "drop",
    }
    assert policy_json(changed) == expected


def test_auto_retry_can_be_switched_off():
    changed = parse({"profile": "yousign", "auto_retry": False})
    assert policy_json(changed) == {**policy_json(PROFILES["yousign"]), "name": None, "auto_retry": False}


def test_nested_objects_are_merged():
    changed = parse(
        {"timeouts": {"first": 0.3}, "breaker": {"calls": 5}, "headers": {"retry_count": "X-Count"}}
    )
    shown = policy_json(changed)
    assert shown["timeouts"] == {"first": 0.3, "retry": 15.0, "connect": 5.0}
    assert shown["breaker"] == {"window": 600, "failure_ratio": 0.4, "calls": 5, "probe_after": 300}
    assert shown["headers"] == {"retry_count": "X-Count", "delivery_id": None}


def test_a_breaker_can_be_given_to_a_profile_without_one_and_taken_away():
    assert policy_json(parse({"profile": "insigner", "breaker": {"calls": 5}}))["breaker"]["window"] == 600
    assert parse({"profile": "yousign", "breaker": None}).breaker is None


def test_a_wait_factor_keeps_the_numbers_of_its_profile_or_the_documented_ones():
    assert parse(
        {"profile": "webhooks_uno", "schedule": {"wait_factor": {"retries": 0}}}
    ).schedule == WaitFactor(100, 0)
    assert parse({"schedule": {"wait_factor": {"factor": 50}}}).schedule == WaitFactor(50, 15)


def test_what_is_not_said_comes_from_the_policy_that_was_started_from():
    own = {
        "breaker": parse({"breaker": {"window": 60, "calls": 3}}),
        "patient": parse(
            {"profile": "webhooks_uno", "schedule": {"wait_factor": {"factor": 50, "retries": 3}}}
        ),
    }
    profiles = {**PROFILES, **own}
    changed = parse_policy({"profile": "breaker", "breaker": {"calls": 4}}, profiles)
    assert policy_json(changed)["breaker"] == {
        "window": 60,
        "failure_ratio": 0.4,
        "calls": 4,
        "probe_after": 300,
    }
    changed = parse_policy({"profile": "patient", "schedule": {"wait_factor": {"factor": 60}}}, profiles)
    assert changed.schedule == WaitFactor(60, 3)


def test_an_object_that_changes_nothing_is_the_profile():
    assert parse({"profile": "signing", "timeouts": {"first": 1}}) is PROFILES["signing"]


def test_a_changed_policy_has_no_name():
    assert parse({"profile": "signing", "timeouts": {"first": 0.5}}).name is None


def test_zero_switches_retry_after_off():
    assert parse({"honour_retry_after": 0}).honour_retry_after is None


def test_an_unknown_name_is_refused_with_the_known_ones_and_a_guess():
    problem = refusal("yusign")
    assert (problem.code, problem.field) == ("unknown_policy", "policy")
    assert "did you mean yousign?" in problem.hint
    assert all(name in problem.hint for name in PROFILES)


def test_an_unknown_profile_is_refused_at_its_field():
    assert refusal({"profile": "nobody"}).field == "policy.profile"


@pytest.mark.parametrize(
    ("reference", "field"),
    [
        ({"shedule": {}}, "policy.shedule"),
        ({"timeouts": {"fist": 1}}, "policy.timeouts.fist"),
        ({"timeouts": {"first": 0}}, "policy.timeouts.first"),
        ({"timeouts": {"first": 61}}, "policy.timeouts.first"),
        ({"timeouts": {"first": True}}, "policy.timeouts.first"),
        ({"timeouts": {"first": "2"}}, "policy.timeouts.first"),
        ({"timeouts": {"first": None}}, "policy.timeouts.first"),
        ({"timeouts": {"first": math.nan}}, "policy.timeouts.first"),
        ({"timeouts": {"connect": math.inf}}, "policy.timeouts.connect"),
        ({"timeouts": {"first": 20}}, "policy.timeouts.retry"),
        ({"timeouts": None}, "policy.timeouts"),
        ({"success": []}, "policy.success"),
        ({"success": ["2xx", "9xx"]}, "policy.success.1"),
        ({"success": ["2xx\n"]}, "policy.success.0"),
        ({"success": [200]}, "policy.success.0"),
        ({"success": ["2xx"] * 21}, "policy.success"),
        ({"redirects": 3}, "policy.redirects"),
        ({"redirects": -1}, "policy.redirects"),
        ({"redirects": True}, "policy.redirects"),
        ({"redirects": 1.5}, "policy.redirects"),
        ({"schedule": None}, "policy.schedule"),
        ({"schedule": {}}, "policy.schedule"),
        ({"schedule": [5]}, "policy.schedule"),
        ({"schedule": {"fixed": [1], "wait_factor": {}}}, "policy.schedule"),
        ({"schedule": {"fixed": [5, 5, -1]}}, "policy.schedule.fixed.2"),
        ({"schedule": {"fixed": [0]}}, "policy.schedule.fixed.0"),
        ({"schedule": {"fixed": [5, False]}}, "policy.schedule.fixed.1"),
        ({"schedule": {"fixed": [10 * 365 * 86400]}}, "policy.schedule.fixed.0"),
        ({"schedule": {"fixed": [5] * 10_000}}, "policy.schedule.fixed"),
        ({"schedule": {"exponential": {"base": 5}}}, "policy.schedule.exponential.factor"),
        ({"schedule": {"exponential": {"base": 5, "factor": 0.5, "cap": 9, "retries": 1}}}, "policy.schedule.exponential.factor"),
        ({"schedule": {"exponential": {"base": 5, "factor": 2, "cap": 1, "retries": 1}}}, "policy.schedule.exponential.cap"),
        ({"schedule": {"exponential": {"base": 5, "factor": 2, "cap": 9, "retries": 101}}}, "policy.schedule.exponential.retries"),
        ({"schedule": {"wait_factor": {"factor": 9}}}, "policy.schedule.wait_factor.factor"),
        ({"schedule": {"wait_factor": {"factor": 201}}}, "policy.schedule.wait_factor.factor"),
        ({"schedule": {"wait_factor": {"retries": -1}}}, "policy.schedule.wait_factor.retries"),
        ({"jitter": {}}, "policy.jitter"),
        ({"jitter": 0.2}, "policy.jitter"),
        ({"jitter": {"ratio": 0.1, "full": True}}, "policy.jitter"),
        ({"jitter": {"full": False}}, "policy.jitter.full"),
        ({"jitter": {"ratio": 1}}, "policy.jitter.ratio"),
        ({"jitter": {"ratio": 0}}, "policy.jitter.ratio"),
        ({"jitter": {"add": 3601}}, "policy.jitter.add"),
        ({"auto_retry": 1}, "policy.auto_retry"),
        ({"auto_retry": None}, "policy.auto_retry"),
        ({"max_age": 0}, "policy.max_age"),
        ({"max_age": 10 * 365 * 86400}, "policy.max_age"),
        ({"terminal": [99]}, "policy.terminal.0"),
        ({"terminal": [410, 204]}, "policy.terminal.1"),
        ({"profile": "yousign", "terminal": [304]}, "policy.terminal.0"),
        ({"honour_retry_after": -1}, "policy.honour_retry_after"),
        ({"obey_verdicts": "yes"}, "policy.obey_verdicts"),
        ({"on_exhausted": "explode"}, "policy.on_exhausted"),
        ({"auto_disable": {}}, "policy.auto_disable.consecutive_failures"),
        ({"auto_disable": {"consecutive_failures": 0}}, "policy.auto_disable.consecutive_failures"),
        ({"breaker": {"failure_ratio": 0}}, "policy.breaker.failure_ratio"),
        ({"breaker": {"failure_ratio": 1.01}}, "policy.breaker.failure_ratio"),
        ({"breaker": {"calls": 0}}, "policy.breaker.calls"),
        ({"breaker": True}, "policy.breaker"),
        ({"escalate_after": 0}, "policy.escalate_after"),
        ({"adaptive": 0}, "policy.adaptive"),
        ({"headers": {"retry_count": "X Count"}}, "policy.headers.retry_count"),
        ({"headers": {"retry_count": ""}}, "policy.headers.retry_count"),
        ({"headers": {"delivery_id": "webhook-id"}}, "policy.headers.delivery_id"),
        ({"headers": {"retry_count": "X-A", "delivery_id": "x-a"}}, "policy.headers.delivery_id"),
        ({"name": "mine"}, "policy.name"),
        ({"name": "yousign"}, "policy.name"),
        ({"name": "standard", "adaptive": False}, "policy.name"),
        ({1: 2}, "policy"),
        (b"[]", "policy"),
        (b"5", "policy"),
        (b"", "policy"),
        (b'{"profile":', "policy"),
        (b'{"max_age": NaN}', "policy"),
        (b'{"max_age": 1e999}', "policy.max_age"),
        (b'{"max_age": ' + b"9" * 5000 + b"}", "policy.max_age"),
        (b'{"headers":' * 1000, "policy.headers.headers"),
        (b'{"x":' * 1000, "policy.x"),
        (b"[" * 10_000, "policy"),
        (b"\xff\xfe", "policy"),
        (b" " * (limits.POLICY_REFERENCE_BYTES + 1), "policy"),
    ],
)  # fmt: skip
def test_what_is_unknown_or_out_of_range_is_refused_at_its_path(reference, field):
    problem = refusal(reference)
    assert (problem.code, problem.field) == ("invalid_policy", field)
    assert problem.status == 422


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from([*policy_json(PROFILES["standard"]), "fixed", "exponential", "wait_factor", "ratio"])
NEAR = st.dictionaries(KEYS, JSON | st.dictionaries(KEYS, JSON, max_size=3), max_size=5)


@given(st.one_of(NEAR, JSON, st.binary(max_size=60), NEAR.map(lambda given: json.dumps(given).encode())))
def test_any_reference_is_a_policy_or_a_problem(reference):
    try:
        policy = parse(reference)
    except Problem as problem:
        told = (problem.field.partition(".")[0], problem.code)
    else:
        told = None
        assert parse(policy_json(policy)) == policy
    assert told in (None, ("policy", "invalid_policy"), ("policy", "unknown_policy"))


def test_redirects_are_followed_in_the_manner_of_the_profile():
    assert parse({"profile": "yousign", "redirects": 1}).redirect_style == "yousign"
    assert parse({"redirects": 2}).redirect_style == "strict"


def test_a_breaker_may_count_failures_alone() -> None:
    given = {"breaker": {"strategy": "count", "failures": 4}}
    shown = policy_json(parse_policy(given, PROFILES))["breaker"]
    assert shown == {"strategy": "count", "window": 600, "failures": 4, "probe_after": 300}
    assert policy_json(parse_policy({"breaker": shown}, PROFILES))["breaker"] == shown


@pytest.mark.parametrize(
    ("breaker", "field"),
    [
        ({"strategy": "count", "calls": 3}, "policy.breaker.calls"),
        ({"strategy": "count", "failure_ratio": 0.5}, "policy.breaker.failure_ratio"),
        ({"failures": 3}, "policy.breaker.failures"),
        ({"strategy": "count", "failures": 0}, "policy.breaker.failures"),
        ({"strategy": "sometimes"}, "policy.breaker.strategy"),
    ],
)
def test_numbers_of_the_other_strategy_are_refused(breaker: dict[str, object], field: str) -> None:
    with pytest.raises(Problem) as refused:
        parse_policy({"breaker": breaker}, PROFILES)
    assert refused.value.field == field
