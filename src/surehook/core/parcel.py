"""Messages in a lane's queue: the ids of deliveries that are ready, or a watermark.

A message is a hint and never the truth. Whoever takes it asks the ledger for these rows and gets those that are
really free, so a message that comes twice, late or not at all changes nothing but the time of day.

    bytes 0–1  "sh"
    byte  2    version of this format, 1
    byte  3    what it carries: 0 ids, 1 a watermark
    then       ids, sixteen bytes each, 1 to 100 of them · or the watermark's generation, eight bytes, big-endian

A watermark says which marks went into the queue before it (ports/handoff.py). Anything else is not for us: a reader
throws it away, and the rows it may have meant are handed over again.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

ID_BYTES = 16
IDS_MAX = 100  # in one message: 1.6 KB, so that one worker never gets a great piece of the work at once
MEDIA_TYPE = "application/vnd.surehook.parcel"

_IDS = b"sh\x01\x00"
_WATERMARK = b"sh\x01\x01"
_HEAD_BYTES = len(_IDS)
_GENERATION_BYTES = 8


class Watermark(Struct, frozen=True):
    """Every mark up to this generation was made before this message was sent."""

    generation: int


def encode_ids(ids: Sequence[bytes]) -> bytes:
    assert 0 < len(ids) <= IDS_MAX
    return _IDS + b"".join(ids)


def encode_watermark(generation: int) -> bytes:
    return _WATERMARK + generation.to_bytes(_GENERATION_BYTES, "big")


def decode(body: bytes) -> list[bytes] | Watermark | None:
    """The content of a message; None where it is not one of ours."""
    head, rest = body[:_HEAD_BYTES], body[_HEAD_BYTES:]
    if head == _WATERMARK and len(rest) == _GENERATION_BYTES:
        return Watermark(int.from_bytes(rest, "big"))
    if head == _IDS and rest and len(rest) <= IDS_MAX * ID_BYTES and len(rest) % ID_BYTES == 0:
        return [rest[at : at + ID_BYTES] for at in range(0, len(rest), ID_BYTES)]
    return None
