"""Bodies of strangers: JSON within bounds, forms, and one part of a multipart body.

A text is refused when parsers may disagree about it or break on it. Keys and values are counted on the bytes, with strings
cut out, before anything is built: as many colons as keys, as many commas as values. The decoder must then find as many keys
as there are colons; it finds fewer exactly when a key is given twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from surehook.core import json_text
from surehook.core.sources.provider import Bounds, Field
from surehook.core.verification import VerifyError

FORM_FIELDS = 1_000  # Twilio sends about 30
PARTS = 100  # a callback has one, or one and a few files

# To its closing quote or the end of the text: where it could fail at the end, it would try again from every quote inside.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_SPACE = b" \t\r\n"
_BOUNDARY = re.compile(
    r"""(?i)\Amultipart/form-data;(?:.*;)?[ \t]*boundary=(?:"([^"]{1,70})"|([^\s";]{1,70}))"""
)
_NAME = re.compile(
    rb"""(?i)\Acontent-disposition:[ \t]*form-data;(?:[^\r\n]*;)?[ \t]*name="([^"\r\n]{1,100})\""""
)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def read_json(raw: bytes, bounds: Bounds | None) -> object:
    """The value. Raises VerifyError: `no_body`, `malformed` where it is no JSON, `unsafe_json` beyond the bounds. Without bounds,
    it was read with some before, and what differs between readers is not looked for again: that takes longer than reading."""
    if not raw.strip(_SPACE):
        raise VerifyError("no_body", "the body is empty")
    if raw.startswith(b"\xef\xbb\xbf"):
        raise VerifyError("malformed", "the body begins with a byte order mark")
    if bounds is None:
        return _value(raw, b"")
    outside = _outside(raw, bounds)
    keys, opened = outside.count(b":"), outside.count(b"{") + outside.count(b"[")
    if keys > bounds.keys or outside.count(b",") + keys > bounds.values or opened > bounds.values:
        raise VerifyError("unsafe_json", "more keys or values than this source takes")
    if opened > bounds.depth and json_text.is_deeper(outside, bounds.depth):
        raise VerifyError("unsafe_json", f"nested more than {bounds.depth} deep")
    if len(outside) > bounds.digits and json_text.has_long_number(outside, bounds.digits):
        raise VerifyError("unsafe_json", f"a number of more than {bounds.digits} digits")
    value = _value(raw, outside)
    if _keys(value) != keys:
        raise VerifyError("unsafe_json", "a key is given twice")
    return value


def _value(raw: bytes, outside: bytes) -> object:
    try:
        return _decode(raw)
    except json_text.DECODE_ERRORS as error:
        unsafe = json_text.fault(error).code in ("too_deep", "number_out_of_range")
        if unsafe or json_text.has_lone_surrogate(raw) or _is_nan(outside):
            raise VerifyError("unsafe_json", "numbers or texts that readers disagree about") from None
        raise VerifyError("malformed", "the body is not JSON") from None


def _outside(raw: bytes, bounds: Bounds) -> bytes:
    """The text without its strings. An escaped quote needs a backslash, so most texts are simply cut at their quotes."""
    if b"\\" not in raw:
        return b"".join(raw.split(b'"')[::2])
    # Quotes that cannot be inside a string: more of them are more strings than values are allowed.
    if raw.count(b'"') - raw.count(b'\\"') > 4 * bounds.values:
        raise VerifyError("unsafe_json", "more texts than this source takes")
    return _STRING.sub(b"", raw)


def _is_nan(outside: bytes) -> bool:
    return b"NaN" in outside or b"Infinity" in outside


def _keys(value: object) -> int:
    """Number of keys in all objects. Text that the encoder writes without a backslash is cut at its quotes, as on receipt."""
    try:
        written = _encode(value)
    except (OverflowError, ValueError):  # whole numbers of more than 64 bits
        written = b"\\"
    if b"\\" not in written:
        return b"".join(written.split(b'"')[::2]).count(b":")
    found, stack = 0, [value]
    while stack:
        one = stack.pop()
        if type(one) is dict:
            found += len(one)
            stack.extend(one.values())
        elif type(one) is list:
            stack.extend(one)
    return found


def read_form(raw: bytes) -> list[tuple[str, str]]:
    """Names and values of `application/x-www-form-urlencoded`, repeats included."""
    from urllib.parse import parse_qsl  # here: signatures over JSON do not need it

    try:
        return parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FORM_FIELDS
        )
    except ValueError:
        raise VerifyError("malformed", "the body is not a form") from None


def read_part(raw: bytes, content_type: str, name: str) -> bytes:
    """The bytes of one named part of a `multipart/form-data` body (RFC 7578); it must be there exactly once."""
    match = _BOUNDARY.match(content_type)
    if match is None:
        raise VerifyError("malformed", "the content type names no multipart boundary")
    mark = b"\r\n--" + (match[1] or match[2]).encode("latin-1", "replace")
    pieces = (b"\r\n" + raw).split(mark, PARTS + 1)
    found = [body for head, body in map(_split, pieces[1:]) if head == name.encode()]
    if len(pieces) > PARTS + 1 or len(found) != 1 or not pieces[-1].startswith(b"--"):
        raise VerifyError("malformed", f"a multipart body with one part {name!r} is expected")
    return found[0]


def _split(piece: bytes) -> tuple[bytes, bytes]:
    """Name and content of a part; the name is empty where it is no part."""
    head, gap, body = piece.partition(b"\r\n\r\n")
    if not gap:
        return b"", b""
    for line in head.split(b"\r\n"):
        match = _NAME.match(line)
        if match is not None:
            return match[1], body
    return b"", b""


def at(value: Any, path: str) -> Any:
    """The value at a dotted path, or None where there is none."""
    for step in path.split("."):
        if type(value) is dict:
            value = value.get(step)
        elif type(value) is list and step.isascii() and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def without(value: object, fields: Sequence[Field]) -> object:
    """A copy without the values at these paths; the value itself where there are none."""
    for field in fields:
        value = _cut(value, field.path.split("."))
    return value


def _cut(value: object, steps: list[str]) -> object:
    step, *rest = steps
    if type(value) is not dict or step not in value:
        return value
    if not rest:
        return {name: inner for name, inner in value.items() if name != step}
    cut = _cut(value[step], rest)
    return value if cut is value[step] else {**value, step: cut}
