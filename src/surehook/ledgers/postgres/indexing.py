"""Indexes for lists, made for a day when it is over.

Lists by tenant or endpoint walk along the ids and take what fits. That is quick where much fits; where little does,
pages come back short. An index by endpoint and one by tenant lead straight to what is asked for, but kept up with
every line they would cost the way of events more than all its other indexes together (measured: 11 µs and 160 bytes of
log a line and index, with lines of 2,000 endpoints coming in mixed; the line itself takes 15 µs). Built at once when
nothing much is added any more, they cost a tenth of that. So today is walked, and what lies before is looked up.
"""

from __future__ import annotations

from surehook.core.errors import LedgerUnavailable
from surehook.core.instants import HOUR_MS
from surehook.ledgers.common.ends import HIGHEST, LOWEST
from surehook.ledgers.postgres.partitions import day_of, first_id
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query

COLUMNS = ("endpoint", "tenant")
SETTLED_MS = HOUR_MS  # a day is over so long after its end: first retries have come in too
_DAY, _KEPT = "attempt_day_", "attempt_kept"


async def indexed_below(session: Session) -> bytes:
    """Below this id every last line is in the indexes."""
    below, kept = HIGHEST, False
    for row in await session.rows(query("indexed")):
        is_indexed = len(set(row["columns"]) & set(COLUMNS)) == len(COLUMNS)
        if row["name"] == _KEPT:
            kept = is_indexed
        elif not is_indexed and row["name"].startswith(_DAY):
            below = min(below, first_id(int(row["name"].removeprefix(_DAY))))
    return below if kept else LOWEST


async def index_one(session: Session, *, now: int) -> bool:
    """Index the newest day that is over and has no indexes yet; False where there is none, or it cannot be done now."""
    over = day_of(now - SETTLED_MS)
    rows = await session.rows(query("indexed"))
    wanted = [row for row in rows if row["name"] == _KEPT or int(row["name"].removeprefix(_DAY)) < over]
    for row in sorted(wanted, key=lambda row: str(row["name"]), reverse=True):
        missing = [column for column in COLUMNS if column not in row["columns"]]
        if missing:
            return await _index(session, row["name"], missing)
    return False


async def _index(session: Session, partition: str, columns: list[str]) -> bool:
    for column in columns:
        name = f"{partition}_by_{column}"
        try:
            await session.say(f"drop index if exists {name}")  # half of one that was given up
            # Nobody waits for this one, but it waits for everybody who began before it, up to its patience.
            await session.say(
                f'create index concurrently {name} on {partition} ({column}, delivery) where "end" is not null'
            )
        except LedgerUnavailable:
            return False
    return True
