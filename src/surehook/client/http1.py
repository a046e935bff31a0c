"""HTTP/1.1 as far as a client of one known server needs it, without any input or output of its own.

A request is rendered to bytes; the bytes of the answer are fed to an `AnswerReader`, which returns the
answer once it is complete (RFC 9112: status line, fields, then a body by length, by chunks, or to the end
of the connection). Both clients use it, so they understand a server in exactly the same way.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

HEAD_BYTES_MAX = 64 * 1024  # far above what any server of ours sends; more is not ours
BODY_BYTES_MAX = 64 * 1024 * 1024  # a page of 200 events of the largest size, and some air


class NotHttp(Exception):
    """What came is not an HTTP/1.1 answer, or passes a bound."""


class Answer(Struct, frozen=True):
    """Status, lower-case header names, body, and whether the connection may be used again."""

    status: int
    headers: dict[str, str]
    body: bytes
    keep: bool


def render(method: str, target: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """The bytes of a request. Header values are the caller's: a line break in one is a ValueError."""
    lines = [f"{method} {target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body or method in ("POST", "PATCH", "PUT"):
        lines.append(f"content-length: {len(body)}")
    if any("\r" in text or "\n" in text for text in lines):
        raise ValueError("a line break in a header or a path")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class AnswerReader:
    """Feed bytes until `feed` or `end` returns the answer."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._head: tuple[int, dict[str, str]] | None = None
        self._body = bytearray()

    @property
    def has_begun(self) -> bool:
        """Whether any byte of an answer was seen."""
        return bool(self._data) or self._head is not None

    def feed(self, data: bytes) -> Answer | None:
        """Take bytes in; the answer when it is complete, else None. Raises NotHttp."""
        self._data += data
        while self._head is None:
            cut = self._data.find(b"\r\n\r\n")
            if cut < 0:
                if len(self._data) > HEAD_BYTES_MAX or not _may_be_http(self._data):
                    raise NotHttp("the answer is not HTTP")
                return None
            head = _parse_head(bytes(self._data[:cut]))
            del self._data[: cut + 4]
            if head[0] >= 200:  # an interim 1xx is followed by the real one
                self._head = head
        return self._take_body()

    def end(self) -> Answer | None:
        """The connection has ended: the answer, where its body runs to the end; None: it broke off."""
        if self._head is None or not self._runs_to_the_end():
            return None
        return self._answer(bytes(self._data), keep=False)

    def _take_body(self) -> Answer | None:
        assert self._head is not None
        status, headers = self._head
        if status in (204, 304):
            return self._answer(b"")
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return self._take_chunks()
        if len(self._data) > BODY_BYTES_MAX:
            raise NotHttp("the answer is too large")
        if self._runs_to_the_end():
            return None
        length = _number(headers["content-length"], base=10)
        if length > BODY_BYTES_MAX:
            raise NotHttp("the answer is too large")
        return self._answer(bytes(self._data[:length])) if len(self._data) >= length else None

    def _take_chunks(self) -> Answer | None:
        while True:
            cut = self._data.find(b"\r\n")
            if cut < 0:
                return None
            size = _number(self._data[:cut].split(b";")[0].decode("latin-1").strip(), base=16)
            if len(self._body) + size > BODY_BYTES_MAX:
                raise NotHttp("the answer is too large")
            if size == 0:
                # Trailers are not used by our server; the empty line ends the body.
                return self._answer(bytes(self._body)) if self._data.find(b"\r\n\r\n") >= 0 else None
            if len(self._data) < cut + 2 + size + 2:
                return None
            self._body += self._data[cut + 2 : cut + 2 + size]
            del self._data[: cut + 2 + size + 2]

    def _runs_to_the_end(self) -> bool:
        assert self._head is not None
        headers = self._head[1]
        return "content-length" not in headers and "transfer-encoding" not in headers

    def _answer(self, body: bytes, *, keep: bool = True) -> Answer:
        assert self._head is not None
        status, headers = self._head
        return Answer(status, headers, body, keep and headers.get("connection", "").lower() != "close")


def _may_be_http(data: bytearray) -> bool:
    return data[:5] == b"HTTP/"[: len(data[:5])]


def _parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *rest = head.decode("latin-1").split("\r\n")
    version, _, after = first.partition(" ")
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise NotHttp("the answer is not HTTP/1.1")
    headers: dict[str, str] = {}
    if version == "HTTP/1.0":
        headers["connection"] = "close"
    for line in rest:
        name, colon, value = line.partition(":")
        if not colon:
            raise NotHttp("a header line without a colon")
        headers[name.strip().lower()] = value.strip()
    return _number(after[:3], base=10), headers


def _number(text: str, *, base: int) -> int:
    try:
        if not text.isalnum():
            raise ValueError
        return int(text, base)
    except ValueError:
        raise NotHttp(f"{text[:20]!r} is not a number") from None
