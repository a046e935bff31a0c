"""The grammar of an answer's head (RFC 9112 sections 4 and 5), its caps, and names for what breaks them."""

from __future__ import annotations

import re

from surehook.ports.transport import Failure

HEAD_BYTES = 16 * 1024  # status line and header lines of one head
LINE_BYTES = 8 * 1024  # one line without its end; common servers stop at the same
FIELDS = 64  # header lines; real answers have about ten
HEADERS_KEPT_BYTES = 4 * 1024

# The whole strict grammar in one expression. Possessive: it never walks back, so it is linear in every input.
HEAD = re.compile(
    rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [\t -~\x80-\xff]*+)?\r\n"
    rb"((?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++:[\t -~\x80-\xff]*+\r\n)*+)\r\n"
)

_STRAY = re.compile(rb"\r[^\n]|(?<!\r)\n|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_VERSION = re.compile(rb"HTTP/1\.[01] ")
_STATUS = re.compile(rb"[1-5][0-9][0-9](?: [\t -~\x80-\xff]*+)?")
_NAMED_FIRST = (b"retry-after:", b"content-type:", b"location:")


def hopeless(buffer: bytearray, seen: int) -> Failure | None:
    """Why an incomplete head cannot become a good one any more, or None. The first `seen` bytes were judged before."""
    if not b"HTTP/1.".startswith(buffer[:7]):
        return "not_http"
    if _STRAY.search(buffer, max(0, seen - 2), len(buffer) - buffer.endswith(b"\r")):
        return "bad_headers"
    if len(buffer) > HEAD_BYTES or len(buffer) - buffer.rfind(b"\n") > LINE_BYTES + 16:
        return "headers_too_large"
    return "headers_too_large" if buffer.count(b"\n") > FIELDS + 1 else None


def kept_headers(lines: bytes) -> bytes:
    """At most 4 KiB of header lines, whole lines only; those that decisions need go first where not all fit."""
    if len(lines) <= HEADERS_KEPT_BYTES:
        return lines
    split = lines[:-2].split(b"\r\n")
    split.sort(key=lambda line: not line.lower().startswith(_NAMED_FIRST))
    kept, room = [], HEADERS_KEPT_BYTES
    for line in split:
        if len(line) + 2 <= room:
            kept.append(line + b"\r\n")
            room -= len(line) + 2
    return b"".join(kept)


def fields(lines: bytes, name: bytes) -> list[bytes]:
    """All values of one header (`name` in lower case), in order, as received but for outer space."""
    split = (line.partition(b":") for line in lines.split(b"\r\n"))
    return [value.strip(b" \t") for key, _, value in split if key.lower() == name]


def values(low: bytes, mark: bytes) -> list[bytes]:
    return [part.partition(b"\r\n")[0] for part in low.split(mark)[1:]]


def value(low: bytes, mark: bytes) -> bytes:
    start = low.find(mark) + len(mark)
    return low[start : low.find(b"\r\n", start)].strip(b" \t")


def keep_alive_s(value: bytes) -> int | None:
    match = re.search(rb"(?:^|[,; ])timeout ?= ?([0-9]{1,6})", value)
    return int(match[1]) if match else None


def oversize(head: bytes) -> Failure | None:
    """Whether a head with whole lines is over a cap."""
    if len(head) > HEAD_BYTES or head.count(b"\r\n") > FIELDS + 1:
        return "headers_too_large"
    status_line, *lines = head.split(b"\r\n")
    if len(status_line) > LINE_BYTES + len("HTTP/1.1 200 ") or any(len(line) > LINE_BYTES for line in lines):
        return "headers_too_large"
    return None


def diagnose(head: bytes) -> Failure:
    """Why a complete head does not match the grammar."""
    if not _VERSION.match(head):
        return "not_http"
    if (failure := oversize(head)) is not None:
        return failure
    stop = head.find(b"\r\n")
    if _STATUS.fullmatch(head, 9, stop) or _STRAY.search(head, 9, stop + 2):
        return "bad_headers"
    return "bad_status"
