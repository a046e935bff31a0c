"""How many examples a test with random ones tries: all in `make test`, a fifth of them in `make check` (`BUDGET=short`)."""

from __future__ import annotations

import os

SHARE = 5
FEWEST = 20


def examples(full: int) -> int:
    """The number of examples, for `settings(max_examples=…)`."""
    asked = os.environ.get("BUDGET", "full")
    assert asked in ("full", "short"), f"BUDGET={asked}: may be `short`, or `full`"
    return full if asked == "full" else max(FEWEST, full // SHARE)
