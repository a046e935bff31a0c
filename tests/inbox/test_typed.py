"""Types find the usual mistakes before anything runs: `typed/wrong.py` has one a line, `typed/right.py` none.

A misspelt source of a handler is not among them: which sources an inbox has is a list of values, which no type holds. It is
refused when the handler is defined (`test_mistakes.py`).
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from surehook.core.sources.catalog import PROVIDERS, bearer_provider, hmac_provider
from surehook.inbox import operations
from surehook.inbox.definitions import Definitions
from surehook.inbox.handlers import HandlerOptions, Returned
from surehook.inbox.sources import Source
from surehook.inbox.sources.options import BearerOptions, Choices, HmacOptions, ProviderName
from surehook.ports.inbox_runs import Filter

TYPED = Path(__file__).parent / "typed"
ROOT = TYPED.parents[2]


@pytest.mark.slow
def test_mypy_finds_each_mistake_and_nothing_else():
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(TYPED / "wrong.py"), str(TYPED / "right.py")],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    lines = re.findall(r"^\S+/(\w+)\.py:(\d+): error", found.stdout, re.MULTILINE)
    text = (TYPED / "wrong.py").read_text().splitlines()
    marked = [("wrong", str(n)) for n, line in enumerate(text, 1) if "# mistake: " in line]
    assert len(marked) == 17
    assert sorted(set(lines)) == sorted(marked), found.stdout


def test_the_types_name_what_the_code_takes():
    assert set(get_args(ProviderName)) == set(PROVIDERS)
    choices = _keywords(Source.__init__) - {"name"}
    assert set(Choices.__annotations__) == choices
    assert set(HmacOptions.__annotations__) == choices | _keywords(hmac_provider)
    assert set(BearerOptions.__annotations__) == choices | _keywords(bearer_provider)
    assert set(HandlerOptions.__annotations__) == _keywords(Definitions.on)
    assert {operations._NAMES.get(name, name) for name in operations.EventQuery.__annotations__} == set(
        Filter.__struct_fields__
    )


def test_what_handlers_give_back_is_written_as_types():
    """Of a text put together from two, pyright makes Unknown, and lets every coroutine pass. It is no dependency: by hand,
    `pyright tests/inbox/typed` finds the same mistakes."""
    assert type(None) in get_args(Returned)


def _keywords(function: object) -> set[str]:
    parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return {one.name for one in parameters if one.kind is one.KEYWORD_ONLY}
