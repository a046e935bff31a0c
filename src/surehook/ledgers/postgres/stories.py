"""One delivery: its row while it is open, and its history. Hand-written: no need to wait for SQLAlchemy."""

from __future__ import annotations

from surehook.core.model import Attempt, Delivery
from surehook.ledgers.common import lines
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query


async def open_delivery(session: Session, delivery: bytes) -> tuple[Delivery, bytes | None] | None:
    found = await session.row(query("open_delivery"), delivery)
    if found is None:
        return None
    *fields, holder = found
    return Delivery(*fields), holder


async def attempts(session: Session, delivery: bytes) -> list[Attempt]:
    sql = f"select {lines.COLUMNS} from attempt where delivery = $1 order by seq"
    return [lines.attempt(row) for row in await session.rows(sql, delivery)]
