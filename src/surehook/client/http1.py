"""Requests as bytes, and answers out of bytes, for a client of one known server, without any input or output of its own.

Both clients use it, so they understand a server in exactly the same way. Answers are read by the strict reader that
deliveries use (`core/http1/answer.py`), with room for whole bodies.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from surehook.core.http1.answer import DONE, AnswerReader, Caps
from surehook.core.http1.answer_head import Fault

HEAD_BYTES_MAX = 64 * 1024  # far above what any server of ours sends; more is not ours
BODY_BYTES_MAX = 64 * 1024 * 1024  # a page of 200 events of the largest size, and some air
CAPS = Caps(
    head_bytes=HEAD_BYTES_MAX,
    line_bytes=HEAD_BYTES_MAX,
    fields=1_000,
    body_read_bytes=BODY_BYTES_MAX + BODY_BYTES_MAX // 4,
    body_kept_bytes=BODY_BYTES_MAX,
    body_pieces=1_000_000,
    trusts_extensions=True,
)
_WORDS: dict[Fault, str] = {
    "not_http": "the answer is not HTTP/1.1",
    "bad_status": "the status line of the answer cannot be read",
    "bad_headers": "a header line of the answer is not NAME: VALUE",
    "bad_framing": "the answer does not say clearly where its body ends",
    "headers_too_large": "the headers of the answer are too large",
    "too_many_informational": "the answer is preceded by too many interim ones",
    "switched_protocols": "the server changed to another protocol",
}


class NotHttp(Exception):
    """The bytes that came are no HTTP/1.1 answer, or pass a bound."""


class HttpAnswer(Struct, frozen=True):
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


class IncomingAnswer:
    """The answer to one request, as far as it has come. Feed bytes until `feed` or `end` returns it whole."""

    def __init__(self) -> None:
        self._reader = AnswerReader(CAPS)
        self.has_begun = False  # a byte of it was seen

    def feed(self, data: bytes) -> HttpAnswer | None:
        """Take bytes in; the answer when it is complete, else None. Raises NotHttp."""
        self.has_begun = self.has_begun or bool(data)
        reader = self._reader
        if reader.feed(data) == DONE:
            if reader.failure is not None:
                raise NotHttp(_WORDS[reader.failure])
            if reader.truncated:
                raise NotHttp("the answer is too large, or broken in the middle")
            return self._answer()
        if reader.left is not None and reader.left > BODY_BYTES_MAX:
            raise NotHttp("the answer is too large")
        return None

    def end(self) -> HttpAnswer | None:
        """The connection has ended: the answer, where its body runs to the end; None: it broke off."""
        self._reader.end()
        return None if self._reader.status is None or self._reader.truncated else self._answer()

    def _answer(self) -> HttpAnswer:
        reader = self._reader
        assert reader.status is not None
        headers = {}
        for line in reader.head.decode("latin-1").split("\r\n")[:-1]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip(" \t")
        return HttpAnswer(reader.status, headers, reader.body, reader.reusable)
