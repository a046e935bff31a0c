"""Cursors: the position of the next page, as an opaque text that only fits the list it came from.

The text is base64url of four bytes of check and the position itself. The check covers the list's name and the
filters of the question, so a cursor of another list, of another tenant's page, or an invented one is refused
(422) and never quietly answered with the wrong rows. It is not a secret and protects nothing: the key decides what
a caller may see.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping

from surehook.core.errors import Problem

CHECK_BYTES = 4
POSITION_BYTES = 160  # most are ids of 16 bytes; lists of named things hold an instant and a name
TEXT_CHARS = 4 * (CHECK_BYTES + POSITION_BYTES) // 3 + 3


def write(position: bytes | None, *, of: str, where: Mapping[str, str]) -> str | None:
    """The cursor text of a position in the list `of` under the filters `where`; None after the last page."""
    if position is None:
        return None
    return base64.urlsafe_b64encode(_check(position, of, where) + position).rstrip(b"=").decode()


def read(text: str, *, of: str, where: Mapping[str, str]) -> bytes:
    """The position of a cursor. Raises Problem `bad_cursor`."""
    raw = b""
    if len(text) <= TEXT_CHARS and text.isascii():
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raw = b""
    position = raw[CHECK_BYTES:]
    # Written again, it must be the same text: base64 has spellings that differ in unused bits only.
    if not position or write(position, of=of, where=where) != text:
        raise Problem(
            "bad_cursor",
            "not a cursor of this list with these filters",
            field="cursor",
            hint="take `next` of the page before, and repeat its filters",
        )
    return position


def _check(position: bytes, of: str, where: Mapping[str, str]) -> bytes:
    digest = hashlib.sha256(of.encode())
    for name in sorted(where):
        digest.update(b"\0" + name.encode() + b"\0" + where[name].encode())
    digest.update(b"\0\0" + position)
    return digest.digest()[:CHECK_BYTES]
