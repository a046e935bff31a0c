"""The bytes of an answer, read strictly and under caps. Knows no socket, no clock, no loop.

An `AnswerReader` is fed the bytes that arrive and returns its phase. Anything outside the grammar of RFC 9112 that
two readers could understand differently ends it with a failure: bare CR or LF, folded lines, space
before a colon, control characters, two lengths, a length beside chunked, codings other than chunked.

Once the final status and its headers are complete, nothing in the body changes the verdict. A body that is
too long, comes in too many pieces, breaks off or is badly chunked is kept as far as it was read, and the
connection is not used again.

Heads are matched by one regular expression instead of a general parser: it is the strict grammar itself,
and matching a common head costs about a microsecond. A head means the same whenever it has the same bytes, and a busy
receiver repeats itself: an answer that begins with the very head of the one before on its connection, and is as long
as that one was, is not parsed again.
"""

from __future__ import annotations

from surehook.core.http1 import answer_head as heads
from surehook.core.http1.answer_chunks import Chunks
from surehook.core.http1.answer_head import Fault, HeadCaps, keep_alive_s, value, values

INTERIMS = 5  # 1xx answers before the final one
SAME_HEAD_BYTES = 1024  # of a head that is remembered for the answers after it

HEAD, BODY, DONE = 0, 1, 2  # the phase: what is awaited; DONE: complete, given up, or failed

_match_head = heads.HEAD.match
_INTERIM_TAKEN = frozenset({100, 102, 103})
_BODYLESS = frozenset({204, 304})


class Caps(HeadCaps, frozen=True, kw_only=True):
    """Bounds of one answer. The defaults are for answers of strangers, of which only the status decides."""

    body_read_bytes: int = 64 * 1024  # of the body as sent, chunk framing and trailers included
    body_kept_bytes: int = 16 * 1024
    # Reads of a body, and chunks and trailers in it: each costs as much as a kilobyte in one of them.
    body_pieces: int = 512
    # Use a connection again after chunk extensions or trailers, which not all readers understand alike.
    trusts_extensions: bool = False


STRANGERS = Caps()


class AnswerReader:
    """One answer. `reset` makes it ready for the next on the same connection.

    status      final status once its head is complete
    failure     why there is none
    head        header lines of the final head as received
    body        the kept part of the body, valid when DONE
    left        bytes of the body to come where its length was announced
    truncated   the kept body is not the whole body
    reusable    the answer was clean and complete and the connection may carry another request
    keep_s      seconds of a `Keep-Alive: timeout=`, or None
    """

    __slots__ = (
        "_budget", "_buffer", "_caps", "_chunks", "_interims", "_is_odd", "_kept", "_line_at", "_line_number", "_pieces",
        "_same", "_same_bytes", "_same_head", "_seen", "body", "failure", "head", "keep_s", "left", "phase", "reusable", "status",
        "truncated",
    )  # fmt: skip

    def __init__(self, caps: Caps = STRANGERS) -> None:
        self._caps = caps
        self._buffer = bytearray()
        self._kept = bytearray()
        # Of the last answer that came clean and whole in one piece: its head, its length, and what the head said.
        self._same_head = b""
        self._same_bytes = -1
        self._same: tuple[int, bytes, int | None] = (0, b"", None)
        self.reset()

    def reset(self) -> None:
        self.phase = HEAD
        self.status: int | None = None
        self.failure: Fault | None = None
        self.head = b""
        self.body = b""
        self.truncated = False
        self.reusable = False
        self.keep_s: int | None = None
        self._interims = 0
        self._is_odd = False  # legal, but read differently by some: no other request goes this way
        self._seen = 0  # bytes of the buffer that were already looked through for the end of the head
        self._line_at = self._line_number = 0  # its last line, which is not complete
        caps = self._caps
        self._budget = caps.body_read_bytes
        self._pieces = caps.body_pieces
        self.left: int | None = None  # None: chunked, or until the connection ends
        self._chunks: Chunks | None = None

    @property
    def held_bytes(self) -> int:
        """Bytes of the answer that are in memory now."""
        chunks = 0 if self._chunks is None else self._chunks.held_bytes
        return len(self._buffer) + len(self._kept) + len(self.head) + len(self.body) + chunks

    def feed(self, data: bytes) -> int:
        """Take what arrived; returns the phase. Must not be called again once DONE."""
        if self.phase == HEAD:
            if self._buffer:
                self._buffer += data
                return self._search()
            if len(data) == self._same_bytes and not self._interims and data.startswith(self._same_head):
                self.status, self.head, self.keep_s = self._same
                self.body = data[len(self._same_head) :]
                self.reusable = True
                self.phase = DONE
                return DONE
            return self._heads(data)
        return self._take(data)

    def end(self) -> None:
        """Settle with what there is, since the connection ended."""
        if self.phase == BODY:
            self._finish(complete=self.left is None and self._chunks is None, reusable=False)
        elif self.phase == HEAD:
            self.phase = DONE

    def cut(self) -> None:
        """Stop waiting for the rest of the body."""
        self._finish(complete=False, reusable=False)

    # -- heads ------------------------------------------------------------------------------------------

    def _heads(self, data: bytes) -> int:
        """Read heads from the start of `data` until one is final or incomplete."""
        at, caps = 0, self._caps
        while True:
            match = _match_head(data, at)
            if match is None or match.end() - at > caps.line_bytes:
                end = data.find(b"\r\n\r\n", at)
                if end < 0:
                    self._buffer += data[at : at + caps.head_bytes + 4]  # so long and no end: it has a fault
                    return self._partial()
                failure = heads.examine(data[at : end + 4], caps)[0]
                if match is None or failure is not None:
                    return self._fail(failure or "bad_headers")
            version, status_text, lines = match.groups()
            status = int(status_text)
            if lines.count(b"\r\n") > caps.fields:
                return self._fail("headers_too_large")
            at = match.end()
            if status >= 200:
                return self._final(status, lines, data, at, is_old=version == b"0")
            failure = self._interim(status, lines)
            if failure is not None:
                return self._fail(failure)
            if at == len(data):
                return HEAD

    def _search(self) -> int:
        """Look for the end of the head in what has gathered so far."""
        if self._buffer.find(b"\r\n\r\n", max(0, self._seen - 3)) < 0:
            return self._partial()
        data = bytes(self._buffer)
        self._buffer.clear()
        self._seen = self._line_at = self._line_number = 0
        return self._heads(data)

    def _partial(self) -> int:
        """Judge an incomplete head: one that cannot become valid is refused now, not at the deadline."""
        failure, self._line_at, self._line_number = heads.examine(
            self._buffer, self._caps, self._line_at, self._line_number
        )
        if failure is not None:
            return self._fail(failure)
        self._seen = len(self._buffer)
        return HEAD

    def _interim(self, status: int, lines: bytes) -> Fault | None:
        if status == 101:
            return "switched_protocols"
        if status not in _INTERIM_TAKEN:
            return "bad_status"
        low = b"\r\n" + lines.lower()
        if b"\r\ncontent-length:" in low or b"\r\ntransfer-encoding:" in low:
            return "bad_framing"
        self._is_odd = self._is_odd or b"\r\nconnection:" in low
        self._interims += 1
        return "too_many_informational" if self._interims > INTERIMS else None

    def _final(self, status: int, lines: bytes, data: bytes, at: int, *, is_old: bool) -> int:
        """Decide how the body is framed (RFC 9112 section 6.3, refusing where it offers a choice). `at`: where the head
        ends in `data`."""
        rest = data[at:] if at < len(data) else b""
        low = b"\r\n" + lines.lower()
        lengths = low.count(b"\r\ncontent-length:")
        codings = low.count(b"\r\ntransfer-encoding:")
        if lengths + codings > 1:
            return self._fail("bad_framing")
        left: int | None = None
        if lengths:
            text = value(low, b"\r\ncontent-length:")
            if not text.isdigit() or len(text) > 18:
                return self._fail("bad_framing")
            left = int(text)
        elif codings:
            if is_old or value(low, b"\r\ntransfer-encoding:") != b"chunked":
                return self._fail("bad_framing")
            self._is_odd = self._is_odd or b"chunked\t" in low or b"\tchunked" in low
        self.status = status
        self.head = lines
        self.reusable = not is_old and not self._is_odd
        if self.reusable and b"\r\nconnection:" in low:
            self.reusable = all(
                b"close" not in option and b"upgrade" not in option
                for option in values(low, b"\r\nconnection:")
            )
        if b"\r\nkeep-alive:" in low:
            self.keep_s = keep_alive_s(value(low, b"\r\nkeep-alive:"))
        if status in _BODYLESS:
            return self._finish(
                complete=True, reusable=self.reusable and not rest and not codings and not left
            )
        self.phase = BODY
        if left is not None:
            size = len(rest)
            if size >= left and left <= self._caps.body_kept_bytes:  # the common case: all of it is here
                self.body = rest if size == left else rest[:left]
                self.phase = DONE
                self.reusable = self.reusable and size == left
                if self.reusable and at <= SAME_HEAD_BYTES and not self._interims:
                    self._same_head, self._same_bytes = data[:at], len(data)
                    self._same = (status, lines, self.keep_s)
                return DONE
            self.left = left
        elif codings:
            self._chunks = Chunks(self._caps.body_kept_bytes, self._caps.body_pieces)
        else:
            self.reusable = False
        return self._take(rest)

    def _fail(self, failure: Fault) -> int:
        self.failure = failure
        self.reusable = False
        self._buffer.clear()
        self.phase = DONE
        return DONE

    # -- bodies -----------------------------------------------------------------------------------------

    def _take(self, data: bytes) -> int:
        """Take bytes of the body under the read budget."""
        is_over = len(data) > self._budget
        if is_over:
            data = data[: self._budget]
        self._budget -= len(data)
        self._pieces -= 1
        if self._chunks is not None:
            state = self._chunks.feed(data)
            if state is not None:
                is_plain = self._chunks.is_plain or self._caps.trusts_extensions
                clean = state and is_plain and not self._chunks.leftover and not is_over
                return self._finish(complete=state, reusable=clean and self.reusable)
        else:
            left = self.left
            if left is not None and len(data) >= left:
                self._keep(data[:left])
                return self._finish(
                    complete=True, reusable=self.reusable and len(data) == left and not is_over
                )
            self._keep(data)
            if left is not None:
                self.left = left = left - len(data)
                if left > self._budget and len(self._kept) == self._caps.body_kept_bytes:
                    return self._finish(complete=False, reusable=False)  # nothing more would be kept
        if is_over or self._budget == 0 or self._pieces == 0:
            return self._finish(complete=False, reusable=False)
        return BODY

    def _keep(self, data: bytes) -> None:
        room = self._caps.body_kept_bytes - len(self._kept)
        if len(data) > room:
            self.truncated = True
            data = data[:room]
        self._kept += data

    def _finish(self, *, complete: bool, reusable: bool) -> int:
        if self._chunks is not None:
            self.body = bytes(self._chunks.kept)
            self.truncated = self._chunks.truncated or not complete
            self._chunks = None
        else:
            if self._kept:
                self.body = bytes(self._kept)
                self._kept.clear()
            self.truncated = self.truncated or not complete
        self.reusable = reusable
        self.phase = DONE
        return DONE
