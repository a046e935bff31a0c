"""A dead letter: the message as it came, and why no server would accept it. Pure."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from pamqp import encode
from pamqp.commands import Basic

KEPT = (
    "content_type", "content_encoding", "message_id", "timestamp", "message_type", "app_id", "correlation_id",
)  # fmt: skip
OURS = "surehook-"  # how headers of ours begin
DURABLE = 2  # delivery mode
DETAIL_CHARS = 500
CARRIED_BYTES = 65_536  # of the message's own headers: a frame has 128 KiB, and the reason has to fit in
_UNWRITABLE = (TypeError, ValueError, OverflowError, struct.error)


def dead_letter(given: Basic.Properties, reason: Mapping[str, str | None]) -> Basic.Properties:
    """The copy's properties; each part of the reason is a header `surehook-…`."""
    headers = carried(given.headers or {})
    headers |= {f"{OURS}{name}": text[:DETAIL_CHARS] for name, text in reason.items() if text is not None}
    kept = {name: getattr(given, name) for name in KEPT}
    return Basic.Properties(headers=headers, delivery_mode=DURABLE, **kept)


def carried(headers: Mapping[str, Any]) -> dict[str, Any]:
    """The headers that a copy can have, without an earlier reason. The library can read some values that it cannot write
    (a double), and a copy that cannot be written would hold back every message behind it."""
    kept: dict[str, object] = {}
    room = CARRIED_BYTES
    for name, value in headers.items():
        if name.startswith(OURS):
            continue
        try:
            room -= len(encode.field_table({name: value}))
        except _UNWRITABLE:
            continue
        if room < 0:
            break
        kept[name] = value
    return kept
