"""Values of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

import msgspec

JsonObject = dict[str, Any]  # one whose members are not known here: a schema, an example, stored JSON


def encode_value(value: object) -> bytes:
    """The bytes of a value. Raises ValueError for NaN and infinities, of which an encoder makes null without a word, and
    TypeError for what JSON does not have."""
    encoded: bytes = msgspec.json.encode(value)
    if b"null" in encoded and _has_no_number(value):
        raise ValueError("NaN and infinities are no JSON")
    return encoded


def _has_no_number(value: object) -> bool:
    """True if it holds a float that JSON does not have."""
    if isinstance(value, float):
        return not isfinite(value)
    if isinstance(value, Mapping):
        return any(map(_has_no_number, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return any(map(_has_no_number, value))
    fields = getattr(value, "__struct_fields__", ()) or getattr(value, "__dataclass_fields__", ())
    return any(_has_no_number(getattr(value, name)) for name in fields)
