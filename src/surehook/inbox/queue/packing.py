"""Judged requests as the bytes of a message, and back. Pure.

A message carries what waited at the same moment: handing over, confirming and acknowledging cost the same for one request as for
sixty-four. Fields may be added to a request with a default, so that a mover of before reads what a door of today writes, and
the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from surehook.ports.inbox import StoredRequest

REQUESTS = 64  # in one message
BYTES = 512 * 1024  # of bodies in one message; the last of them may go beyond it
LARGE_BYTES = 256 * 1024  # a body beyond it goes to the table: brokers are made for small messages

T = TypeVar("T")
_decoder = msgspec.msgpack.Decoder(list[StoredRequest])


class Unreadable(Exception):
    """Bytes that no door of ours wrote."""


def pack(requests: Sequence[StoredRequest]) -> bytes:
    return msgspec.msgpack.encode(requests)


def unpack(body: bytes) -> list[StoredRequest]:
    """Read a message. Raises Unreadable."""
    try:
        requests = _decoder.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Unreadable(str(error)) from None
    if not requests or not all(request.events for request in requests):
        raise Unreadable("it holds no event")
    return requests


def shares(sizes: Sequence[tuple[T, int]]) -> list[list[T]]:
    """Divide bodies into messages, in order; given with the bytes of each body."""
    made: list[list[T]] = []
    room = 0
    for one, size in sizes:
        if room <= 0 or len(made[-1]) >= REQUESTS:
            made.append([])
            room = BYTES
        made[-1].append(one)
        room -= size
    return made
