"""Notes of rows that became ready out of order (strays.py), for whoever makes them so."""

from __future__ import annotations

from collections.abc import Collection

from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query

NOTES_TENANT, NOTES_MOST = 2_000, 10_000  # a hundred thousand rows of one endpoint are 1,600


async def tell(session: Session, ids: Collection[bytes], due_by: int) -> None:
    """Note those of the rows that are ready: in the transaction that is open, or in one of its own."""
    if ids:
        await session.rows(query("tell_strays"), sorted(ids), due_by, NOTES_TENANT, NOTES_MOST)
