"""A chunked request body (RFC 9112 section 7.1), taken apart as its bytes arrive.

Everything around the data is bounded: a size line with its extensions, the trailers, and all of it together and the number
of chunks in proportion to the data, since a chunk of one byte costs as much to read as one of many. Extensions and trailers are
legal, checked, and dropped.
"""

from __future__ import annotations

import re

from surehook.core.errors import Problem
from surehook.core.http1.grammar import FIELD, TEXT
from surehook.core.limits import (
    CHUNK_BYTES,
    CHUNK_LINE_BYTES,
    CHUNK_OVERHEAD_BYTES,
    CHUNKS_AT_ONCE,
    CHUNKS_SMALL,
    TRAILER_BYTES,
)

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;" + TEXT + rb")?")
_TRAILER = re.compile(FIELD)

# Sizes of small chunks as they are written.
_SMALL = {form % size: size for size in range(1, 0x1000) for form in (b"%x", b"%X")}

_AT_SIZE, _AT_DATA, _AT_DATA_END, _AT_TRAILER, _DONE = range(5)


class ChunkReader:
    """Reads one body: feed it until `done`."""

    __slots__ = ("_count", "_left", "_line", "_overhead", "_state", "_trailers", "size")

    def __init__(self) -> None:
        self._line = bytearray()  # an incomplete line
        self._count = 0  # chunks so far
        self._left = 0  # bytes of the chunk in hand
        self._state = _AT_SIZE
        self._overhead = 0  # bytes that are no data
        self._trailers = 0
        self.size = 0  # bytes of data so far

    @property
    def done(self) -> bool:
        return self._state == _DONE

    def feed(self, data: bytes, parts: list[bytes]) -> bytes:
        """Append the data of at most CHUNKS_AT_ONCE chunks to `parts`; the bytes after them, or after the end of the body,
        are returned. Raises Problem."""
        at, end = 0, len(data)
        last = self._count + CHUNKS_AT_ONCE
        while at < end and self._state != _DONE and not (self._state == _AT_SIZE and self._count >= last):
            if self._state == _AT_SIZE and not self._line:
                begun, at = at, self._whole(data, at, parts, last - self._count)
                if at > begun:
                    continue
            if self._state == _AT_DATA:
                part = data[at : at + self._left]
                parts.append(part)
                at += len(part)
                self.size += len(part)
                self._left -= len(part)
                if self._left == 0:
                    self._state = _AT_DATA_END
                continue
            stop = data.find(b"\n", at, end)
            self._line += data[at : end if stop < 0 else stop + 1]
            self._overhead += (end if stop < 0 else stop + 1) - at
            self._check()
            if stop < 0:
                return b""
            at = stop + 1
            line = bytes(self._line)
            self._line.clear()
            if not line.endswith(b"\r\n"):
                raise _bad("a line ends in LF alone")
            self._take(line[:-2])
        return data[at:]

    def _whole(self, data: bytes, at: int, parts: list[bytes], most: int) -> int:
        """Take complete small chunks without extensions, at most so many, and return where the next chunk begins. Costs a quarter
        of taking them line by line."""
        begun, size, count = at, 0, len(parts)
        for _ in range(most):
            stop = data.find(b"\r\n", at, at + 5)
            length = _SMALL.get(data[at:stop], 0) if stop > 0 else 0
            follows = stop + 2 + length
            if not length or data[follows : follows + 2] != b"\r\n":
                break
            parts.append(data[stop + 2 : follows])
            size += length
            at = follows + 2
        if at > begun:
            self.size += size
            self._overhead += at - begun - size
            self._more(len(parts) - count)
            self._check()
        return at

    def _more(self, chunks: int) -> None:
        self._count += chunks
        if self._count > CHUNKS_SMALL + self.size // CHUNK_BYTES:
            raise _bad(f"more than {CHUNKS_SMALL:,} chunks, of less than {CHUNK_BYTES} bytes each")

    def _check(self) -> None:
        if len(self._line) > CHUNK_LINE_BYTES:
            if self._state == _AT_TRAILER:
                raise _too_large()
            raise _bad(f"a chunk's size line is longer than {CHUNK_LINE_BYTES} bytes")
        if self._overhead > self.size + CHUNK_OVERHEAD_BYTES:
            raise _bad("the chunks are smaller than what stands around them")

    def _take(self, line: bytes) -> None:
        """One whole line: of a size, of the end of a chunk, or a trailer."""
        if self._state == _AT_DATA_END:
            if line:
                raise _bad("a chunk is longer than it says")
            self._state = _AT_SIZE
        elif self._state == _AT_SIZE:
            size = _SIZE.fullmatch(line)
            if size is None:
                raise _bad("a chunk's size is not a hexadecimal number")
            self._left = int(size[1], 16)
            self._more(1)
            self._state = _AT_DATA if self._left else _AT_TRAILER
        elif not line:
            self._state = _DONE
        else:
            self._trailers += len(line)
            if self._trailers > TRAILER_BYTES:
                raise _too_large()
            if _TRAILER.fullmatch(line) is None:
                raise _bad("a trailer is not NAME: VALUE")


def _bad(detail: str) -> Problem:
    return Problem(
        "bad_request", detail, hint="send Content-Length, or chunks as RFC 9112 has them", status=400
    )


def _too_large() -> Problem:
    return Problem(
        "head_too_large",
        f"the trailers are longer than {TRAILER_BYTES:,} bytes",
        hint="trailers are not used here",
        status=431,
    )
