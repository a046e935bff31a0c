"""The way out: leasing rows, and handing them back unsent. Each call takes a handful of steps."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from itertools import islice
from typing import Any

from surehook.core.model import Delivery, Lane
from surehook.ledgers.sqlite.fence import fence
from surehook.ledgers.sqlite.rows import ids_among, packed_ids, read_deliveries, run_batch
from surehook.ledgers.sqlite.session import Session
from surehook.ledgers.sqlite.statements import query


def claim(session: Session, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int) -> list[Delivery]:
    with session.writing():
        number = fence(session, node).number
        return _lease(session, packed_ids(session, query("ready"), (lane, due_by, limit)), number)


def claim_ids(session: Session, ids: Sequence[bytes], *, node: bytes, now: int) -> list[Delivery]:
    with session.writing():
        number = fence(session, node).number
        found = ids_among(session, "ready_among", dict.fromkeys(ids), after=(now,))
        return _lease(session, found, number)


def unpark(
    session: Session,
    endpoint: bytes,
    reasons: Sequence[str],
    *,
    node: bytes,
    limit: int,
    now: int,
    restart: bool = False,
) -> list[Delivery]:
    with session.writing():
        number = fence(session, node).number
        groups = [
            packed_ids(session, query("parked_ids"), (endpoint, reason, limit))
            for reason in dict.fromkeys(reasons)
        ]
        ids: list[Any] = list(islice(merge(*groups), limit))
        if not ids:
            return []
        if restart:
            run_batch(session, "restart", ids.copy(), before=(number, now, now))
        else:
            run_batch(session, "unpark", ids.copy(), before=(number, now))
        return read_deliveries(session, ids)


def park(session: Session, deliveries: Sequence[Delivery], reason: str, *, node: bytes, now: int) -> None:
    with session.writing():
        number = fence(session, node).number
        run_batch(session, "park", _in_hand(deliveries), before=(reason, now), after=(number,))


def release(session: Session, deliveries: Sequence[Delivery], *, node: bytes, now: int) -> None:
    with session.writing():
        number = fence(session, node).number
        run_batch(session, "release", _in_hand(deliveries), after=(number,))


def next_due(session: Session, lane: Lane) -> int | None:
    found: int | None = session.value(query("next_due"), (lane,))
    return found


def _lease(session: Session, ids: list[bytes], number: int) -> list[Delivery]:
    if not ids:
        return []
    run_batch(session, "hold", list(ids), before=(number,))
    return read_deliveries(session, ids)


def _in_hand(deliveries: Sequence[Delivery]) -> list[Any]:
    values: list[Any] = []
    for delivery in deliveries:
        values += (delivery.id, delivery.attempt)
    return values
