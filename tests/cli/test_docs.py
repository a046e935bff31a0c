"""The documentation of settings and commands names what there is, with the true defaults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from surehook.cli import errors
from surehook.cli.main import Commands, app
from surehook.config import SETTINGS, UNAVAILABLE, Setting, Settings

DOCS = Path(__file__).parents[2] / "docs"
CONFIGURATION = (DOCS / "configuration.md").read_text()
CLI = (DOCS / "cli.md").read_text()


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_a_setting_is_documented_with_its_default_and_unit(setting: Setting) -> None:
    (row,) = re.findall(rf"^\| `{setting.name}` \|.*$", CONFIGURATION, re.MULTILINE)
    _, _, default, unit, meaning, reason, _ = (cell.strip() for cell in row.split("|"))
    shown = Settings().shown(setting.name)
    assert default == (f"`{shown}`" if shown else "–")
    assert unit == setting.unit
    assert meaning
    assert reason


def test_no_setting_is_documented_that_does_not_exist() -> None:
    named = set(re.findall(r"^\| `([a-z0-9_]+)` \|", CONFIGURATION, re.MULTILINE))
    assert named == {setting.name for setting in SETTINGS}
    assert all(f"`{name}`" in CONFIGURATION for name in UNAVAILABLE)


def test_every_exit_code_is_documented() -> None:
    codes = {value for name, value in vars(errors).items() if name.isupper() and isinstance(value, int)}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", CLI, re.MULTILINE)} == codes


@pytest.mark.parametrize("name", [entry.name for entry in Commands.entries])
def test_every_command_and_every_verb_of_a_noun_is_documented(name: str) -> None:
    assert f"surehook {name}" in CLI
    command = get_command(app).get_command(None, name)  # type: ignore[attr-defined]
    if isinstance(command, TyperGroup):
        for verb in command.commands:
            assert re.search(
                rf"surehook {name}[^|\n]*\b{verb}\b|`{name} {verb}|deliveries {verb}|`surehook {verb}", CLI
            ), verb
