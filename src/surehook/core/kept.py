"""Bounds of what a delivery's history keeps of an answer: a receiver with long answers must not fill the disk."""

from __future__ import annotations

from surehook.core.limits import ANSWER_BYTES_LATER, ANSWERS_WHOLE


def headers(lines: bytes, *, number: int, is_last: bool) -> bytes:
    """The header lines of attempt `number` to keep: all, or as many whole ones as there is room for."""
    if is_last or number <= ANSWERS_WHOLE or len(lines) <= ANSWER_BYTES_LATER:
        return lines
    return lines[: lines.rfind(b"\n", 0, ANSWER_BYTES_LATER) + 1]


def body(said: bytes, *, number: int, is_last: bool) -> bytes:
    """The part to keep of the body of attempt `number`."""
    if is_last or number <= ANSWERS_WHOLE:
        return said
    return said[:ANSWER_BYTES_LATER]
