"""The command tree: help, mistakes, exit codes."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from surehook.cli import errors
from surehook.cli.main import Commands, run
from surehook.client.errors import Refused, Unreachable
from surehook.core.errors import LedgerUnavailable, Problem, SettingsError
from tests.cli.conftest import Run

# Loaded by other commands' work, never by help: each alone costs more than the whole help does.
HEAVY = {"rich", "asyncio", "http.client", "ssl", "sqlalchemy", "starlette", "uvicorn", "pydantic", "sqlite3"}


def test_every_command_has_its_module() -> None:
    assert [entry.name for entry in Commands.entries if find_spec(entry.module) is None] == []


def test_help_lists_every_command_with_its_sentence(surehook: Run) -> None:
    ran = surehook("--help")
    assert ran.code == 0
    assert [entry.name for entry in Commands.entries if entry.summary not in ran.out] == []


@pytest.mark.parametrize(
    "words",
    [(), ("serve",), ("send",), ("endpoints", "create"), ("deliveries", "list")],
)
def test_help_loads_nothing_heavy(words: tuple[str, ...]) -> None:
    program = (
        f"import sys; from surehook.cli.main import run; run([*{words!r}, '--help']);"
        f"print(sorted({HEAVY!r} & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"


@pytest.mark.parametrize("name", [entry.name for entry in Commands.entries])
def test_every_command_explains_itself(surehook: Run, name: str) -> None:
    ran = surehook(name, "--help")
    assert ran.code == 0
    assert f"Usage: surehook {name}" in ran.out
    assert ran.err == ""
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", ran.out, re.MULTILINE)
    assert sorted(set(options)) == sorted(options), "each has one meaning"


def test_a_mistyped_command_is_a_usage_error_with_a_suggestion(surehook: Run) -> None:
    ran = surehook("endpoint", "list")
    assert ran.code == errors.USAGE
    assert "Did you mean 'endpoints'" in ran.err


@pytest.mark.parametrize(
    "args", [("send",), ("serve", "--port", "http"), ("serve", "--wrong"), ("policy", "show"), ("nothing",)]
)
def test_wrong_usage_is_exit_code_2(surehook: Run, args: tuple[str, ...]) -> None:
    ran = surehook(*args)
    assert ran.code == errors.USAGE
    assert ran.out == ""
    assert "Usage:" in ran.err


def test_version_is_data_on_stdout(surehook: Run) -> None:
    assert surehook("--version").out.startswith("surehook ")
    assert set(surehook("version", "--json").json) == {"surehook", "python", "sqlite", "system"}


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (SettingsError("port", "'x' is not accepted", hint="expected a number"), 2, "expected a number"),
        (Refused(401, "unauthorized", "The key is not known."), 3, "SUREHOOK_API_KEY"),
        (Refused(404, "not_found", "There is no such delivery."), 4, "not_found"),
        (Refused(422, "address_forbidden", "No.", field="url"), 5, "field url"),
        (Refused(409, "idempotency_conflict", "Another body."), 5, "Another body."),
        (Refused(503, "overloaded", "Try again."), 1, "Try again."),
        (Unreachable("http://h", "refused", maybe_done=False, hint="start it"), 6, "start it"),
        (Problem("bad_policy", "Too long.", field="schedule"), 5, "field schedule"),
        (LedgerUnavailable("locked"), 1, "surehook doctor"),
        (OSError(98, "Address already in use"), 1, "--port"),
        (FileNotFoundError(2, "No such file", "a.json"), 1, "a.json"),
        (errors.CommandError("half", code=errors.PARTLY), 8, "half"),
        (ZeroDivisionError("division by zero"), 1, "this is a defect"),
    ],
)
def test_each_error_has_its_exit_code_and_words(
    capsys: pytest.CaptureFixture[str], error: Exception, code: int, words: str
) -> None:
    assert errors.report(error) == code
    err = capsys.readouterr().err
    assert words in err
    assert "Traceback" not in err


def test_an_interrupted_command_is_exit_code_130() -> None:
    assert errors.report(KeyboardInterrupt()) == 130


def test_the_traceback_is_shown_on_request_only(surehook: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surehook.cli.version.platform.platform", lambda: 1 / 0)
    assert "Traceback" not in surehook("version").err
    assert "unexpected ZeroDivisionError" in surehook("version").err
    assert "Traceback" in surehook("--traceback", "version").err


def test_an_unknown_setting_stops_every_command_that_reads_settings(surehook: Run) -> None:
    ran = surehook("config", "show", env={"SUREHOOK_PROT": "1"})
    assert ran.code == errors.USAGE
    assert "did you mean SUREHOOK_PORT?" in ran.err


def test_a_closed_pipe_is_the_end_and_not_an_error() -> None:
    program = f'{sys.executable} -c \'from surehook.cli.main import run; import sys; sys.exit(run(["config", "show"]))\''
    ran = subprocess.run(["sh", "-c", f"{program} | true"], capture_output=True, text=True, check=True)
    assert ran.stderr == ""


def test_run_returns_the_code_of_the_command(surehook: Run) -> None:
    assert run(["version"]) == 0
