"""Policies as the server shows them, and their timelines worked out a second time from the page's own words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.calling import Caller
from tests.e2e.shapes import check

PROFILES = ["standard", "yousign", "insigner", "webhooks_uno", "signing"]
H = 3600
DAY = 24 * H
WAITS = {
    "standard": [5, 300, 1800, 2 * H, 5 * H, 10 * H, 14 * H, 20 * H, 24 * H],
    "yousign": [120, 360, 1800, H, 5 * H, 18 * H, 24 * H, 48 * H],
    "insigner": [60, 300, 1800, 2 * H, 5 * H, 10 * H, 18 * H, 24 * H],
    "webhooks_uno": [retry * 30 + 2**retry for retry in range(1, 16)],
    "signing": [min(5 * 2**retry, H) for retry in range(60)],
}
AGES = {"standard": 5 * DAY, "yousign": None, "insigner": 7 * DAY, "webhooks_uno": 10 * DAY, "signing": DAY}
TIMEOUTS = {
    "standard": (2.0, 15.0), "yousign": (1.0, 10.0), "insigner": (10.0, 10.0), "webhooks_uno": (10.0, 10.0),
    "signing": (1.0, 10.0),
}  # fmt: skip
PREVIEW = ["attempt", "lane", "timeout_s", "wait_s", "after_s", "jitter_s"]


def preview(api: Caller, policy: Any) -> Any:
    answer = api.post("/v1/policies/preview", {"policy": policy})
    assert list(answer) == ["policy", "timeline"]
    check("policy", answer["policy"])
    for number, row in enumerate(answer["timeline"], 1):
        assert list(row) == PREVIEW and row["attempt"] == number
    return answer


def test_the_five_profiles_are_listed_and_read_by_name(api: Caller) -> None:
    page = api.get("/v1/policies")
    assert [check("policy", row)["name"] for row in page["data"]] == PROFILES
    for row in page["data"]:
        assert api.get(f"/v1/policies/{row['name']}") == row


@pytest.mark.parametrize("name", PROFILES)
def test_a_profiles_timeline_is_the_documents(api: Caller, name: str) -> None:
    first, retry = TIMEOUTS[name]
    age = AGES[name]
    expected, total = [(0.0, 0.0)], 0.0
    for wait in WAITS[name]:
        total += wait
        if age is None or total <= age:
            expected.append((float(wait), total))
    timeline = preview(api, name)["timeline"]
    assert [(row["wait_s"], row["after_s"]) for row in timeline] == expected
    lanes = ["retry" if first > 2 else "first"] + ["retry"] * (len(expected) - 1)
    assert [row["lane"] for row in timeline] == lanes
    assert [row["timeout_s"] for row in timeline] == [first] + [retry] * (len(expected) - 1)


def test_the_example_of_the_page_is_answered_word_for_word(api: Caller) -> None:
    timeline = preview(api, {"profile": "standard", "schedule": {"fixed": [5, 300, 1800]}})["timeline"]
    assert timeline[:2] == [
        {
            "attempt": 1,
            "lane": "first",
            "timeout_s": 2.0,
            "wait_s": 0.0,
            "after_s": 0.0,
            "jitter_s": [0.0, 0.0],
        },
        {
            "attempt": 2,
            "lane": "retry",
            "timeout_s": 15.0,
            "wait_s": 5.0,
            "after_s": 5.0,
            "jitter_s": [-1.0, 1.0],
        },
    ]


def test_an_object_starts_from_its_profile(api: Caller) -> None:
    answer = preview(
        api, {"profile": "webhooks_uno", "schedule": {"wait_factor": {"factor": 150, "retries": 5}}}
    )
    assert answer["policy"]["profile"] == "webhooks_uno" and answer["policy"]["name"] is None
    waits = [row["wait_s"] for row in answer["timeline"]]
    assert waits == pytest.approx([0.0] + [retry * 30 + 2 ** (retry * 1.5) for retry in range(1, 6)])
    assert [row["jitter_s"] for row in answer["timeline"][1:]] == [[0.0, 60.0]] * 5


def test_what_cannot_happen_is_not_listed(api: Caller) -> None:
    assert len(preview(api, {"schedule": {"fixed": []}})["timeline"]) == 1
    assert len(preview(api, {"schedule": {"fixed": [10, 10, 10]}, "max_age": 25})["timeline"]) == 3
    assert (
        len(
            preview(api, {"profile": "webhooks_uno", "schedule": {"wait_factor": {"retries": 0}}})["timeline"]
        )
        == 1
    )


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ("standart", "policy"),
        ({"profile": "none"}, "policy.profile"),
        ({"patience": 1}, "policy.patience"),
        ({"profile": "webhooks_uno", "schedule": {"wait_factor": {"factor": 9}}}, "policy.schedule.wait_factor.factor"),
        ({"profile": "webhooks_uno", "schedule": {"wait_factor": {"factor": 201}}}, "policy.schedule.wait_factor.factor"),
        ({"schedule": {"fixed": [-1]}}, "policy.schedule.fixed"),
        ({"schedule": {"fixed": [1], "wait_factor": {}}}, "policy.schedule"),
        ({"schedule": {"cron": "* * * * *"}}, "policy.schedule.cron"),
        ({"jitter": {"ratio": 2}}, "policy.jitter.ratio"),
        ({"timeouts": {"first": 0}}, "policy.timeouts.first"),
        ({"timeouts": {"first": "2"}}, "policy.timeouts.first"),
        ({"success": ["9xx"]}, "policy.success"),
        ({"redirects": -1}, "policy.redirects"),
        ({"terminal": [99]}, "policy.terminal"),
        ({"on_exhausted": "explode"}, "policy.on_exhausted"),
        ({"breaker": {"failure_ratio": 2}}, "policy.breaker.failure_ratio"),
        ({"auto_disable": {"consecutive_failures": 0}}, "policy.auto_disable.consecutive_failures"),
        ({"headers": {"retry_count": "bad name"}}, "policy.headers.retry_count"),
        (7, "policy"),
    ],
)  # fmt: skip
def test_a_policy_out_of_range_is_a_422_with_its_field(api: Caller, policy: Any, field: str) -> None:
    problem = api.refused("POST", "/v1/policies/preview", {"policy": policy})
    assert problem["status"] == 422 and problem["field"].startswith(field), problem
