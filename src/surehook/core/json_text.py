"""JSON from strangers: what is refused although it is JSON, and what a decoder's complaint means.

A text is unsafe to pass on when its readers may disagree about it or break on it: keys given twice, U+0000 (not
storable everywhere), half of a surrogate pair, numbers that are infinite as a double, and nesting deeper than
parsers go. The decoder itself refuses NaN, bad UTF-8, lone surrogates, and floats out of range.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isinf
from typing import Any

import msgspec
from msgspec import Struct

from surehook.core.json_pieces import pieces
from surehook.core.steps import Steps

STEP_COST, HALF_COST = 64 * 1024, 128  # of looking for halves: of a step, and of each that is found
PLACES = 8 * 1024  # where one is, written in one step
# Everything a msgspec decoder is known to raise on hostile input.
DECODE_ERRORS = (msgspec.DecodeError, RecursionError, UnicodeError, OverflowError, ValueError)

_PATH = re.compile(r" - at `(?:key` in `)?\$?(.*)`\Z", re.DOTALL)
_KEY = re.compile(r"(required|unknown) field `(.*?)`", re.DOTALL)
# To its closing quote or the end of the text: where it could fail at the end, it would try again from every quote inside,
# in quadratic time.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}:]')
_PAIR = re.compile(rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_SEARCHED = 256 * 1024  # bytes in one step
_SUSPECT = re.compile(rb"\\u[dD][89a-fA-F]")
# Text without a half: bytes that are no backslash, escapes of other characters, whole pairs. Each repetition is possessive,
# and bounded to some tenths of a millisecond.
_WHOLE = re.compile(
    rb"(?:[^\\]{1,65536}+|" + _PAIR.pattern + rb"|\\(?!\\|u[dD][89a-fA-F][0-9a-fA-F]{2})){1,8192}+"
)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_SQUARE = bytes.maketrans(b"{}", b"[]")
_RUN, _OPEN = re.compile(rb"\[+|\]+"), ord("[")
_ZEROS = bytes(48 if 48 <= byte <= 57 else byte for byte in range(256))
_DIGIT = re.compile(rb"[0-9]")
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _double(text: str) -> float:
    """Read a float. The decoder's own reading takes 8 µs for 1e300, and a third of a second for a quarter MiB of them."""
    value = float(text)
    if isinf(value):
        raise msgspec.ValidationError("Number out of range")
    return value


_any = msgspec.json.Decoder(float_hook=_double).decode


class Fault(Struct, frozen=True):
    """A decoder's complaint, translated: stable `code`, dotted `path` (empty: the whole), one sentence."""

    code: str
    path: str
    detail: str


def fault(error: Exception) -> Fault:
    """Translate what a decoder raised. Codes: invalid_json, too_deep, number_out_of_range, missing_field,
    unknown_field, wrong_type, out_of_range."""
    if isinstance(error, RecursionError):
        return Fault("too_deep", "", "nested too deeply")
    said = str(error)
    match = _PATH.search(said)
    path = _dotted(match[1]) if match else ""
    said = said[: match.start()] if match else said
    if not isinstance(error, msgspec.ValidationError):
        return Fault("invalid_json", path, f"not JSON: {said}")
    key = _KEY.search(said)
    if key is not None:
        full = f"{path}.{key[2]}" if path else key[2]
        if key[1] == "required":
            return Fault("missing_field", full, f"{key[2]} is missing")
        return Fault("unknown_field", full[:200], f"there is no field {quoted(key[2])} here")
    if "out of range" in said:
        return Fault("number_out_of_range", path, said)
    code = "wrong_type" if ", got" in said else "out_of_range"
    return Fault(code, path, said[:1].lower() + said[1:])


def _dotted(path: str) -> str:
    """`.schedule.fixed[2]` to `schedule.fixed.2`."""
    return path.replace("[...]", "").replace("[", ".").replace("]", "").lstrip(".")


def quoted(text: str) -> str:
    """A stranger's text inside a sentence of ours: ASCII, escaped, at most 64 characters of it."""
    return ascii(text if len(text) <= 64 else text[:63] + "…")


def flaw(data: bytes, *, depth: int, digits: int) -> str | None:
    """Why this JSON value must not be passed on, as a code, or None.

    Codes: invalid_json, too_deep, number_out_of_range, bad_text.
    """
    if _opens(data, depth) > depth and is_deeper(data, depth):
        return "too_deep"
    try:
        _any(data)
    except DECODE_ERRORS as error:
        return fault(error).code
    return _flaw_of_sound(data, digits)


def flaw_in_steps(data: bytes, *, depth: int, digits: int) -> Steps[str | None]:
    """`flaw` in steps: a quarter MiB of lists in lists takes twenty milliseconds to decode."""
    if _opens(data, depth) > depth:
        if is_deeper(data, depth):
            return "too_deep"
        yield len(data)
    for piece, cost in pieces(data):
        try:
            _any(piece)
        except DECODE_ERRORS as error:
            return fault(error).code
        yield cost
    return _flaw_of_sound(data, digits)


def _flaw_of_sound(data: bytes, digits: int) -> str | None:
    """The flaw of JSON that the decoder accepts, or None."""
    if b"\\" in data and b"\\u0000" in data and has_nul(data):
        return "bad_text"
    if has_long_number(data, digits):
        return "number_out_of_range"
    return None


def _opens(data: bytes, most: int) -> int:
    """Number of opening brackets, those in strings included; of each kind `most` + 1 at most. Splitting searches many
    bytes at a time, where counting looks at each byte."""
    return len(data.split(b"{", most + 1)) + len(data.split(b"[", most + 1)) - 2


def is_deeper(data: bytes, depth: int) -> bool:
    """True if arrays and objects are nested more than `depth` deep, or the text is unbalanced.

    Strings are cut out, and brackets of both kinds made one. While there are many, the innermost pairs are removed, a level
    at a time; once that removes few of them, the rest goes up and down in long runs, which are counted.
    """
    brackets = _STRING.sub(b"", data).translate(_SQUARE, _NOT_BRACKETS)
    many = len(brackets) + 1
    while depth and len(brackets) < many:
        many = len(brackets) * 7 // 8
        brackets = brackets.replace(b"[]", b"")
        depth -= 1
    level = 0
    for run in _RUN.findall(brackets):
        level += len(run) if run[0] == _OPEN else -len(run)
        if not 0 <= level <= depth:
            return True
    return level != 0


def has_nul(data: bytes) -> bool:
    r"""True if a string of this valid JSON holds U+0000: an escape `\u0000` whose backslash is not itself escaped."""
    return b"\\u0000" in data.replace(b"\\\\", b"")


def has_lone_surrogate(text: bytes) -> bool:
    """True if half of a surrogate pair is escaped here. The decoder has several names for it, "truncated" among them."""
    return any(at is not None for at in _halves(text))


def mend_in_steps(
    text: bytes | bytearray | memoryview, places: list[int] | None = None
) -> Steps[bytearray | None]:
    """This text with `\ufffd` for every half of a surrogate pair, None where there is none. Its length stays the same, so
    places in it do too. Yields about what each step has cost, as bytes that are decoded. `places` collects where the halves
    are."""
    mended: bytearray | None = None
    for at in _halves(text):
        if at is None:
            yield STEP_COST
        else:
            mended = mended or bytearray(text)
            mended[at : at + 6] = rb"\ufffd"
            if places is not None:
                places.append(at)
            yield HALF_COST
    return mended


def _halves(text: bytes | bytearray | memoryview) -> Iterator[int | None]:
    """Indexes of halves of surrogate pairs, and None after every step in between."""
    for begin in range(0, len(text), _SEARCHED):
        if _SUSPECT.search(text, begin, begin + _SEARCHED + 3) is not None:
            break
        yield None
    else:
        return  # nothing that could be half of anything
    at = 0
    while at < len(text):
        match = _WHOLE.match(text, at)
        if match is None:
            yield at
            at += 6
        else:
            at = match.end()
            yield None


def field_of_half(text: bytes) -> Steps[tuple[bool, str | None]]:
    """True if half of a surrogate pair is escaped here, with the key of the outermost object whose value holds it.

    The key is None where no value holds it, or something else is wrong as well. The text is mended with two different
    characters: the value that differs between the two copies holds the half."""
    places = list[int]()
    one = yield from mend_in_steps(text, places)
    if one is None:
        return False, None
    two = bytearray(one)
    for begin in range(0, len(places), PLACES):
        for at in places[begin : begin + PLACES]:
            two[at + 5] = ord("c")
        yield STEP_COST
    try:
        these, those = _fields(one), _fields(two)
    except DECODE_ERRORS:
        return True, None
    keys = (key for key in these if key in those and bytes(these[key]) != bytes(those[key]))
    return True, next(keys, None)


def has_long_number(data: bytes, digits: int) -> bool:
    """True if a number of this valid JSON has more than `digits` digits in a row; digits in strings do not count."""
    # So many bytes in a row, plus one, pass over one of these places.
    if _DIGIT.search(data[digits :: digits + 1]) is None:
        return False
    row = b"0" * (digits + 1)
    return row in data.translate(_ZEROS) and row in _STRING.sub(b"", data).translate(_ZEROS)


def duplicate_key(data: bytes) -> str | None:
    """The first key that the outermost object of this valid JSON has twice, or None."""
    depth, last, seen = 0, b"", set()
    for match in _TOKEN.finditer(data):
        token = match[0]
        if token in b"{[":
            depth += 1
        elif token in b"}]":
            depth -= 1
        elif token != b":":
            last = token
        elif depth == 1:
            key: Any = _any(last)
            if key in seen:
                return str(key)
            seen.add(key)
    return None
