"""Rows to core values."""

from __future__ import annotations

from collections.abc import Iterable

from surehook.core.errors import LedgerUnavailable
from surehook.core.model import Delivery
from surehook.ledgers.common.statements import Row
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query


def deliveries_of(rows: Iterable[Row]) -> list[Delivery]:
    """Return rows as deliveries: their columns are in the order of the fields."""
    return [Delivery(*row) for row in rows]


async def open_delivery(session: PostgresSession, delivery: bytes) -> tuple[Delivery, bytes | None] | None:
    """Read an unfinished delivery and its holder."""
    found = await session.row(query("open_delivery"), delivery)
    if found is None:
        return None
    *fields, holder = found
    return Delivery(*fields), holder


def sharing_bodies(rows: Iterable[Row]) -> list[Delivery]:
    """Return rows as deliveries, if the body of an event came with only one of its rows.

    Raises LedgerUnavailable if it came with none, which no statement should do. (One did that picked a row twice, since an
    update uses either.) The rows are then leased and not in memory, as after a lost answer, and are recovered likewise.
    """
    found = deliveries_of(rows)
    bodies = {delivery.event: delivery.body for delivery in found if delivery.body is not None}
    for delivery in found:
        body = bodies.get(delivery.event)
        if body is None:
            raise LedgerUnavailable("a lease came without its event's body")
        delivery.body = body
    return found
