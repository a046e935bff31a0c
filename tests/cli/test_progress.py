"""Waiting is not silent for long, and never noisy."""

from __future__ import annotations

import threading

import pytest

from surehook.cli.progress import busy


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with busy("copying"):
        pass
    assert capsys.readouterr() == ("", "")


def test_long_work_says_how_long_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    said = threading.Event()

    class Text(str):
        def __format__(self, spec: str) -> str:
            said.set()
            return super().__format__(spec)

    with busy(Text("copying"), silent_s=0.0):
        assert said.wait(5)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("copying, 0 s\n")


def test_an_error_inside_passes_through() -> None:
    with pytest.raises(ZeroDivisionError), busy("dividing"):
        raise ZeroDivisionError
