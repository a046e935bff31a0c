"""Noting rows that became ready out of order (strays.py)."""

from __future__ import annotations

from collections.abc import Collection

from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query

# Bounds on notes, of one tenant and in all: a hundred thousand rows of one endpoint are 1,600.
NOTES_TENANT, NOTES_MOST = 2_000, 10_000


async def note_ready(session: PostgresSession, ids: Collection[bytes], due_by: int) -> None:
    """Note those of the rows that are ready, in the open transaction or in one of its own."""
    if ids:
        await session.rows(query("note_strays"), sorted(ids), due_by, NOTES_TENANT, NOTES_MOST)
