"""Running a command line inside the test's own process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.json import decode

from surehook.cli.main import run


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return decode(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def surehook(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`surehook("send", "document.signed", env={...})` in an empty folder, with only the given variables."""
    monkeypatch.chdir(tmp_path)
    import os

    # COLUMNS: the width for which lists are made; whoever runs tests in several processes sets it.
    for name in [name for name in os.environ if name.startswith("SUREHOOK_") or name == "COLUMNS"]:
        monkeypatch.delenv(name)

    def call(*args: str, env: dict[str, str] | None = None) -> Ran:
        with monkeypatch.context() as patch:
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            code = run(list(args))
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return call
