"""Batches as columns, in the order of the statements' parameters.

A column in which every row has the usual value is not sent: the statement fills it in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, structs

from surehook.core.model import Attempt, Delivery, Event, Settled
from surehook.ledgers import history

Column = Sequence[object]
_NONE: Column = ()
# Deliveries turned into columns at a time: 2 to 4 ms.
SLICE_ROWS = 2_000


def _unless(usual: object, column: Column) -> Column:
    """Return the column, or an empty one if every value is the usual one."""
    return _NONE if column.count(usual) == len(column) else column


def _by_name(values: Sequence[Struct]) -> dict[str, Column]:
    """Return the fields of structs of one type as columns."""
    return dict(
        zip(values[0].__struct_fields__, zip(*map(structs.astuple, values), strict=True), strict=True)
    )


def of_events(events: Sequence[Event], now: int) -> list[Column]:
    c = _by_name(events)
    return [
        c["id"], c["tenant"], c["type"], _unless("1", c["schema_version"]), c["subject"], c["sequence"],
        c["workflow_version"], c["correlation_id"], c["causation_id"], c["source"], c["occurred_at"],
        _unless(now, c["accepted_at"]), c["body"], c["digest"], _unless(1, c["fan_out"]),
        _unless(None, c["idempotency_key"]),
    ]  # fmt: skip


async def of_deliveries(deliveries: Sequence[Delivery], now: int) -> list[Column]:
    """Make columns in slices, between which the event loop goes on: an event may have ten thousand deliveries."""
    if not deliveries:
        return [_NONE] * 13
    columns: Sequence[Any] = _born(deliveries[:SLICE_ROWS])
    if len(deliveries) > SLICE_ROWS:
        columns = [list(column) for column in columns]
        for start in range(SLICE_ROWS, len(deliveries), SLICE_ROWS):
            await asyncio.sleep(0)
            for column, more in zip(columns, _born(deliveries[start : start + SLICE_ROWS]), strict=True):
                column += more
    *ids, attempt, due_at, born_at, overdue_at, held, parked, handed = columns
    return [
        *ids, _unless(1, attempt), _unless(now, due_at), _unless(now, born_at), overdue_at, held, parked,
        _unless(0, handed),
    ]  # fmt: skip


def _born(deliveries: Sequence[Delivery]) -> list[Column]:
    c = _by_name(deliveries)
    held, parked = c["held"], c["parked"]
    if parked.count(None) != len(parked):
        held = [one and why is None for one, why in zip(held, parked, strict=True)]
    return [
        c["id"], c["event"], c["endpoint"], c["tenant"], c["type"], c["lane"], c["attempt"], c["due_at"],
        c["born_at"], c["overdue_at"], held, parked, c["handed"],
    ]  # fmt: skip


def of_finished(settled: Sequence[Settled]) -> list[Column]:
    """Make columns of finished deliveries: their history rows, with the end and its reason."""
    if not settled:
        return [_NONE] * 21
    return [*_of_entries(settled), [one.end for one in settled], [one.reason for one in settled]]


def of_letters(settled: Sequence[Settled]) -> list[Column]:
    """Make columns of the headers that dead letters keep of their last requests."""
    kept = [(one.delivery.id, one.request_headers) for one in settled if one.request_headers is not None]
    return [[id for id, _ in kept], [headers for _, headers in kept]]


def of_moved(settled: Sequence[Settled]) -> list[Column]:
    """Make columns of deliveries that go on: their history rows, if any, and the new values of their rows."""
    if not settled:
        return [_NONE] * 24
    return [
        *_of_entries(settled),
        [one.lane for one in settled],
        [one.number for one in settled],
        [one.due_at for one in settled],
        [one.parked for one in settled],
        [one.spared for one in settled],
    ]


def _of_entries(settled: Sequence[Settled]) -> list[Column]:
    c = _by_name([one.entry or _NO_ENTRY for one in settled])
    return [
        [one.delivery.id for one in settled], [one.delivery.attempt for one in settled],
        [None if one.entry is None else history.place(one.entry, one.delivery) for one in settled],
        c["lane"], c["started_at"], c["outcome"], _unless(False, c["unknown"]), c["status"], c["error"], c["address"],
        c["dns_us"], c["connect_us"], c["tls_us"], c["first_byte_us"], c["total_us"], _unless(b"", c["headers"]),
        _unless(b"", c["body"]), _unless(False, c["truncated"]), c["next_at"],
    ]  # fmt: skip


# Its `seq` is null, so no history row is written.
_NO_ENTRY = Attempt(delivery=b"", number=0, kind="attempt", lane=0, started_at=0)
