"""The five profiles, line by line."""

import pytest

from surehook.core.policy import policy_json
from surehook.core.profiles import PROFILES

BREAKER = {"window": 600, "failure_ratio": 0.4, "calls": 20, "probe_after": 300}


def test_there_are_five_and_each_is_known_by_its_own_name():
    assert list(PROFILES) == ["standard", "yousign", "insigner", "webhooks_uno", "signing"]
    assert all(policy.name == policy.profile == name for name, policy in PROFILES.items())


@pytest.mark.parametrize(
    ("name", "timeouts", "success", "redirects", "max_age", "on_exhausted", "adaptive"),
    [
        ("standard", (2.0, 15.0), ["2xx"], 0, 5 * 86400, "dead_letter", True),
        ("yousign", (1.0, 10.0), ["2xx", "3xx"], 2, None, "dead_letter", False),
        ("insigner", (10.0, 10.0), ["2xx"], 0, 7 * 86400, "dead_letter", False),
        ("webhooks_uno", (10.0, 10.0), ["2xx"], 0, None, "enter_failure", False),
        ("signing", (1.0, 10.0), ["2xx"], 0, 86400, "dead_letter", True),
    ],
)
def test_timeouts_success_and_end_are_as_documented(
    name, timeouts, success, redirects, max_age, on_exhausted, adaptive
):
    shown = policy_json(PROFILES[name])
    assert (shown["timeouts"]["first"], shown["timeouts"]["retry"]) == timeouts
    assert shown["success"] == success
    assert shown["redirects"] == redirects
    assert shown["max_age"] == max_age
    assert shown["on_exhausted"] == on_exhausted
    assert shown["adaptive"] is adaptive
    assert shown["auto_retry"] is True


@pytest.mark.parametrize("name", ["yousign", "insigner", "webhooks_uno"])
def test_the_documented_senders_hear_nothing_but_the_status(name):
    shown = policy_json(PROFILES[name])
    assert shown["terminal"] == []
    assert shown["honour_retry_after"] is None
    assert shown["obey_verdicts"] is False
    assert shown["timeouts"]["connect"] == shown["timeouts"]["retry"]


@pytest.mark.parametrize("name", ["standard", "signing"])
def test_our_own_profiles_hear_gone_retry_after_and_verdicts(name):
    shown = policy_json(PROFILES[name])
    assert shown["terminal"] == [410]
    assert shown["honour_retry_after"] == 3600
    assert shown["obey_verdicts"] is True


def test_health_rules_are_as_documented():
    shown = {name: policy_json(policy) for name, policy in PROFILES.items()}
    assert {name: each["breaker"] for name, each in shown.items()} == {
        "standard": BREAKER, "yousign": BREAKER, "insigner": None, "webhooks_uno": None, "signing": BREAKER,
    }  # fmt: skip
    assert {name for name, each in shown.items() if each["auto_disable"]} == {"insigner"}
    assert shown["insigner"]["auto_disable"] == {"consecutive_failures": 20}
    assert {name: each["escalate_after"] for name, each in shown.items() if each["escalate_after"]} == {
        "signing": 900
    }


def test_profiles_repeat_counts_and_ids_under_their_own_names():
    names = {name: policy_json(policy)["headers"] for name, policy in PROFILES.items()}
    assert names["yousign"] == {"retry_count": "X-Yousign-Retry-Count", "delivery_id": None}
    assert names["insigner"] == {"retry_count": None, "delivery_id": "X-InSigner-Delivery-Id"}
    assert all(
        names[name] == {"retry_count": None, "delivery_id": None}
        for name in ("standard", "webhooks_uno", "signing")
    )
