"""docs/inbox.rules.yml: its rules ask for metrics, labels and values that the inbox has, and the page names each of them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import yaml

from surehook.inbox.answers import CODES
from surehook.inbox.prometheus import STATES
from surehook.inbox.queue.port import Length
from surehook.inbox.spans import FAILED
from surehook.ports.inbox import Stored
from tests.docs.pages import section
from tests.inbox.test_watch_page import scrape

FILE = Path(__file__).parents[2] / "docs" / "inbox.rules.yml"
FIRE = Path(__file__).parent / "rules_fire.yml"
PROMTOOL = shutil.which("promtool")
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(FILE.read_text())["groups"] for rule in group["rules"]
]
SELECTOR = re.compile(r"(surehook_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(?:=~|!~|!=|=)"([^"]*)"')
VALUES = {
    "state": {*STATES, *Length.__struct_fields__},
    "code": {*CODES, *FAILED},
    "kind": set(get_args(get_type_hints(Stored)["kind"])),
}


def scraped() -> dict[str, set[str]]:
    """The samples of a scrape, with the labels of each."""
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? ", scrape(), re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


def grouped(rule: dict[str, Any]) -> set[str]:
    """The labels by which a rule sums up."""
    return {
        label.strip() for labels in re.findall(r"by \(([^)]*)\)", rule["expr"]) for label in labels.split(",")
    }


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_a_rule_names_what_a_scrape_has(rule):
    samples = scraped()
    selectors = SELECTOR.findall(rule["expr"])
    assert selectors
    for name, matchers in selectors:
        assert name in samples, name
        assert grouped(rule) <= samples[name], (name, grouped(rule))
        for label, values in MATCHER.findall(matchers):
            assert label in samples[name], (name, label)
            assert set(values.split("|")) <= VALUES[label], (label, values)
    said = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    assert said <= grouped(rule)
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert rule["expr"].count("(") == rule["expr"].count(")")


def test_the_page_names_each_rule_once():
    named = re.findall(r"`(SurehookInbox\w+)`", section("docs/inbox.md", "Watch"))
    assert sorted(named) == sorted(rule["alert"] for rule in RULES)


def test_each_rule_is_tried_on_an_inbox_that_is_well_and_on_one_that_is_not():
    parts = yaml.safe_load(FIRE.read_text())["tests"]
    quiet, loud = (
        {one["alertname"]: bool(one["exp_alerts"]) for one in reversed(part["alert_rule_test"])}
        for part in parts
    )
    alerts = {rule["alert"] for rule in RULES}
    assert quiet == dict.fromkeys(alerts, False)
    assert loud == dict.fromkeys(alerts, True)
    samples = scraped()
    for series in (one["series"] for part in parts for one in part["input_series"]):
        name, labels = SELECTOR.findall(series)[0]
        assert {label for label, _ in MATCHER.findall(labels)} <= samples[name] | {"instance"}, series


@pytest.mark.skipif(PROMTOOL is None, reason="promtool of Prometheus is not installed")
@pytest.mark.parametrize(
    "command", [["check", "rules", FILE], ["test", "rules", FIRE]], ids=["check", "test"]
)
def test_prometheus_reads_the_rules_and_they_fire_for_what_they_are_about(command):
    ended = subprocess.run([str(PROMTOOL), *command], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
