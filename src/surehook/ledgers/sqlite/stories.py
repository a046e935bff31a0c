"""One delivery: its row while it is open, and its history. Hand-written: no need to wait for SQLAlchemy."""

from __future__ import annotations

from surehook.core.model import Attempt, Delivery
from surehook.ledgers.common import lines
from surehook.ledgers.sqlite.rows import read_deliveries
from surehook.ledgers.sqlite.session import Session
from surehook.ledgers.sqlite.statements import query


def open_delivery(session: Session, delivery: bytes) -> tuple[Delivery, bytes | None] | None:
    with session.snapshot():
        found = read_deliveries(session, [delivery])
        return (found[0], session.value(query("holder"), (delivery,))) if found else None


def attempts(session: Session, delivery: bytes) -> list[Attempt]:
    sql = f"select {lines.COLUMNS} from attempt where delivery = ? order by seq"
    return [lines.attempt(row) for row in session.rows(sql, (delivery,))]
