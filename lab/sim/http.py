"""The receivers' side of HTTP/1.1: strict about what arrives, free in what it answers.

A request that is not exactly what surehook promises to send (one Host, one Content-Length, no folded or
repeated headers, nothing after the body) raises `Malformed`, which a world reports as a finding: a lenient
parser would hide mistakes of the client.
"""

from __future__ import annotations

import re

from msgspec import Struct

HEAD_BYTES_MAX = 16_384
_REQUEST_LINE = re.compile(rb"(POST) (/[!-~]*) HTTP/1\.1")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*?)[ \t]*")


class Malformed(ValueError):
    """The client sent something it promises never to send."""


class Incoming(Struct, frozen=True):
    """One complete request, names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Parser:
    """Bytes in, complete requests out."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: tuple[str, str, dict[str, str], int] | None = None

    @property
    def is_between(self) -> bool:
        """No request has begun."""
        return not self._buffer and self._head is None

    def feed(self, data: bytes) -> Incoming | None:
        """The request that `data` completes, or None. Raises Malformed."""
        self._buffer += data
        if self._head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > HEAD_BYTES_MAX:
                    raise Malformed("the head of a request has no end")
                return None
            self._head = _head(bytes(self._buffer[:end]))
            del self._buffer[: end + 4]
        method, path, headers, length = self._head
        if len(self._buffer) < length:
            return None
        if len(self._buffer) > length:
            raise Malformed("bytes after the body: requests are never pipelined")
        body = bytes(self._buffer)
        self._buffer.clear()
        self._head = None
        return Incoming(method=method, path=path, headers=headers, body=body)


def _head(raw: bytes) -> tuple[str, str, dict[str, str], int]:
    first, *lines = raw.split(b"\r\n")
    request = _REQUEST_LINE.fullmatch(first)
    if request is None:
        raise Malformed(f"request line {first!r}")
    headers: dict[str, str] = {}
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match is None:
            raise Malformed(f"header line {line!r}")
        name = match[1].decode().lower()
        if name in headers:
            raise Malformed(f"header {name} twice")
        headers[name] = match[2].decode("latin-1")
    if not headers.get("host"):
        raise Malformed("no Host")
    length = headers.get("content-length", "")
    if not length.isdecimal() or "transfer-encoding" in headers:
        raise Malformed("a body without a plain Content-Length")
    return request[1].decode(), request[2].decode(), headers, int(length)


def answer(
    status: int, *, headers: tuple[tuple[str, str], ...] = (), body: bytes = b"", close: bool = False
) -> bytes:
    """The bytes of an honest answer."""
    lines = [f"HTTP/1.1 {status} Simulated", f"content-length: {len(body)}"]
    if status in (204, 304):
        lines.pop()
        body = b""
    if close:
        lines.append("connection: close")
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
