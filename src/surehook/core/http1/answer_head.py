"""The grammar of an answer's head (RFC 9112 sections 4 and 5), its caps, and the names of its faults."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from surehook.core.http1.grammar import FIELD, TEXT

# Everything that may be wrong with an answer up to the end of its head.
Fault = Literal[
    "not_http", "bad_status", "bad_headers", "bad_framing", "headers_too_large", "too_many_informational",
    "switched_protocols",
]  # fmt: skip

HEADERS_KEPT_BYTES = 4 * 1024


class HeadCaps(Struct, frozen=True, kw_only=True):
    """Bounds of one head."""

    head_bytes: int = 16 * 1024  # status line and header lines
    line_bytes: int = 8 * 1024  # one line without its end; common servers stop at the same
    fields: int = 64  # header lines; real answers have about ten


# The whole strict grammar in one expression. Possessive: it never walks back, so it is linear in every input.
HEAD = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: " + TEXT + rb")?\r\n((?:" + FIELD + rb"\r\n)*+)\r\n")

_VERSIONS = (b"HTTP/1.1 ", b"HTTP/1.0 ")
_SOUND = re.compile(TEXT + rb"(?:\r\n?)?+")  # a line, or the start of one
_STATUS = re.compile(rb"[1-5][0-9][0-9](?: " + TEXT + rb")?\r\n")
_FIELD = re.compile(FIELD + rb"\r\n")
_BEFORE_REASON = len("HTTP/1.1 200 ")  # a reason may be as long as a line
_NAMED_FIRST = (b"retry-after:", b"content-type:", b"location:")


def examine(
    head: bytes | bytearray, caps: HeadCaps, at: int = 0, number: int = 0
) -> tuple[Fault | None, int, int]:
    """The first fault of a head that may not be complete yet, and the line that is not complete: start and number.

    Lines before line `number`, which starts at `at`, were examined already. The fault is the first in the order
    of reading, so a head in pieces is refused at the piece that breaks it, under the name the whole head gets.
    """
    if not any(version.startswith(head[:9]) for version in _VERSIONS):
        return "not_http", at, number
    while at < len(head):
        if at > caps.head_bytes:
            return "headers_too_large", at, number
        # The text of the line ends here at the latest.
        reach = min(at + caps.line_bytes + (0 if number else _BEFORE_REASON), caps.head_bytes)
        stop = head.find(b"\n", at, reach + 2) + 1
        line = head[at : stop or reach + 1]
        if not _SOUND.fullmatch(line):
            return "bad_headers", at, number
        if not stop:
            is_over = len(head) > reach + 1 or (len(head) > reach and not line.endswith(b"\r"))
            return "headers_too_large" if is_over else None, at, number
        if number == 0:
            if not _STATUS.fullmatch(line, 9):
                return "bad_status", at, number
        elif line == b"\r\n":
            break
        elif number > caps.fields:
            return "headers_too_large", at, number
        elif not _FIELD.fullmatch(line):
            return "bad_headers", at, number
        at, number = stop, number + 1
    return None, at, number


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
    match = re.search(rb"(?:^|[,; \t])timeout[ \t]*=[ \t]*\"?([0-9]{1,6})", value)
    return int(match[1]) if match else None
