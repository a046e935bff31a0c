"""What a delivery's history keeps of an answer."""

from __future__ import annotations

from surehook.core import kept
from surehook.core.limits import ANSWER_BYTES_LATER, ANSWERS_WHOLE

BODY = b"x" * 16_384
HEADERS = b"x-line: " + b"y" * 90 + b"\n"
LINES = HEADERS * 40


def test_the_first_answers_and_the_last_one_are_kept_whole() -> None:
    for number, is_last in ((1, False), (ANSWERS_WHOLE, False), (ANSWERS_WHOLE + 1, True), (99, True)):
        assert kept.body(BODY, number=number, is_last=is_last) == BODY
        assert kept.headers(LINES, number=number, is_last=is_last) == LINES


def test_of_later_answers_the_beginning_is_kept_in_whole_header_lines() -> None:
    number = ANSWERS_WHOLE + 1
    assert kept.body(BODY, number=number, is_last=False) == BODY[:ANSWER_BYTES_LATER]
    cut = kept.headers(LINES, number=number, is_last=False)
    assert cut == HEADERS * 10 and len(cut) <= ANSWER_BYTES_LATER
    assert kept.headers(b"x" * 2_000, number=number, is_last=False) == b"", "no line has an end there"


def test_short_answers_are_kept_whole_however_often_they_come() -> None:
    assert kept.body(b"no", number=99, is_last=False) == b"no"
    assert kept.headers(HEADERS, number=99, is_last=False) == HEADERS
