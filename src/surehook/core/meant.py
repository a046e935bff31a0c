"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

CHARS = 64  # of a word: comparing takes time that grows with its square
SHOWN = 40  # names in a hint


def meant(word: str, known: Collection[str], what: str) -> str:
    """A hint: the nearest name, or all of them. `what` they are, in the plural."""
    if near := get_close_matches(word[:CHARS].lower(), known, n=1):
        return f"did you mean {near[0]!r}?"
    return f"{what}: {', '.join(sorted(known)[:SHOWN]) or 'none'}"
