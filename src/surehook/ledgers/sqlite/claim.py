"""Leasing rows, and handing them back unsent. Each call takes a few statements."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from itertools import islice
from typing import Any

from msgspec import json

from surehook.core.limits import EVENT_BODY_BYTES
from surehook.core.model import Delivery, Lane
from surehook.ledgers.sqlite.nodes import fence
from surehook.ledgers.sqlite.rows import ids_among, packed_ids, read_deliveries, run_batch
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.statements import Values, batch, query
from surehook.ports.ledger import ClaimedIds

# The most bytes of a body: the data and its envelope.
BODY_MOST = EVENT_BODY_BYTES + 8192

decode = json.Decoder(list[Any]).decode


def claim(
    session: SqliteSession, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int, size: int
) -> list[Delivery]:
    with session.writing():
        number = fence(session, node).number
        found = packed_ids(session, query("ready"), (lane, due_by, limit))
        return lease(session, up_to(session, found, size), number)


def claim_ids(
    session: SqliteSession, ids: Sequence[bytes], *, node: bytes, now: int, size: int
) -> ClaimedIds:
    with session.writing():
        number = fence(session, node).number
        asked = list(dict.fromkeys(ids))
        free = ids_among(session, "ready_among", asked, after=(now,))
        chosen = up_to(session, free, size)
        rest = asked[asked.index(free[len(chosen)]) :] if len(chosen) < len(free) else []
        return ClaimedIds(lease(session, chosen, number), rest)


def unpark(
    session: SqliteSession,
    endpoint: bytes,
    reasons: Sequence[str],
    *,
    node: bytes,
    limit: int,
    now: int,
    size: int,
    restart: bool = False,
) -> list[Delivery]:
    with session.writing():
        number = fence(session, node).number
        groups = [
            packed_ids(session, query("parked_ids"), (endpoint, reason, limit))
            for reason in dict.fromkeys(reasons)
        ]
        ids: Values = up_to(session, list(islice(merge(*groups), limit)), size)
        if not ids:
            return []
        if restart:
            run_batch(session, "restart", ids.copy(), before=(number, now, now))
        else:
            run_batch(session, "unpark", ids.copy(), before=(number, now))
        return read_deliveries(session, ids)


def park(
    session: SqliteSession, deliveries: Sequence[Delivery], reason: str, *, node: bytes, now: int
) -> None:
    with session.writing():
        number = fence(session, node).number
        run_batch(session, "park", _in_hand(deliveries), before=(reason, now), after=(number,))


def release(session: SqliteSession, deliveries: Sequence[Delivery], *, node: bytes, now: int) -> None:
    with session.writing():
        number = fence(session, node).number
        run_batch(session, "release", _in_hand(deliveries), after=(number,))


def next_due(session: SqliteSession, lane: Lane) -> int | None:
    found: int | None = session.value(query("next_due"), (lane,))
    return found


def up_to(session: SqliteSession, ids: list[bytes], size: int) -> list[bytes]:
    """Return the first ids whose bodies together reach `size` bytes; the body of an event counts once."""
    if len(ids) * BODY_MOST <= size:
        return ids
    kept = 0
    counted: set[str] = set()
    for sql, parameters in batch("body_sizes").pieces(list(ids)):
        for event, length in decode(session.value(sql, parameters)):
            if size <= 0:
                return ids[:kept]
            kept += 1
            if event not in counted:
                counted.add(event)
                size -= length
    return ids[:kept]


def lease(session: SqliteSession, ids: list[bytes], number: int) -> list[Delivery]:
    """Lease these rows to a node, and read them."""
    if not ids:
        return []
    run_batch(session, "hold", list(ids), before=(number,))
    return read_deliveries(session, ids)


def _in_hand(deliveries: Sequence[Delivery]) -> Values:
    values: Values = []
    for delivery in deliveries:
        values += (delivery.id, delivery.attempt)
    return values
