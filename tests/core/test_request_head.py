"""Heads and chunks of requests: what is read, what is refused, and that pieces are read as the whole is."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehook.core import limits
from surehook.core.errors import Problem
from surehook.core.http1.request_chunks import ChunkReader
from surehook.core.http1.request_head import RequestHead, examine, parse

HOST = b"host: x\r\n"


def head(lines: bytes = b"", line: bytes = b"POST /v1/events HTTP/1.1\r\n") -> RequestHead:
    return parse(line + lines + b"\r\n")


def test_a_head_says_method_path_query_headers_and_length() -> None:
    found = head(
        HOST + b"Content-Length:  12 \r\nX-A:\tb c\t\r\nX-Empty:\r\n", b"GET /a%20b?c=d?e HTTP/1.1\r\n"
    )
    assert (found.method, found.path, found.query, found.http_version) == ("GET", b"/a%20b", b"c=d?e", "1.1")
    assert found.headers == [
        (b"host", b"x"),
        (b"content-length", b"12"),
        (b"x-a", b"b c"),
        (b"x-empty", b""),
    ]
    assert (found.length, found.keep, found.expects_continue) == (12, True, False)


@pytest.mark.parametrize(
    ("lines", "length", "keep", "expects"),
    [
        (HOST, 0, True, False),
        (HOST + b"connection: Close\r\n", 0, False, False),
        (HOST + b"Transfer-Encoding: Chunked\r\n", None, True, False),
        (HOST + b"expect: 100-continue\r\n", 0, True, True),
    ],
)
def test_a_head_says_what_is_to_come(lines: bytes, length: int | None, keep: bool, expects: bool) -> None:
    found = head(lines)
    assert (found.length, found.keep, found.expects_continue) == (length, keep, expects)


def test_a_request_of_http_1_0_needs_no_host_and_ends_its_connection() -> None:
    found = head(b"connection: keep-alive\r\n", b"GET / HTTP/1.0\r\n")
    assert (found.http_version, found.keep) == ("1.0", False)


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"http://x:80/v1/events?a=b", b"/v1/events", b"a=b"),
        (b"http://x", b"/", b""),
        (b"http://x?a", b"/", b"a"),
        (b"*", b"*", b""),
        (b"x:443", b"x:443", b""),
    ],
)
def test_a_target_may_name_the_host_as_well(target: bytes, path: bytes, query: bytes) -> None:
    found = head(HOST, b"GET " + target + b" HTTP/1.1\r\n")
    assert (found.path, found.query) == (path, query)


BAD_HEADS: list[tuple[bytes, str]] = [
    (b"GET / HTTP/1.1\r\n\r\n", "bad_request"),  # no Host
    (b"GET / HTTP/1.1\r\nhost: x\r\nhost: x\r\n\r\n", "bad_request"),
    (b"GET / HTTP/1.0\r\nhost: x\r\nhost: y\r\n\r\n", "bad_request"),
    (b"GET / HTTP/2.0\r\nhost: x\r\n\r\n", "http_version"),
    (b"PRI * HTTP/2.0\r\n\r\n", "http_version"),
    (b"GET / HTTP/9.9\r\n\r\n", "http_version"),
    (b"GET / http/1.1\r\nhost: x\r\n\r\n", "bad_request"),
    (b"GET  / HTTP/1.1\r\nhost: x\r\n\r\n", "bad_request"),
    (b"GET /\r\n\r\n", "bad_request"),
    (b"GET / HTTP/1.1 \r\nhost: x\r\n\r\n", "bad_request"),
    (b"GET /\xc3\xa9 HTTP/1.1\r\nhost: x\r\n\r\n", "bad_request"),
    (b"G(T / HTTP/1.1\r\nhost: x\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\nhost: x\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\n\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\n folded\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost : x\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\n: y\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\nno colon\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\na: \x00\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\na: b\rc\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: +1\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1,1\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0x1\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length:\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1" + b"0" * 30 + b"\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: identity\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n", "bad_request"),
    (b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: xchunked\r\n\r\n", "bad_request"),
    (
        b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
        "bad_request",
    ),
    (b"POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n", "bad_request"),
    (b"GET /" + b"a" * limits.REQUEST_LINE_BYTES + b" HTTP/1.1\r\nhost: x\r\n\r\n", "target_too_long"),
    (b"GET / HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * limits.HEAD_FIELDS + b"\r\n", "head_too_large"),
]


@pytest.mark.parametrize(("raw", "code"), BAD_HEADS, ids=range(len(BAD_HEADS)))
def test_a_head_that_can_be_read_in_two_ways_is_refused(raw: bytes, code: str) -> None:
    with pytest.raises(Problem) as refused:
        parse(raw)
    assert refused.value.code == code and refused.value.status >= 400


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x16\x03\x01\x02\x00", "bad_request"),
        (b"\x00", "bad_request"),
        (b"GET / HTTP/1.1\n", "bad_request"),
        (b"a" * (limits.REQUEST_LINE_BYTES + 3), "target_too_long"),
        (b"GET / HTTP/1.1\r\nx: " + b"a" * limits.HEAD_BYTES, "head_too_large"),
    ],
)
def test_a_head_without_its_end_is_refused_as_soon_as_it_cannot_become_one(data: bytes, code: str) -> None:
    with pytest.raises(Problem) as refused:
        examine(data)
    assert refused.value.code == code


def test_tls_on_this_port_is_named() -> None:
    with pytest.raises(Problem) as refused:
        examine(b"\x16\x03\x01")
    assert refused.value.hint is not None and "http://" in refused.value.hint


def test_a_line_end_in_two_pieces_is_no_bare_line_feed() -> None:
    data = b"GET / HTTP/1.1\r\nhost: x\r\n"
    for seen in range(1, len(data)):
        examine(data[:seen])
        examine(data, seen)


@given(st.binary(max_size=300))
def test_whatever_comes_is_read_or_refused(data: bytes) -> None:
    for read in (lambda: parse(data + b"\r\n\r\n"), lambda: examine(data)):
        with contextlib.suppress(Problem):
            read()


# -- chunks -------------------------------------------------------------------------------------------------


def test_chunks_become_data_and_what_follows_is_handed_back() -> None:
    reader, parts = ChunkReader(), list[bytes]()
    rest = reader.feed(b"5;a=b\r\nhello\r\n06\r\n world\r\n0\r\nx-trailer: y\r\n\r\nGET /", parts)
    assert (b"".join(parts), rest, reader.done, reader.size) == (b"hello world", b"GET /", True, 11)


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.data())
def test_chunks_in_pieces_are_read_as_the_whole_is(chunks: list[bytes], data: st.DataObject) -> None:
    raw = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\na: b\r\n\r\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    reader, parts = ChunkReader(), list[bytes]()
    for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        assert reader.feed(raw[start:end], parts) == b""
    assert reader.done and b"".join(parts) == b"".join(chunks)


BAD_CHUNKS: list[tuple[bytes, str]] = [
    (b"zz\r\n", "bad_request"),
    (b"\r\n", "bad_request"),
    (b"-1\r\n", "bad_request"),
    (b"0x5\r\nhello\r\n", "bad_request"),
    (b"5 \r\nhello\r\n", "bad_request"),
    (b"5\nhello\r\n", "bad_request"),
    (b"5\r\nhello!\r\n", "bad_request"),
    (b"5\r\nhello\n", "bad_request"),
    (b"f" * 16 + b"\r\n", "bad_request"),
    (b"5;" + b"a" * limits.CHUNK_LINE_BYTES + b"\r\n", "bad_request"),
    (b"5;" + b"a" * limits.CHUNK_LINE_BYTES, "bad_request"),
    (b"5;\x00\r\n", "bad_request"),
    (b"0\r\n folded\r\n\r\n", "bad_request"),
    (b"0\r\nno colon\r\n\r\n", "bad_request"),
    (b"0\r\na: " + b"b" * limits.CHUNK_LINE_BYTES, "head_too_large"),
    (b"0\r\n" + b"a: bcdefgh\r\n" * limits.TRAILER_BYTES, "head_too_large"),
    (b"1\r\na\r\n" * limits.CHUNKS_SMALL, ""),
    (b"1\r\na\r\n" * (limits.CHUNKS_SMALL + 9), "bad_request"),
    (b"80\r\n%b\r\n" % (b"a" * 128) * 3 * limits.CHUNKS_SMALL, ""),
    (b"3f\r\n%b\r\n" % (b"a" * 63) * 3 * limits.CHUNKS_SMALL, "bad_request"),
    (b"1;" + b"x" * 900 + b"\r\na\r\n" * 1, ""),
    (b"1;%b\r\na\r\n" % (b"x" * 900) + b"1;%b\r\na\r\n" % (b"x" * 900) * 80, "bad_request"),
]


@pytest.mark.parametrize(("raw", "code"), BAD_CHUNKS, ids=range(len(BAD_CHUNKS)))
def test_chunks_that_are_doubtful_or_mostly_framing_are_refused(raw: bytes, code: str) -> None:
    if not code:
        _read(raw)
        return
    with pytest.raises(Problem) as refused:
        _read(raw)
    assert refused.value.code == code


def _read(raw: bytes) -> None:
    """Whole, in as many goes as it takes."""
    reader = ChunkReader()
    while raw:
        raw = reader.feed(raw, [])


def test_a_few_chunks_are_read_in_one_go() -> None:
    reader, parts = ChunkReader(), list[bytes]()
    raw = b"1\r\na\r\n" * 100 + b"0\r\n\r\n"
    rest = reader.feed(raw, parts)
    assert (len(parts), len(rest)) == (limits.CHUNKS_AT_ONCE, len(raw) - 6 * limits.CHUNKS_AT_ONCE)
    assert reader.feed(rest, parts) == b"" and reader.done and len(parts) == 100
