"""How much of what can be tried for ever a test tries: all in `make test`, a part in `make check`.

`examples` counts random ones, by `BUDGET=short`; `every` marks the parameters beyond a few as slow.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

SHARE = 5
FEWEST = 20


def examples(full: int) -> int:
    """The number of examples, for `settings(max_examples=…)`."""
    asked = os.environ.get("BUDGET", "full")
    assert asked in ("full", "short"), f"BUDGET={asked}: may be `short`, or `full`"
    return full if asked == "full" else max(FEWEST, full // SHARE)


def every(step: int, values: Iterable[Any]) -> list[Any]:
    """Parameters of which `make check` takes one in so many, the first among them."""
    return [
        pytest.param(value, marks=[pytest.mark.slow] if place % step else [])
        for place, value in enumerate(values)
    ]
