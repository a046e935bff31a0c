"""A JSON text cut into pieces that are JSON themselves, so that a long one is judged in steps.

At a comma outside of strings a text may be cut: what is open there is closed behind the piece before, and opened again in front
of the piece after, with a value of our own in its comma's place. Every piece is JSON where the whole is, and a decoder
that reads them in order finds fault with the very byte that a decoder of the whole finds fault with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

PIECE = 16 * 1024  # a millisecond where all of it is lists in lists, some microseconds where it is text
# Up to so many brackets that open, and commas, a text is one piece: half a millisecond, and two where all values are doubles.
BRACKETS_AT_ONCE, COMMAS_AT_ONCE = 4 * 1024, 16 * 1024
# Of a bracket, and of a comma, which has a value (core/steps.py): a list is an object to be made and freed. Of bytes a quarter.
BRACKET_COST, COMMA_COST = 16, 10

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# Of all three, what was taken is never given back: so they are linear in what they look at.
_STRINGS = re.compile(_STRING, re.DOTALL)
_TO_COMMA = re.compile(rb'(?:[^",]++|' + _STRING + rb")*+,", re.DOTALL)
_TO_COMMAS = re.compile(rb"(?:" + _TO_COMMA.pattern + rb")++", re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_RUN = re.compile(rb"\[+|\]+|\{+|\}+")
_OPENING, _CLOSING = {b"[": b"[", b"{": b'{"":'}, bytes.maketrans(b"[{", b"]}")


def pieces(text: bytes) -> Iterator[tuple[bytes, int]]:
    """Each piece, and about what it costs to be read (core/steps.py). A text that is soon read is one; what cannot be cut (it
    is no JSON, or has no comma) is the last."""
    opening, commas = _glance(text)
    if len(text) <= PIECE or (opening <= BRACKETS_AT_ONCE and commas <= COMMAS_AT_ONCE):
        yield text, _cost(len(text), 2 * opening, commas)
    else:
        yield from cut(text, PIECE)


def cut(text: bytes, size: int) -> Iterator[tuple[bytes, int]]:
    """The same of any text, in pieces of about so many bytes."""
    begin, opened, before = 0, b"", b""
    while len(text) - begin > size:
        found = _TO_COMMAS.match(text, begin, begin + size) or _TO_COMMA.match(text, begin)
        if found is None:
            break
        end = found.end()
        brackets = _brackets(text[begin:end])
        still = _left_open(opened, brackets)
        upto = text[begin : end - 1].rstrip(b" \t\n\r")
        if not still or upto[-1:] in _OPENING:
            break  # at this comma at the latest it is no JSON: closed here, `[` would be, and hide that a value is missing
        piece = b"".join((before, upto, still[::-1].translate(_CLOSING)))
        yield piece, _cost(end - begin, len(brackets), text.count(b",", begin, end))
        begin, opened, before = end, still, _before(still)
    rest = text[begin:]
    yield before + rest, _cost(len(rest), 0, 0)


def cost(text: bytes) -> int:
    """What a text costs to be read, by a glance at it."""
    opening, commas = _glance(text)
    return _cost(len(text), 2 * opening, commas)


def _glance(text: bytes) -> tuple[int, int]:
    """Brackets that open, and commas, those in strings included."""
    return text.count(b"[") + text.count(b"{"), text.count(b",")


def _cost(size: int, brackets: int, commas: int) -> int:
    return size // 4 + BRACKET_COST * brackets + COMMA_COST * commas


def _brackets(text: bytes) -> bytes:
    """Those outside of strings."""
    if not text.translate(None, _NOT_BRACKETS):
        return b""
    return _STRINGS.sub(b"", text).translate(None, _NOT_BRACKETS)


def _left_open(opened: bytes, brackets: bytes) -> bytes:
    """What is open after these brackets, the outermost first; nothing where one closes what is not open.

    While they are many, the innermost pairs are taken away, a level at a time; the rest comes in runs.
    """
    many = len(brackets) + 1
    while len(brackets) < many:
        many = len(brackets) * 7 // 8
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    for run in _RUN.findall(brackets):
        if run[:1] in _OPENING:
            opened += run
        elif opened[-len(run) :].translate(_CLOSING) == run:
            opened = opened[: -len(run)]
        else:
            return b""
    return opened


def _before(opened: bytes) -> bytes:
    """What opens these brackets again, and has a value before a comma in the innermost."""
    outer = [_OPENING[opened[at : at + 1]] for at in range(len(opened))]
    return b"".join((*outer, b"0,"))
