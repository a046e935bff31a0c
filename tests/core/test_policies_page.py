"""The policies page tells the truth: its timelines and examples are the product's own."""

import re
from pathlib import Path

from surehook.core import instants
from surehook.core.policy import parse_policy, policy_json
from surehook.core.preview import timeline
from surehook.core.profiles import PROFILES

PAGE = (Path(__file__).parents[2] / "docs" / "policies.md").read_text(encoding="utf-8")


def drawn():
    """The timelines as the page shows them."""
    lines = []
    for name, policy in PROFILES.items():
        lines += ["", name]
        for entry in timeline(policy):
            low, high = entry["jitter_s"]
            jitter = "" if low == high == 0 else f"{low:+g} … {high:+g} s"
            wait, after = instants.say(entry["wait_s"] * 1000), instants.say(entry["after_s"] * 1000)
            line = f"  {entry['attempt']:>2}  {entry['lane']:<5}  {entry['timeout_s']:>2g} s  {wait:>7}  {after:>7}  {jitter}"
            lines.append(line.rstrip())
    return "\n".join(lines[1:])


def test_the_timelines_are_those_of_the_profiles():
    shown = re.search(r"<!-- timelines.*?-->\n```text\n(.*?)\n```", PAGE, re.DOTALL)
    assert shown is not None
    assert shown[1] == drawn()


def test_the_examples_are_policies():
    examples = re.search(r"```json\n(.*?)\n```", PAGE, re.DOTALL)[1].splitlines()
    assert len(examples) == 4
    assert [parse_policy(line.encode(), PROFILES).profile for line in examples] == [
        "signing",
        "yousign",
        "webhooks_uno",
        "standard",
    ]


def test_every_key_is_explained():
    explained = re.findall(r"^\| `(\w+)` \|", PAGE.partition("## The profiles")[0], re.MULTILINE)
    assert explained == [key for key in policy_json(PROFILES["standard"]) if key != "name"]


def test_every_profile_is_named_in_its_table():
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.partition("## The profiles")[2], re.MULTILINE)
    assert sorted(rows) == sorted(PROFILES)
