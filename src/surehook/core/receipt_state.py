"""What every ledger does with receipts between reading its rows and writing them.

A word may come before the delivery is recorded, since a receiver can be quicker than the sender's next commit: the
row is there then, and the wait begins unless an end was told. An end that a *former* delivery of the event came to is not
the last word on a later one, unless it was `finalized`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from msgspec import json

from surehook.core.model import Settled
from surehook.core.receipt import ENDS, Stage, Word, join, rank
from surehook.core.receipt_message import Said

REJECTED = rank("rejected")

_word = json.Decoder(Word)


Place = tuple[bytes, bytes]  # a delivery and its event


class Row(NamedTuple):
    """A row of the table, without its key."""

    delivery: bytes
    word: Word | None
    finalize_by: int | None


class Wait(NamedTuple):
    """The end of one delivery is waited for."""

    event: bytes
    endpoint: bytes
    tenant: str
    delivery: bytes
    finalize_by: int


def waits(settled: Iterable[Settled]) -> list[Wait]:
    """The waits that a window of results begins, in the order of their keys, one for each."""
    found = {
        (one.delivery.event, one.delivery.endpoint): Wait(
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


def begins(row: Row, delivery: bytes) -> bool:
    """Whether a wait for this delivery begins, given what was heard before."""
    told = 0 if row.word is None else rank(row.word.stage)
    return told < REJECTED or (told == REJECTED and row.delivery != delivery)


def heard(
    rows: Mapping[bytes, Row], said: Sequence[Said], known: Set[Place]
) -> tuple[dict[bytes, Row], list[Stage]]:
    """Rows to write, by event, and the stages that were reached anew. `rows` are those that are there; `known`
    are places that the endpoint's deliveries have or had."""
    reached: list[Stage] = []
    changed: dict[bytes, Row] = {}
    for one in said:
        if (one.delivery, one.event) not in known:
            continue
        row = changed.get(one.event) or rows.get(one.event) or Row(one.delivery, None, None)
        word = one.word if row.word is None else join(row.word, one.word)
        before = 0 if row.word is None else rank(row.word.stage)
        if rank(word.stage) > before:
            reached.append(word.stage)
        is_end = one.word.stage in ENDS
        made = Row(row.delivery, word, None if is_end else row.finalize_by)
        if made != rows.get(one.event):
            changed[one.event] = made
    return changed, reached


def kept(word: Word) -> bytes:
    """The column's value."""
    return json.encode(word)


def read(column: bytes | None) -> Word | None:
    return None if column is None else _word.decode(column)
