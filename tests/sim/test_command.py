"""`python -m lab sim`: figures on stdout, exit code 1 with a line to replay where something was found."""

from __future__ import annotations

import json
import os
import signal as signals
import subprocess
import sys
from contextlib import suppress

import pytest

from lab.__main__ import run


def test_worlds_that_hold_end_with_a_line_of_figures(capsys: pytest.CaptureFixture[str]):
    assert run(["sim", "--seeds", "2"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("sim: worlds=2 failed=0 ledger=memory")


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]):
    assert run(["sim", "--seed", "5", "--seeds", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["worlds"], told["held"], told["failed"]) == (1, True, [])


def test_one_named_seed_is_one_world(capsys: pytest.CaptureFixture[str]):
    assert run(["sim", "--seed", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["worlds"] == 1


def test_a_finding_names_its_seed_its_story_and_how_to_see_it_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("lab.sim.world.is_genuine", lambda secrets, headers, body: False)
    assert run(["sim", "--seed", "1", "--seeds", "1", "--ledger", "memory"]) == 1
    told = capsys.readouterr()
    assert "does not verify" in told.out
    assert "replay: python -m lab sim --seed 1 --ledger memory --trace" in told.out
    assert "FINDING" in told.err


def test_an_unknown_ledger_is_a_usage_error():
    with pytest.raises(SystemExit) as ended:
        run(["sim", "--ledger", "paper"])
    assert ended.value.code == 2


@pytest.mark.slow
def test_several_processes_tell_what_one_tells(capsys: pytest.CaptureFixture[str]):
    def told(jobs: int) -> dict[str, object]:
        assert run(["sim", "--seed", "16", "--seeds", "5", "--json", "--jobs", str(jobs)]) == 0
        document: dict[str, object] = json.loads(capsys.readouterr().out)
        del document["seconds"]
        return document

    assert told(2) == told(1)


CAMPAIGN = """
import signal
from lab.sim.campaign import campaign
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has it ignored in what it begins beside itself
campaign(0, 4_000, inbox=True, jobs=2, told=lambda report: print(report.seed, flush=True))
"""


@pytest.mark.slow
@pytest.mark.parametrize("signal", [signals.SIGTERM, signals.SIGINT, signals.SIGKILL])
def test_no_process_of_a_campaign_outlives_the_one_that_began_it(signal: signals.Signals):
    began = subprocess.Popen(
        [sys.executable, "-c", CAMPAIGN],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert began.stdout is not None
        assert began.stdout.readline() == b"0\n"  # its workers have begun
        began.send_signal(signal)
        began.communicate(timeout=60)  # until the last who could write to it has ended
    finally:
        with suppress(ProcessLookupError):
            os.killpg(began.pid, signals.SIGKILL)
