"""A chunked body of an answer (RFC 9112 section 7.1), taken apart as its bytes arrive.

A body never decides about a delivery, so this decoder only has to be bounded and honest: it stops at the first byte
that is out of place. Chunk extensions and trailers are legal and skipped, but mark
the body as not plain, and a connection that carried one is not used again unless its peer is trusted.
"""

from __future__ import annotations

import re

from surehook.core.http1.grammar import FIELD, TEXT

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})(;" + TEXT + rb")?")
_TRAILER = re.compile(FIELD)
_LINE_BYTES = 256  # a size with its extension; also one trailer line

_AT_SIZE, _AT_DATA, _AT_END, _AT_TRAILER = range(4)


class Chunks:
    """Feed it until it is complete or broken; `kept` is the decoded body up to `kept_max` bytes. A body in more than
    `pieces_max` chunks and trailers is broken off: a chunk of one byte costs as much work as one of a kilobyte."""

    __slots__ = (
        "_buffer", "_kept_max", "_left", "_pieces_left", "_state", "is_plain", "kept", "leftover", "truncated",
    )  # fmt: skip

    def __init__(self, kept_max: int, pieces_max: int) -> None:
        self._buffer = bytearray()
        self._kept_max = kept_max
        self._pieces_left = pieces_max
        self._left = 0
        self._state = _AT_SIZE
        self.is_plain = True  # neither extensions nor trailers
        self.kept = bytearray()
        self.leftover = False  # bytes followed the end of the body
        self.truncated = False  # the body was longer than kept_max

    @property
    def held_bytes(self) -> int:
        return len(self._buffer) + len(self.kept)

    def feed(self, data: bytes) -> bool | None:
        """Take bytes: True if the body is complete, False if it is broken, None if more is needed."""
        if self._buffer:
            data = bytes(self._buffer) + data
            self._buffer.clear()
        at, end = 0, len(data)
        while at < end:
            if self._state == _AT_DATA:
                taken = min(self._left, end - at)
                self._keep(data[at : at + taken])
                self._left -= taken
                at += taken
                if self._left == 0:
                    self._state = _AT_END
                continue
            stop = data.find(b"\r\n", at, at + _LINE_BYTES + 2)
            if stop < 0:
                return self._wait(data[at:])
            line = data[at:stop]
            if self._state != _AT_END and line and line != b"0":
                self._pieces_left -= 1
                if self._pieces_left < 0:
                    return False
            at = stop + 2
            if self._state == _AT_END:
                if line:
                    return False
                self._state = _AT_SIZE
            elif self._state == _AT_SIZE:
                if not self._size(line):
                    return False
            elif not line:
                self.leftover = at < end
                return True
            elif _TRAILER.fullmatch(line):
                self.is_plain = False
            else:
                return False
        return None

    def _size(self, line: bytes) -> bool:
        match = _SIZE.fullmatch(line)
        if match is None:
            return False
        if match[2]:
            self.is_plain = False
        self._left = int(match[1], 16)
        self._state = _AT_DATA if self._left else _AT_TRAILER
        return True

    def _wait(self, rest: bytes) -> bool | None:
        """Keep an incomplete line, unless it can no longer become a good one."""
        limit = 1 if self._state == _AT_END else _LINE_BYTES
        if len(rest) > limit + 1 or (self._state == _AT_END and rest[:1] != b"\r"):
            return False
        if self._state == _AT_SIZE and not _SIZE.fullmatch(rest.removesuffix(b"\r")):
            return False
        self._buffer += rest
        return None

    def _keep(self, data: bytes) -> None:
        room = self._kept_max - len(self.kept)
        if len(data) > room:
            self.truncated = True
            data = data[:room]
        self.kept += data
