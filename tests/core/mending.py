"""Halves of surrogate pairs mended the obvious way, for comparison."""

from __future__ import annotations

import re

_PAIR_OR_HALF = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def mend_halves(text: bytes, put: bytes = rb"\ufffd") -> bytes:
    """This text with `put`, an escape, for every half of a surrogate pair."""
    return _PAIR_OR_HALF.sub(lambda found: found[0] if found[1] is None else put, text)
