"""Timelines: what a delivery that never succeeds would live through."""

import itertools

import pytest

from surehook.core.policy import parse_policy
from surehook.core.preview import timeline
from surehook.core.profiles import PROFILES


def preview(reference):
    return timeline(parse_policy(reference, PROFILES))


def test_the_first_two_attempts_of_standard_are_as_the_api_documents_them():
    assert preview("standard")[:2] == [
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
    assert list(preview("standard")[0]) == ["attempt", "lane", "timeout_s", "wait_s", "after_s", "jitter_s"]


@pytest.mark.parametrize(
    ("name", "attempts", "last_after_s"),
    [
        ("standard", 10, 272_105),
        ("yousign", 9, 347_880),
        ("insigner", 9, 214_560),
        ("webhooks_uno", 16, 69_134),
    ],
)
def test_a_profile_is_tried_so_often_and_so_long(name, attempts, last_after_s):
    entries = preview(name)
    assert len(entries) == attempts
    assert entries[-1]["after_s"] == last_after_s


@pytest.mark.parametrize("name", PROFILES)
def test_after_is_the_sum_of_the_waits_and_attempts_count_up(name):
    entries = preview(name)
    assert [entry["after_s"] for entry in entries] == list(
        itertools.accumulate(entry["wait_s"] for entry in entries)
    )
    assert [entry["attempt"] for entry in entries] == list(range(1, len(entries) + 1))


def test_an_attempt_past_the_greatest_age_is_not_listed():
    entries = preview("signing")
    assert entries[-1]["after_s"] <= 86400 < entries[-1]["after_s"] + 3600
    assert len(entries) == 33
    assert [entry["after_s"] for entry in preview({"schedule": {"fixed": [10, 10, 10]}, "max_age": 20})] == [
        0,
        10,
        20,
    ]


def test_a_wait_that_passes_ten_days_is_not_listed():
    entries = preview({"profile": "webhooks_uno", "schedule": {"wait_factor": {"factor": 150}}})
    assert len(entries) == 13
    assert entries[-1]["after_s"] < 10 * 86400


def test_no_retries_is_one_attempt():
    assert len(preview({"profile": "webhooks_uno", "schedule": {"wait_factor": {"retries": 0}}})) == 1


def test_with_auto_retry_off_the_one_guaranteed_retry_is_listed():
    entries = preview({"profile": "yousign", "auto_retry": False})
    assert [(entry["lane"], entry["timeout_s"], entry["wait_s"]) for entry in entries] == [
        ("first", 1.0, 0.0),
        ("retry", 10.0, 120.0),
    ]


@pytest.mark.parametrize(
    ("reference", "lane", "timeout_s"),
    [
        ("insigner", "retry", 10.0),
        ("webhooks_uno", "retry", 10.0),
        ({"timeouts": {"first": 2.0}}, "first", 2.0),
        ({"timeouts": {"first": 2.01}}, "retry", 2.01),
    ],
)
def test_a_first_timeout_over_two_seconds_has_no_fast_lane(reference, lane, timeout_s):
    first = preview(reference)[0]
    assert (first["lane"], first["timeout_s"]) == (lane, timeout_s)
    assert all(entry["lane"] == "retry" for entry in preview(reference)[1:])
