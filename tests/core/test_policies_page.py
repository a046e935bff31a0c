"""The policies page tells the truth: its timelines and examples are the product's own."""

import re
from pathlib import Path

from surehook.core import instants
from surehook.core.delivery import decide
from surehook.core.model import FIRST, Delivery
from surehook.core.outcome import FAIL, Outcome
from surehook.core.policy import parse_policy, policy_json
from surehook.core.preview import timeline
from surehook.core.profiles import PROFILES

ALMOST_ALL = 0.999  # of the jitter: waits as the timelines have them, or longer
PAGE = (Path(__file__).parents[2] / "docs" / "policies.md").read_text(encoding="utf-8")


def advice():
    """The rows of the advice: events, policy, attempts, last after, state at the end."""
    table = PAGE.partition("<!-- advice")[2].partition("\n\n")[0]
    rows = [[cell.strip().strip("`") for cell in line.split("|")[1:-1]] for line in table.splitlines()[3:]]
    assert len(rows) == 5
    return rows


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


def test_the_advice_names_what_its_policies_do():
    rows = advice()
    assert [name.partition("**: ")[0].partition(",")[0].strip("*") for name, *_ in rows] == [
        "time-sensitive", "vital", "informational", "time-sensitive", "vital",
    ]  # fmt: skip
    for _, reference, attempts, last, _ in rows:
        entries = timeline(parse_policy(reference.encode(), PROFILES))
        assert (str(len(entries)), instants.say(entries[-1]["after_s"] * 1000)) == (attempts, last)


def test_what_is_advised_ends_as_the_page_says():
    for _, reference, attempts, _, end in advice():
        policy = parse_policy(reference.encode(), PROFILES)
        refused = Outcome("refused", FAIL)
        delivery = Delivery(b"d", b"e", b"p", "acme", "a.b", FIRST, 1, 0, 0, b"{}")
        decision = decide(delivery, refused, policy=policy, now=0, jitter=ALMOST_ALL)
        while decision.end is None and decision.parked is None:
            delivery.attempt = decision.number
            decision = decide(delivery, refused, policy=policy, now=decision.due_at, jitter=ALMOST_ALL)
        assert delivery.attempt == int(attempts)
        assert (decision.end or "parked") == end
        assert decision.notice == ("endpoint.failure" if end == "parked" else "delivery.dropped")


def test_every_profile_is_named_in_its_table():
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.partition("## The profiles")[2], re.MULTILINE)
    assert sorted(rows) == sorted(PROFILES)
