"""The head of a request (RFC 9112 sections 2 to 6): a strict grammar, its caps, and the length of the body.

Two readers of one request must never differ about where it ends, so whatever can be read in two ways is refused: a
bare line feed, a folded line, a space before a colon, `Content-Length` twice or beside `Transfer-Encoding`, any
transfer coding but `chunked`. Both length headers are refused as soon as they are doubtful, never repaired.
"""

from __future__ import annotations

import re

from msgspec import Struct

from surehook.core.errors import Problem
from surehook.core.http1.grammar import FIELD, TOKEN_CHAR
from surehook.core.limits import HEAD_BYTES, HEAD_FIELDS, REQUEST_LINE_BYTES

END = b"\r\n\r\n"
LENGTH_DIGITS = 18  # fits in 63 bits, and is far above every body that is taken

_LINE = re.compile(rb"(" + TOKEN_CHAR + rb"{1,32}) ([!-~]+) HTTP/([0-9])\.([0-9])\r\n")
_FIELDS = re.compile(rb"(?:" + FIELD + rb"\r\n)*+\r\n")
_FIELD = re.compile(rb"([^:]++):[\t ]*+([^\r]*+)\r\n")
_AUTHORITY = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*://[^/?#]*")
_MEANING = frozenset({b"content-length", b"transfer-encoding", b"host", b"connection", b"expect"})
_TOKEN_START = frozenset(b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")

TLS_HINT = "this port speaks plain HTTP: use http://, or put a proxy in front that ends TLS"
VERSION_HINT = "this server speaks HTTP/1.1; a proxy in front can speak HTTP/2 for it"


class RequestHead(Struct):
    """A request before its body. Header names are in lower case."""

    method: str
    path: bytes  # as written, without the query
    query: bytes
    http_version: str
    headers: list[tuple[bytes, bytes]]
    length: int | None  # of the body in bytes; None: chunked
    keep: bool  # the connection may be used again
    expects_continue: bool


def parse(head: bytes) -> RequestHead:
    """The meaning of a whole head, its last empty line included. Raises Problem."""
    line = _LINE.match(head)
    if line is None:
        raise _bad_line(head)
    method, target, major, minor = line.groups()
    if line.end() - 2 > REQUEST_LINE_BYTES:
        raise _target_too_long()
    if major != b"1":
        raise _version(major + b"." + minor)
    if head.count(b"\r\n", line.end()) > HEAD_FIELDS + 1:
        raise head_too_large(f"more than {HEAD_FIELDS} header lines")
    if _FIELDS.fullmatch(head, line.end()) is None:
        raise _bad_request("a header line is not NAME: VALUE", hint="lines end in CR LF and are not folded")
    fields = _FIELD.findall(head, line.end())
    return _judge(method, target, minor == b"0", fields)


def examine(data: bytes | bytearray, seen: int = 0) -> None:
    """Judge a head that is not complete yet; its first `seen` bytes were judged before. Raises Problem."""
    if seen == 0 and data and data[0] not in _TOKEN_START:
        raise _bad_request("this is TLS", hint=TLS_HINT) if data[0] == 0x16 else _bad_line(bytes(data[:16]))
    # Counted, since looking behind each character took 15 ns a byte: strangers send many.
    if data.count(b"\n", seen) != data.count(b"\r\n", max(0, seen - 1)):
        raise _bad_request("a line ends in LF alone", hint="lines end in CR LF")
    if len(data) > REQUEST_LINE_BYTES and data.find(b"\r\n", 0, REQUEST_LINE_BYTES + 2) < 0:
        raise _target_too_long()
    if len(data) > HEAD_BYTES:
        raise head_too_large(f"the head is longer than {HEAD_BYTES:,} bytes")


def head_too_large(detail: str) -> Problem:
    return Problem("head_too_large", detail, hint="send fewer or shorter headers", status=431)


def _judge(method: bytes, target: bytes, is_old: bool, fields: list[tuple[bytes, bytes]]) -> RequestHead:
    headers = []
    length: int | None = 0
    hosts = 0
    keep = not is_old
    expects = framed = False
    for name, value in fields:
        name = name.lower()
        if value[-1:] in (b" ", b"\t"):
            value = value.rstrip(b" \t")
        headers.append((name, value))
        if name in _MEANING:
            if name == b"host":
                hosts += 1
            elif name == b"connection":
                keep = keep and b"close" not in value.lower()
            elif name == b"expect":
                expects = value.lower() == b"100-continue" and not is_old
            else:
                if framed:
                    raise _bad_request(
                        "the length of the body is said twice", hint="one Content-Length, or chunked"
                    )
                framed = True
                length = _length(name, value, is_old)
    if hosts > 1 or (hosts == 0 and not is_old):
        raise _bad_request("a request has one Host header", hint="Host: NAME[:PORT]")
    path, _, query = _origin_form(target).partition(b"?")
    return RequestHead(
        method.decode(), path, query, "1.0" if is_old else "1.1", headers, length, keep, expects
    )


def _length(name: bytes, value: bytes, is_old: bool) -> int | None:
    """Bytes of the body that one of the two length headers means; None: chunked. Raises Problem."""
    if name == b"transfer-encoding":
        if value.lower() != b"chunked" or is_old:
            raise _bad_request("the one transfer coding is chunked, in HTTP/1.1", hint="send Content-Length")
        return None
    if not value.isdigit() or len(value) > LENGTH_DIGITS:
        raise _bad_request("Content-Length is not a number of bytes")
    return int(value)


def _origin_form(target: bytes) -> bytes:
    """The path and query of a target that may name scheme and host as well."""
    if target[:1] == b"/":
        return target
    absolute = _AUTHORITY.match(target)
    if absolute is None:
        return target  # `*`, or what no route takes
    rest = target[absolute.end() :]
    return rest if rest[:1] == b"/" else b"/" + rest


def _bad_request(detail: str, *, hint: str | None = None) -> Problem:
    return Problem("bad_request", detail, hint=hint, status=400)


def _bad_line(head: bytes) -> Problem:
    if len(head) > REQUEST_LINE_BYTES and head.find(b"\r\n", 0, REQUEST_LINE_BYTES + 2) < 0:
        return _target_too_long()
    return _bad_request("the first line is not METHOD TARGET HTTP/1.1")


def _target_too_long() -> Problem:
    return Problem(
        "target_too_long",
        f"the request line is longer than {REQUEST_LINE_BYTES:,} bytes",
        hint="send what is long in the body",
        status=414,
    )


def _version(version: bytes) -> Problem:
    return Problem("http_version", f"HTTP/{version.decode()} is not spoken", hint=VERSION_HINT, status=505)
