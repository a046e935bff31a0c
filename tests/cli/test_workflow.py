"""`surehook workflow`: draw, check, export, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from surehook.core.workflow.data import parse_table
from surehook.core.workflow.signing import SIGNING
from surehook.inbox.workflow_diagram import draw_mermaid, draw_text
from tests.cli.conftest import Run


def test_the_ready_table_is_drawn(surehook: Run) -> None:
    assert surehook("workflow", "draw").out == draw_text(SIGNING)
    assert surehook("workflow", "draw", "signing", "--format", "mermaid").out == draw_mermaid(SIGNING)


@pytest.mark.parametrize("form", ["json", "toml"])
def test_what_is_exported_passes_the_check_and_is_the_same(surehook: Run, form: str) -> None:
    exported = surehook("workflow", "export", "signing", "--format", form).out
    Path(f"mine.{form}").write_text(exported)
    assert parse_table(exported, form) == SIGNING  # type: ignore[arg-type]
    ran = surehook("workflow", "check", f"mine.{form}")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, f"digest {SIGNING.digest}")
    assert surehook("workflow", "check", f"mine.{form}", "--json").json["digest"] == SIGNING.digest


def test_a_wrong_table_is_told_with_every_flaw(surehook: Run) -> None:
    text = surehook("workflow", "export").out.replace('"completed": ', '"complete": ')
    Path("wrong.json").write_text(text.replace('"signed": "completed"', '"signed": "complet"'))
    ran = surehook("workflow", "check", "wrong.json")
    assert ran.code == 5
    assert "moves.document.completed.signed: 'complet' is not among the states (unknown_state)" in ran.err
    told = surehook("workflow", "check", "wrong.json", "--json")
    assert (told.code, told.json["ok"], told.json["flaws"][0]["code"]) == (5, False, "unknown_state")
    assert surehook("workflow", "draw", "wrong.json").code == 5


@pytest.mark.parametrize(
    ("table", "code", "words"),
    [("signng", 4, "no table"), ("nowhere.json", 1, "nowhere.json"), ("x.yaml", 4, ".toml")],
)
def test_a_table_that_is_not_there_is_explained(surehook: Run, table: str, code: int, words: str) -> None:
    ran = surehook("workflow", "check", table)
    assert ran.code == code
    assert words in ran.err


def test_a_text_that_is_no_table_is_told_as_a_flaw(surehook: Run) -> None:
    Path("odd.json").write_text("{")
    told = surehook("workflow", "check", "odd.json", "--json")
    assert (told.code, told.json["flaws"][0]["code"]) == (5, "bad_workflow")
