"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

CHARS = 64  # of a word: comparing takes time that grows with its square
SHOWN = 40  # names in a hint
NEAR = 0.6  # of two words, from 0 to 1


def meant(word: str, known: Collection[str], what: str, *, near_from: float = NEAR) -> str:
    """A hint: the nearest name, if it is as near as this, or all of them. `what` they are, in the plural."""
    if near := get_close_matches(word[:CHARS].lower(), known, n=1, cutoff=near_from):
        return f"did you mean {near[0]!r}?"
    return f"{what}: {', '.join(sorted(known)[:SHOWN]) or 'none'}"
