"""An outbox in the ledger's own database. One transaction reads rows, waits until they are published, and removes them; its
advisory lock says who reads. A trigger wakes a reader that sleeps (`core/outbox_tables.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress

from surehook.core.errors import LedgerError
from surehook.core.outbox import COLUMNS, OutboxCount, OutboxRow
from surehook.core.outbox_answers import RefusedRow
from surehook.core.outbox_tables import READS, SLEEPS, check_table, counting, next_rows
from surehook.ledgers.common.errors import Unstorable
from surehook.ledgers.postgres.connecting import PATIENCE_S, connect_to
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ports.clock import Clock
from surehook.ports.outbox import RowsAway

DOZE_AFTER_S = 0.02  # of looks that find nothing
DOZE_S = 1.0  # below the time for which a transaction may be idle; a hint that is lost costs no more

_COLUMNS = ", ".join(COLUMNS)
_LOCK = "select pg_try_advisory_xact_lock(({kind}::bigint << 32) + '{table}'::regclass::oid::bigint)"


class PostgresOutbox:
    """Implements `ports.outbox.RowStore`. `hinted` is set by hints of the trigger."""

    def __init__(self, url: str, table: str, *, hinted: asyncio.Event, clock: Clock) -> None:
        self._table = check_table(table)
        self._session = PostgresSession(
            connect_to(url, "keep", name="surehook outbox"), patience_s=PATIENCE_S["keep"]
        )
        self._hinted = hinted
        self._clock = clock
        self._take_sql = next_rows(table, "tenant <> all($3::text[])", most="$1", size="$2")

    async def take(self, limit: int, size: int, resting: Collection[str]) -> list[OutboxRow] | None:
        try:
            await self.release()
            await self._session.begin()
            self._hinted.clear()
            if not await self._locks(READS):
                await self.release()
                return None
            found = await self._session.rows(self._take_sql, limit, size, list(resting))
            return [OutboxRow(*row) for row in found]
        except (LedgerError, Unstorable) as error:
            raise await self._away(error) from error

    async def settle(self, published: Sequence[int], refused: Sequence[RefusedRow]) -> None:
        try:
            for row in refused:
                await self._session.run(
                    f"insert into {self._table}_refused (position, {_COLUMNS}, code, reason, refused_at) "
                    f"select position, {_COLUMNS}, $2, $3, $4 from {self._table} where position = $1",
                    row.position, row.code, row.reason, self._clock.now(),
                )  # fmt: skip
            await self._session.run(
                f"delete from {self._table} where position = any($1::bigint[])",
                [*published, *(row.position for row in refused)],
            )
            await self._session.commit()
        except (LedgerError, Unstorable) as error:
            raise await self._away(error) from error

    async def release(self) -> None:
        await self._session.roll_back()

    async def idle(self, seconds: float) -> None:
        try:
            if seconds < DOZE_AFTER_S or not await self._locks(SLEEPS):
                # Somebody's transaction with new rows is open: others' rows come meanwhile.
                await self.release()
                await self._clock.sleep(min(seconds, DOZE_AFTER_S))
            elif not await self._session.rows(f"select 1 from {self._table} limit 1"):
                with suppress(TimeoutError):
                    async with asyncio.timeout(DOZE_S):
                        await self._hinted.wait()
        except (LedgerError, Unstorable) as error:
            raise await self._away(error) from error

    async def count(self) -> OutboxCount:
        try:
            (found,) = await self._session.rows(counting(self._table))
            return OutboxCount(*found)
        except (LedgerError, Unstorable) as error:
            raise await self._away(error) from error

    async def close(self) -> None:
        await self._session.close()

    async def _locks(self, kind: int) -> bool:
        return bool(await self._session.value(_LOCK.format(kind=kind, table=self._table)))

    async def _away(self, error: Exception) -> RowsAway:
        await self.release()
        return RowsAway(str(error))
