"""docs/workflow.md: its diagrams are the table's, its lists are the code's, its examples run."""

from __future__ import annotations

import re
from typing import NamedTuple

from surehook.core.workflow.check import FLAWS
from surehook.core.workflow.decide import COMMANDS_MAX, RULES, VERDICTS
from surehook.core.workflow.table_values import BRANCHES_MAX, MEMORY, PARTIES_MAX
from surehook.inbox import workflow
from surehook.inbox.workflow_diagram import draw_mermaid, draw_mermaid_parties
from tests.docs.pages import PAGES, examples, first_column, function, section

PAGE = "docs/workflow.md"
NOW = 1_795_000_000_000


class Event(NamedTuple):
    id: str
    type: str
    body: dict


def events() -> list[Event]:
    told = [
        (1, "sent", {}),
        (3, "signed", {"signer": "ana"}),
        (2, "viewed", {"signer": "ana"}),
        (4, "viewed", {"signer": "ana"}),
    ]
    return [
        Event(f"evt_{number}", f"document.{kind}", {"subject": "doc_42", "sequence": number, "data": data})
        for number, kind, data in told
    ]


def test_the_diagrams_are_those_of_the_table():
    drawn = re.findall(r"^```mermaid\n(.*?)^```", PAGES[PAGE], re.DOTALL | re.MULTILINE)
    assert drawn == [draw_mermaid(workflow.SIGNING), draw_mermaid_parties(workflow.SIGNING)]


def test_verdicts_rules_and_flaws_are_those_of_the_code():
    listed = first_column(section(PAGE, "Verdicts"))
    assert listed == [*VERDICTS, *RULES]
    assert first_column(section(PAGE, "Tables of your own")) == list(FLAWS)
    for name, meaning in (RULES | FLAWS).items():
        assert f"| `{name}` | {meaning} |" in PAGES[PAGE]


def test_the_example_of_processing_runs():
    documents: dict[str, workflow.Document] = {}
    steps: list[workflow.Step] = []
    process = function(PAGE, "decide", "process")
    moved = [
        process(event, documents.get, documents.__setitem__, lambda _, more: steps.extend(more), NOW)
        for event in events()
    ]
    assert moved == [["sent"], [], ["viewed", "signed"], []]
    told = workflow.explain(steps, documents["doc_42"])
    assert (
        "\n".join(told)
        == re.search(r"<!-- example: explain -->\n```text\n(.*?)\n```", PAGES[PAGE], re.DOTALL)[1]
    )


def test_the_example_of_a_table_is_a_table():
    space: dict = {}
    exec(examples(PAGE)["table"], space)
    assert workflow.parse_table(space["text"], "toml") == space["leave"]
    assert len(space["workflows"]) == 2


def test_the_bounds_are_the_defaults():
    text = " ".join(PAGES[PAGE].split())
    order = workflow.Order()
    assert f"one document ({order.count})" in text
    assert f"`jump` ({order.jump:,})" in text
    assert f"`memory` events ({MEMORY}), {BRANCHES_MAX} branches and {PARTIES_MAX:,} signers" in text
    assert f"holds {COMMANDS_MAX} rejections" in text
