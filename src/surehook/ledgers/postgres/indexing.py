"""Indexes for lists, built for a day when it is over.

Lists by tenant, endpoint or type walk along the ids and take the rows that match. If few match, pages come back short. An
index leads straight to them, but maintained with every row it would cost the hot path more than all its other indexes
together (measured: 11 µs and 160 bytes of log per row and index, with rows of 2,000 endpoints mixed; the row itself takes
15 µs). Built at once when hardly anything is added any more, it costs a tenth of that. So today is walked, and earlier days
are looked up.

Of ends and outcomes only those other than `delivered` are indexed, since they are few and deliveries are everywhere. Dead
deliveries have indexes of their own, for lists of dead letters. Receipts are not partitioned; their index is built once,
here, because a migration would make everybody wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from surehook.core.errors import LedgerUnavailable
from surehook.core.instants import HOUR_MS
from surehook.ledgers.common.indexes import HIGHEST, LOWEST, ListIndexes
from surehook.ledgers.postgres.partitions import TABLES, day_of, first_id
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query

_IS_LAST = '"end" is not null'


class WantedIndex(NamedTuple):
    """An index by a column. `rows` is the condition of a partial one."""

    column: str
    rows: str | None


_DEAD = "\"end\" = 'dead'"
INDEXES: Mapping[str, Mapping[str, WantedIndex]] = {
    "attempt": {
        "endpoint": WantedIndex("endpoint", _IS_LAST),
        "tenant": WantedIndex("tenant", _IS_LAST),
        "type": WantedIndex("type", _IS_LAST),
        "outcome": WantedIndex("outcome", f"{_IS_LAST} and outcome <> 'delivered'"),
        "end": WantedIndex("end", f"{_IS_LAST} and \"end\" <> 'delivered'"),
        "dead endpoint": WantedIndex("endpoint", _DEAD),
        "dead tenant": WantedIndex("tenant", _DEAD),
        "dead type": WantedIndex("type", _DEAD),
    },
    "event": {
        "tenant": WantedIndex("tenant", None),
        "type": WantedIndex("type", None),
        "subject": WantedIndex("subject", "subject is not null"),
        "idempotency_key": WantedIndex("idempotency_key", "idempotency_key is not null"),
    },
}
RECEIPTS = "receipt_told"
# A day is over so long after its end, when first retries have come in too.
SETTLED_MS = HOUR_MS


# Partitions without an index are walked whole for a page if they are no larger: some 400,000 rows, 0.1 s. One long walk
# costs 0.25 µs per row, beside the 15 ms that each page costs anyway.
WALKED_BYTES = 96 << 20
# Rows that a page looks at otherwise.
LOOKS_MORE = 100_000


class Partition(NamedTuple):
    name: str
    table: str
    indexes: frozenset[str]
    bytes: int

    @property
    def day(self) -> int | None:
        """Return the number of its day; None for the `_kept` partition."""
        rest = self.name.removeprefix(f"{self.table}_day_")
        return int(rest) if rest.isdigit() else None

    @property
    def missing(self) -> list[str]:
        return [one for one in INDEXES[self.table] if one not in self.indexes]


async def list_indexes(session: PostgresSession) -> ListIndexes:
    """Read from the catalog which indexes lists can use."""
    partitions, receipts = await _there(session)
    below = {
        table: {
            index: min(
                (_first(one) for one in partitions if one.table == table and index not in one.indexes),
                default=HIGHEST,
            )
            for index in indexes
        }
        for table, indexes in INDEXES.items()
    }
    walked = {
        table: sum(one.bytes for one in partitions if one.table == table and one.missing) for table in INDEXES
    }
    looks = {table: None if size <= WALKED_BYTES else LOOKS_MORE for table, size in walked.items()}
    return ListIndexes(
        below["attempt"],
        line_looks=looks["attempt"],
        events=below["event"],
        event_looks=looks["event"],
        receipts=receipts,
    )


def _first(partition: Partition) -> bytes:
    return LOWEST if partition.day is None else first_id(partition.day)


async def index_one(session: PostgresSession, *, now: int) -> bool:
    """Index the newest day that is over and lacks indexes; False if there is none, or it cannot be indexed now."""
    partitions, receipts = await _there(session)
    if not receipts:
        return await _make(session, RECEIPTS, "receipt (stage, event) where stage > 0")
    over = day_of(now - SETTLED_MS)
    wanted = [one for one in partitions if one.missing and (one.day is None or one.day < over)]
    if not wanted:
        return False
    newest = max(wanted, key=lambda one: (one.day is None, one.day or 0, one.table))
    for index in newest.missing:
        column, rows = INDEXES[newest.table][index]
        of = f'{newest.name} ("{column}", {TABLES[newest.table]})' + (
            "" if rows is None else f" where {rows}"
        )
        if not await _make(session, f"{newest.name}_by_{index.replace(' ', '_')}", of):
            return False
    return True


async def _there(session: PostgresSession) -> tuple[list[Partition], bool]:
    rows = await session.rows(query("indexed"))
    found = [Partition(row["name"], row["parent"], frozenset(row["indexes"]), row["bytes"]) for row in rows]
    partitions = [one for one in found if one.name.startswith((f"{one.table}_day_", f"{one.table}_kept"))]
    return partitions, any(one.table == "receipt" and "stage" in one.indexes for one in found)


async def _make(session: PostgresSession, name: str, of: str) -> bool:
    try:
        # Nobody waits for these statements, but they wait for all transactions that began before them, up to the time
        # limit. The first one drops an unfinished index.
        await session.say(f"drop index concurrently if exists {name}")
        await session.say(f"create index concurrently {name} on {of}")
    except LedgerUnavailable:
        return False
    return True
