"""`surehook policy`: profiles and timelines in clock time, without a server."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run

START = "2026-11-21T10:00:00.000Z"


def test_the_five_profiles_are_listed(surehook: Run) -> None:
    names = [policy["name"] for policy in surehook("policy", "list", "--json").json["data"]]
    assert names == ["standard", "yousign", "insigner", "webhooks_uno", "signing"]


def test_a_timeline_carries_clock_times(surehook: Run) -> None:
    shown = surehook("policy", "show", "yousign", "--at", START, "--json").json
    assert [step["at"] for step in shown["timeline"]] == [
        "2026-11-21T10:00:00.000Z",
        "2026-11-21T10:02:00.000Z",
        "2026-11-21T10:08:00.000Z",
        "2026-11-21T10:38:00.000Z",
        "2026-11-21T11:38:00.000Z",
        "2026-11-21T16:38:00.000Z",
        "2026-11-22T10:38:00.000Z",
        "2026-11-23T10:38:00.000Z",
        "2026-11-25T10:38:00.000Z",
    ]


def test_a_policy_object_is_shown_like_a_profile(surehook: Run) -> None:
    shown = surehook("policy", "show", '{"profile": "yousign", "schedule": {"fixed": [1, 2]}}', "--json").json
    assert [step["wait_s"] for step in shown["timeline"]] == [0, 1, 2]


def test_people_get_a_table_and_what_happens_then(surehook: Run) -> None:
    out = surehook("policy", "show", "standard").out
    assert "ATTEMPT  LANE" in out
    assert out.endswith("then: dead letter\n")


@pytest.mark.parametrize(
    ("written", "code", "words"),
    [
        ("standart", 4, "standard"),
        ('{"profile": "yousign", "retries": 3}', 5, "retries"),
        ('{"profile": ', 5, "error:"),
        ("@nowhere.json", 1, "nowhere.json"),
    ],
)
def test_a_wrong_policy_is_explained(surehook: Run, written: str, code: int, words: str) -> None:
    ran = surehook("policy", "show", written)
    assert ran.code == code
    assert words in ran.err


@pytest.mark.parametrize("at", ["tomorrow", "2026-13-01T00:00:00Z", "nan", "1e999"])
def test_a_wrong_time_is_a_usage_error(surehook: Run, at: str) -> None:
    assert surehook("policy", "show", "standard", "--at", at).code == 2
