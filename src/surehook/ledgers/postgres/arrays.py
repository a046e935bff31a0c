"""Array codecs that encode an array as a whole; asyncpg's encode each element.

asyncpg checks for each element if it is a container, and writes it by a call of its own: 0.25 µs, thirty elements per
delivery. Joining them as a whole costs a quarter of that. `install` replaces asyncpg's codecs for the arrays that statements
use; the replacements accept and return the same values, in one dimension.

A column without any value is sent as an empty array: `unnest` of several arrays fills the shorter ones with nulls, so a
batch pays only for the columns it uses (`columns.py`).

Most columns of a busy tenant's batch repeat one value (tenant, type, endpoint, lane, outcome, …). It is encoded once, and the
bytes are repeated.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surehook.ledgers.postgres.session import Connection

_BOOL, _BYTEA, _INT8, _INT2, _INT4, _TEXT = 16, 17, 20, 21, 23, 25
_HEAD = struct.Struct(">iiiii")
_HEAD_BYTES = _HEAD.size
_NULL = b"\xff\xff\xff\xff"
_LENGTHS = [length.to_bytes(4, "big") for length in range(4096)]
_ID_LENGTH = _LENGTHS[16]
_TRUE, _FALSE = _LENGTHS[1] + b"\x01", _LENGTHS[1] + b"\x00"


def install(connection: Connection) -> None:
    """Use these codecs on a connection.

    asyncpg's public method for setting a codec refuses arrays; this is what it calls for other types. A version of asyncpg
    without it uses its own codecs, and is slower.
    """
    try:
        settings = connection._protocol.get_settings()  # type: ignore[attr-defined]
        add = settings.add_python_codec
    except AttributeError:
        return
    for oid, (encode, decode) in CODECS.items():
        add(oid, f"array_{oid}", "pg_catalog", [], "scalar", encode, decode, "binary")


# -- to the server --------------------------------------------------------------------------------------


def _head(kind: int, column: Sequence[object], *, has_null: bool = False) -> bytes:
    return _HEAD.pack(1, has_null, kind, len(column), 1)


def _array(kind: int, column: Sequence[object], data: bytes, *, has_null: bool = False) -> bytes:
    return _head(kind, column, has_null=has_null) + data


def _empty(kind: int) -> bytes:
    return struct.pack(">iii", 0, 0, kind)


def _is_one(column: Sequence[object]) -> bool:
    """Return True if all elements are equal. Almost always the first two decide."""
    return len(column) > 1 and column[0] == column[1] and column.count(column[0]) == len(column)


def _repeated(kind: int, column: Sequence[object], element: bytes) -> bytes:
    return _array(kind, column, (len(element).to_bytes(4, "big") + element) * len(column))


def _of_bytes(kind: int, column: Sequence[bytes | None]) -> bytes:
    if _is_one(column):
        one = column[0]
        return _empty(kind) if one is None else _repeated(kind, column, one)
    missing = column.count(None)
    if missing == len(column):
        return _empty(kind)
    if missing:
        pieces = [_NULL if one is None else len(one).to_bytes(4, "big") + one for one in column]
        return _array(kind, column, b"".join(pieces), has_null=True)
    parts: Any = column
    if set(map(len, parts)) == {16}:
        return _array(kind, column, _ID_LENGTH + _ID_LENGTH.join(parts))
    # One join, so that bodies are not copied twice.
    pieces = [_head(kind, column)] * (1 + 2 * len(column))
    pieces[2::2] = parts
    try:
        pieces[1::2] = [_LENGTHS[len(one)] for one in parts]
    except IndexError:
        pieces[1::2] = [len(one).to_bytes(4, "big") for one in parts]
    return b"".join(pieces)


def _of_texts(column: Sequence[str | None]) -> bytes:
    """Encode texts. Raises UnicodeEncodeError for one that is not valid."""
    if _is_one(column) and column[0] is not None:
        return _repeated(_TEXT, column, column[0].encode())
    return _of_bytes(_TEXT, [None if one is None else one.encode() for one in column])


def _of_numbers(kind: int, size: int, code: str, column: Sequence[int | None]) -> bytes:
    """Encode integers. Raises OverflowError for one that does not fit."""
    missing = column.count(None)
    if missing == len(column):
        return _empty(kind)
    try:
        if not missing and _is_one(column):
            return _repeated(kind, column, struct.pack(f">{code}", column[0]))
        if missing:
            pack = partial(struct.pack, f">i{code}", size)
            data = b"".join([_NULL if one is None else pack(one) for one in column])
        else:
            both: list[object] = [size] * (2 * len(column))
            both[1::2] = column
            data = struct.pack(">" + f"i{code}" * len(column), *both)
    except struct.error as error:
        raise OverflowError(str(error)) from error
    return _array(kind, column, data, has_null=missing > 0)


def _of_flags(column: Sequence[bool | None]) -> bytes:
    missing = column.count(None)
    if missing == len(column):
        return _empty(_BOOL)
    if not missing and _is_one(column):
        return _array(_BOOL, column, (_TRUE if column[0] else _FALSE) * len(column))
    pieces = [_TRUE if one else _NULL if one is None else _FALSE for one in column]
    return _array(_BOOL, column, b"".join(pieces), has_null=missing > 0)


# -- from the server ------------------------------------------------------------------------------------


def _elements(data: bytes) -> Iterator[bytes | None]:
    if len(data) < _HEAD_BYTES:
        # An empty array has no dimension.
        return
    dimensions, _, _, count, _ = _HEAD.unpack_from(data)
    assert dimensions == 1, "arrays here have one dimension"
    at = _HEAD_BYTES
    for _ in range(count):
        length = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        if length < 0:
            yield None
        else:
            yield data[at : at + length]
            at += length


def _read(element: Callable[[bytes], object], data: bytes) -> list[object]:
    return [None if one is None else element(one) for one in _elements(data)]


_number: Callable[[bytes], int] = partial(int.from_bytes, byteorder="big", signed=True)

# By the oid of the array type: the encoder of a list or tuple, and the decoder to a list.
CODECS: dict[int, tuple[Callable[[Any], bytes], Callable[[bytes], list[Any]]]] = {
    1000: (_of_flags, partial(_read, lambda data: data != b"\x00")),
    1001: (partial(_of_bytes, _BYTEA), partial(_read, bytes)),
    1005: (partial(_of_numbers, _INT2, 2, "h"), partial(_read, _number)),
    1007: (partial(_of_numbers, _INT4, 4, "i"), partial(_read, _number)),
    1009: (_of_texts, partial(_read, bytes.decode)),
    1016: (partial(_of_numbers, _INT8, 8, "q"), partial(_read, _number)),
}
