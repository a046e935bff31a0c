"""Reading an answer: however its bytes are cut, and whatever else a port may say."""

from __future__ import annotations

import pytest

from surehook.client.http1 import HEAD_BYTES_MAX, HttpAnswer, IncomingAnswer, NotHttp, render

LENGTH = b"HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + LENGTH
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
CLOSING = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"


@pytest.mark.parametrize(
    ("data", "status", "body", "keep"),
    [
        (LENGTH, 202, b"hello", True),
        (CHUNKED, 200, b"hello", True),
        (INTERIM, 202, b"hello", True),
        (EMPTY, 204, b"", True),
        (CLOSING, 200, b"hello", False),
    ],
)
def test_an_answer_is_the_same_however_its_bytes_are_cut(
    data: bytes, status: int, body: bytes, keep: bool
) -> None:
    for size in range(1, len(data) + 1):
        reader = IncomingAnswer()
        answers = [reader.feed(data[at : at + size]) for at in range(0, len(data), size)]
        assert answers[:-1] == [None] * (len(answers) - 1)
        last = answers[-1]
        assert isinstance(last, HttpAnswer)
        assert (last.status, last.body, last.keep) == (status, body, keep)


def test_a_body_without_length_ends_with_the_connection() -> None:
    reader = IncomingAnswer()
    assert reader.feed(b"HTTP/1.0 200 OK\r\n\r\nhel") is None
    assert reader.feed(b"lo") is None
    ended = reader.end()
    assert ended is not None
    assert (ended.body, ended.keep) == (b"hello", False)


@pytest.mark.parametrize("cut", [0, 10, 30, len(LENGTH) - 1])
def test_an_answer_that_breaks_off_is_no_answer(cut: int) -> None:
    reader = IncomingAnswer()
    assert reader.feed(LENGTH[:cut]) is None
    assert reader.end() is None
    assert reader.has_begun == (cut > 0)


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * HEAD_BYTES_MAX,
    ],
)
def test_what_is_not_an_answer_is_refused(data: bytes) -> None:
    with pytest.raises(NotHttp):
        IncomingAnswer().feed(data)


def test_a_request_says_how_long_its_body_is() -> None:
    assert (
        render("POST", "/x", {"host": "h"}, b"ab")
        == b"POST /x HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nab"
    )
    assert render("POST", "/x", {}, b"") == b"POST /x HTTP/1.1\r\ncontent-length: 0\r\n\r\n"
    assert render("GET", "/x", {}, b"") == b"GET /x HTTP/1.1\r\n\r\n"


def test_a_line_break_cannot_be_smuggled_into_a_header() -> None:
    with pytest.raises(ValueError, match="line break"):
        render("GET", "/x", {"idempotency-key": "a\r\nhost: evil"}, b"")
