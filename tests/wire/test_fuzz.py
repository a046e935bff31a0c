"""Noise against the reader of answers: a bounded run; the long one is `lab.bench.fuzz`."""

from __future__ import annotations

import random

import h11
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.bench.fuzz import check_answer, check_url, damaged
from surehook.core.http1.answer import DONE, AnswerReader
from tests.budget import examples
from tests.wire.answers import CASES

SMALL = [case.data for case in CASES if len(case.data) < 3_000]


def test_twenty_thousand_damaged_answers_end_as_a_status_or_a_named_failure():
    for seed in range(20_000):
        chance = random.Random(seed)
        check_answer(damaged(chance, SMALL), chance)


@settings(max_examples=examples(1_000), deadline=None)
@given(st.binary(max_size=300), st.integers(0, 9))
def test_any_bytes_end_as_a_status_or_a_named_failure(data, seed):
    for start in (b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"):
        check_answer(start + data, random.Random(seed))


@settings(max_examples=examples(1_000), deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_a_url_or_a_problem(text):
    check_url(text)


def by_h11(data: bytes) -> tuple[int, bytes]:
    """What another strict reader makes of an answer to a POST."""
    other = h11.Connection(h11.CLIENT)
    other.send(h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")]))
    other.send(h11.EndOfMessage())
    other.receive_data(data)
    other.receive_data(b"")
    status, body = 0, b""
    while not isinstance(event := other.next_event(), (h11.EndOfMessage, h11.ConnectionClosed)):
        if isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
    return status, body


def test_what_is_taken_is_read_the_same_by_another_reader():
    taken = 0
    for seed in range(40_000):
        data = damaged(random.Random(seed), SMALL)
        reader = AnswerReader()
        if reader.feed(data) != DONE:
            reader.end()
        if reader.status is None or reader.truncated or not reader.reusable:
            continue
        taken += 1
        assert by_h11(data) == (reader.status, reader.body), data
    assert taken > 1_000, "the oracle was asked often enough"
