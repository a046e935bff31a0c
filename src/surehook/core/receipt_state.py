"""Receipts joined to the state of their events, for every ledger: between reading rows and writing them.

A receipt may come before its delivery is recorded, since a receiver can be quicker than the sender's next commit. Then
the row is already there, and the wait for an end begins unless the receipt told one. An end that an *earlier* delivery of
the event came to does not settle a later one, unless it was `finalized`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from msgspec import json

from surehook.core.model import Settled
from surehook.core.receipt import ENDS, Stage, Word, join, rank
from surehook.core.receipt_message import Said

REJECTED = rank("rejected")

_state = json.Decoder(Word)

# A delivery and its event.
DeliveryKey = tuple[bytes, bytes]


class ReceiptRow(NamedTuple):
    """A row of the table, without its key."""

    delivery: bytes
    state: Word | None
    finalize_by: int | None


class ReceiptWait(NamedTuple):
    """A delivery whose end the receiver has still to tell."""

    event: bytes
    endpoint: bytes
    tenant: str
    delivery: bytes
    finalize_by: int


def waits_of(settled: Iterable[Settled]) -> list[ReceiptWait]:
    """List the waits that a window of results begins, one per key and sorted by it."""
    found = {
        (one.delivery.event, one.delivery.endpoint): ReceiptWait(
            one.delivery.event,
            one.delivery.endpoint,
            one.delivery.tenant,
            one.delivery.id,
            one.finalize_by,
        )
        for one in settled
        if one.finalize_by is not None
    }
    return [found[key] for key in sorted(found)]


def starts_wait(row: ReceiptRow, delivery: bytes) -> bool:
    """Return True if a wait for this delivery begins, given the receipts that came before."""
    told = 0 if row.state is None else rank(row.state.stage)
    return told < REJECTED or (told == REJECTED and row.delivery != delivery)


def joined(
    rows: Mapping[bytes, ReceiptRow], items: Sequence[Said], known: Set[DeliveryKey]
) -> tuple[dict[bytes, ReceiptRow], list[Stage]]:
    """Join receipts to the rows that are there. Return the rows to write, by event, and the newly reached stages.

    `known` are the deliveries that the endpoint has or had; receipts of others are ignored.
    """
    reached: list[Stage] = []
    changed: dict[bytes, ReceiptRow] = {}
    for one in items:
        if (one.delivery, one.event) not in known:
            continue
        row = changed.get(one.event) or rows.get(one.event) or ReceiptRow(one.delivery, None, None)
        state = one.word if row.state is None else join(row.state, one.word)
        before = 0 if row.state is None else rank(row.state.stage)
        if rank(state.stage) > before:
            reached.append(state.stage)
        is_end = one.word.stage in ENDS
        made = ReceiptRow(row.delivery, state, None if is_end else row.finalize_by)
        if made != rows.get(one.event):
            changed[one.event] = made
    return changed, reached


def encode(state: Word) -> bytes:
    """Encode a state for its column."""
    return json.encode(state)


def decode(column: bytes | None) -> Word | None:
    """Decode a column; None if no receipt has come."""
    return None if column is None else _state.decode(column)
