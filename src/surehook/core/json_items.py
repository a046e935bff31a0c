"""The items of a large JSON array, found in steps, between which other work has its turn.

A decoder that is given the text from an item's first byte on complains about the first byte behind the item, and names its
place: so an item costs its own bytes, however long the text is. Only the decoder judges the text. For its complaint about
a fault it is asked again with the item inside an array, and the place is counted from the beginning of the text.

The decoder stops at half of a surrogate pair. Where there is one, places are found in a mended copy, which is as long
as the text.
"""

from __future__ import annotations

import re
from typing import Never

import msgspec
from msgspec import Raw

from surehook.core import json_text
from surehook.core.steps import Steps

Span = tuple[int, int]
Text = bytes | bytearray | memoryview  # a large one is put together in memory of its own

# Up to so many bytes an array is decoded as one: 3 ms where it is all commas, 20 µs where it is fifty events.
AT_ONCE = 128 * 1024
WINDOW = 512 * 1024  # read for an item at first; a longer one is read to its end in one step
ERROR_COST = 64 * 1024  # of asking the decoder what is wrong

_FOLLOWS = re.compile(r"trailing characters \(byte (\d+)\)\Z")
_PLACE = re.compile(r"\(byte (\d+)\)")
_BLANKS = re.compile(rb"[ \t\r\n]*")
_value = msgspec.json.Decoder(Raw).decode
_array = msgspec.json.Decoder(list[Raw]).decode


def at_once(text: Text, *, most: int) -> list[bytes] | None:
    """The items of a short array; None where it is long, has more than `most`, or has a fault, which `spans` names."""
    if len(text) > AT_ONCE:
        return None
    try:
        found = _array(text)
    except json_text.DECODE_ERRORS:
        return None
    return [bytes(item) for item in found] if len(found) <= most else None


def spans(text: Text, *, most: int) -> Steps[list[Span]]:
    """Beginning and end of each item; of a longer array, the first `most` + 1. Raises what a decoder of the whole raises."""
    try:
        return (yield from _spans(text, most))
    except json_text.DECODE_ERRORS as error:
        mended = yield from json_text.mend_in_steps(text)
        if mended is None:
            raise error
    return (yield from _spans(mended, most))


def _spans(text: Text, most: int) -> Steps[list[Span]]:
    view, found = memoryview(text), list[Span]()
    at = _after_blanks(text, 0)
    if text[at : at + 1] != b"[":
        _array(text)  # refused at its first byte
    at = _after_blanks(text, at + 1)
    if text[at : at + 1] == b"]":
        _end(text, at)
        return found
    while len(found) <= most:
        follows = _follows(view, at)
        if follows < 0:
            yield ERROR_COST
            _fail(view, at, is_first=not found)
        end, sign = follows, text[follows : follows + 1]
        if sign not in (b",", b"]"):
            _fail(view, at, is_first=not found)
        while text[end - 1] in b" \t\r\n":
            end -= 1
        found.append((at, end))
        if sign == b"]":
            _end(text, follows)
            return found
        yield follows - at
        at = _after_blanks(text, follows + 1)
    return found


def _follows(view: memoryview, at: int) -> int:
    """Index of what follows the value at this place; -1 where there is no value, or nothing follows."""
    for piece in (view[at : at + WINDOW], view[at:]):  # a value that is cut has no meaning
        try:
            _value(piece)
        except json_text.DECODE_ERRORS as error:
            match = _FOLLOWS.search(str(error))
            if match is not None:
                return at + int(match[1]) - 1  # it has read one byte more
    return -1


def _fail(view: memoryview, at: int, *, is_first: bool) -> Never:
    """Raise what the decoder of the whole says of the item at this place."""
    before = b"[" if is_first else b"[0,"
    try:
        _array(before + view[at:])
    except msgspec.DecodeError as error:
        moved = at - len(before)
        said = _PLACE.sub(lambda found: f"(byte {int(found[1]) + moved})", str(error))
        raise type(error)(said) from None
    raise AssertionError("the decoder takes an array that has a fault")


def _end(text: Text, at: int) -> None:
    """Raise where something follows the array's last byte."""
    after = _after_blanks(text, at + 1)
    if after < len(text):
        raise msgspec.DecodeError(f"JSON is malformed: trailing characters (byte {after + 1})")


def _after_blanks(text: Text, at: int) -> int:
    match = _BLANKS.match(text, at)
    assert match is not None
    return match.end()
