"""`python -m lab`: its commands, their help, and a terminal and a system that give little."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from lab import ROOT
from lab.__main__ import COMMANDS
from lab.__main__ import parser as of_the_lab
from lab.bench.command import SCENARIOS
from tests.e2e.calling import until

LAB = (sys.executable, "-m", "lab")
# Loaded by a command's work, never by help: each alone costs more than the whole help does.
HEAVY = {"rich", "asyncio", "http.client", "ssl", "sqlalchemy", "fastapi", "uvicorn", "pydantic", "sqlite3"}


def test_every_command_is_named_with_its_sentence() -> None:
    told = of_the_lab().format_help()
    assert [name for name, command in COMMANDS.items() if command.summary not in told] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        import_module(COMMANDS[name].module).main(["--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: python -m lab {name}")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_scenario_takes_the_options_that_the_command_line_offers(scenario) -> None:
    run = import_module(f"lab.bench.{scenario.module}").run
    taken = run.__code__.co_varnames[: run.__code__.co_argcount + run.__code__.co_kwonlyargcount]
    assert {option.name for option in scenario.options} <= set(taken)


@pytest.mark.parametrize("words", [(), ("sim",), ("bench",)])
def test_help_loads_nothing_heavy(words: tuple[str, ...]) -> None:
    program = (
        "import sys; from contextlib import suppress; from lab.__main__ import run\n"
        f"with suppress(SystemExit): run([*{words!r}, '--help'])\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stderr.strip() == "[]"


@pytest.mark.slow
def test_too_few_open_files_are_told_before_anything_fails_for_them() -> None:
    ran = subprocess.run(
        ["sh", "-c", 'ulimit -n 20; exec "$@" bench idle', "sh", *LAB],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: ulimit -n: 20 open files are allowed, and a server needs 64")
    assert "Traceback" not in ran.stderr


def catches(process: str) -> bool:
    """Whether Ctrl-C would be an exception there: the interpreter has come so far."""
    status = Path(f"/proc/{process}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1)


@pytest.mark.parametrize(("command", "processes"), [("bench throughput", 1), ("sim --seeds 400 --jobs 2", 2)])
def test_ctrl_c_while_processes_start_is_no_trace_of_theirs(command: str, processes: int) -> None:
    """A terminal sends it to every process of the command."""
    began = subprocess.Popen(
        [*LAB, *command.split()],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    with began:
        children = Path(f"/proc/{began.pid}/task/{began.pid}/children")
        until(lambda: sum(map(catches, children.read_text().split())) >= processes, "processes have begun")
        os.killpg(began.pid, signal.SIGINT)
        told, _ = began.communicate(timeout=30)
    assert (began.returncode, "Traceback" in told) == (130, False), told
