"""A JSON text cut into pieces that are JSON themselves, so that a long one is judged in steps.

A text may be cut at a comma outside of strings: the brackets open there are closed behind the piece before, and opened
again in front of the piece after, with a value of our own before the comma. Every piece is JSON if the whole is, and a
decoder that reads them in order complains about the same byte as a decoder of the whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

PIECE = 16 * 1024  # a millisecond where all of it is lists in lists, some microseconds where it is text
# A text with at most so many opening brackets and commas is one piece: half a millisecond, two if all values are doubles.
BRACKETS_AT_ONCE, COMMAS_AT_ONCE = 4 * 1024, 16 * 1024
# Cost of a bracket, whose list is made and freed, and of a comma, which has a value (core/steps.py); a byte costs a quarter.
BRACKET_COST, COMMA_COST = 16, 10

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# All three are possessive, so they are linear in what they look at.
_STRINGS = re.compile(_STRING, re.DOTALL)
_TO_COMMA = re.compile(rb'(?:[^",]++|' + _STRING + rb")*+,", re.DOTALL)
_TO_COMMAS = re.compile(rb"(?:" + _TO_COMMA.pattern + rb")++", re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_RUN = re.compile(rb"\[+|\]+|\{+|\}+")
_OPENING, _CLOSING = {b"[": b"[", b"{": b'{"":'}, bytes.maketrans(b"[{", b"]}")


def pieces(text: bytes) -> Iterator[tuple[bytes, int]]:
    """Each piece, and about what it costs to be read (core/steps.py). A text that is quick to read is one piece; what cannot
    be cut (it is no JSON, or has no comma) is the last."""
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
            break  # no JSON at this comma: `[` closed here would be valid, and hide that a value is missing
        piece = b"".join((before, upto, still[::-1].translate(_CLOSING)))
        yield piece, _cost(end - begin, len(brackets), text.count(b",", begin, end))
        begin, opened, before = end, still, _before(still)
    rest = text[begin:]
    yield before + rest, _cost(len(rest), 0, 0)


def cost(text: bytes) -> int:
    """Estimated cost of reading a text, from counts of its bytes alone."""
    opening, commas = _glance(text)
    return _cost(len(text), 2 * opening, commas)


def _glance(text: bytes) -> tuple[int, int]:
    """Counts of opening brackets and of commas, those in strings included."""
    return text.count(b"[") + text.count(b"{"), text.count(b",")


def _cost(size: int, brackets: int, commas: int) -> int:
    return size // 4 + BRACKET_COST * brackets + COMMA_COST * commas


def _brackets(text: bytes) -> bytes:
    """The brackets outside of strings."""
    if not text.translate(None, _NOT_BRACKETS):
        return b""
    return _STRINGS.sub(b"", text).translate(None, _NOT_BRACKETS)


def _left_open(opened: bytes, brackets: bytes) -> bytes:
    """The brackets still open after these, outermost first; empty where one closes what is not open.

    While there are many, the innermost pairs are removed, a level at a time; the rest is read in runs.
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
    """Text that opens these brackets again, with a value and a comma in the innermost."""
    outer = [_OPENING[opened[at : at + 1]] for at in range(len(opened))]
    return b"".join((*outer, b"0,"))
