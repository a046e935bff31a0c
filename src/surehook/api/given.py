"""What a body says, apart from what it leaves out."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Struct


def given(body: Struct) -> dict[str, Any]:
    """The fields of a change that were written, `null` included."""
    return {name: value for name, value in msgspec.structs.asdict(body).items() if value is not UNSET}


def stored(value: Any) -> bytes | None:
    """A JSON value as it is kept in the book; None is absent."""
    return None if value is None else msgspec.json.encode(value)
