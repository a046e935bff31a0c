"""Publishes the rows of an outbox to a server, until told to stop.

1. One reader at a time; others stand by, and one of them reads when it ends or its connection does.
2. It reads rows in the order of their positions and publishes them together. The next ones are read when these are answered and
   gone, so what is written in order is published in order.
3. A reader that dies between the answer and that publishes its rows once more: their ids make them repeats.
4. Rows that no server takes are put aside. A tenant whose rows are to come later rests, and others do not. While the server is
   away, or refuses the key, everything waits.

Two tie it together: `surehook outbox run` with an application's database and HTTP, and a server with its own ledger's database
and itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from surehook.core import limits
from surehook.core.errors import Problem, SurehookError
from surehook.core.outbox import OutboxCount, OutboxFigures, OutboxRow, event_of, waited_s
from surehook.core.outbox_answers import RefusedRow, refused_row, settlement, storable
from surehook.outbox.resting import TenantRests
from surehook.ports.outbox import NotPublished, Publish, RowsAway, RowStore

R = TypeVar("R")
ROWS = 500  # published together …
SIZE = limits.BATCH_BODY_BYTES // 4  # … and characters of their payloads, of which each may be four bytes
IDLE_FIRST_S, IDLE_MOST_S = 0.005, 0.25  # between looks that find nothing
STANDBY_S = 0.5  # between looks while another one reads
AWAY_FIRST_S, AWAY_MOST_S = 0.2, 15.0  # between tries while the server or the database is away
TOLD_MOST = 10  # rows of one request that were put aside
ID_CHARS = 64  # of what may be no id
SILENT_S = 10.0  # of a database that does not answer, after which the figures say so
COUNT_S = 15.0  # between two counts of what waits, which walk over it


class FlushGivenUp(SurehookError):
    """Nothing could be published for as long as somebody had patience."""


class Relay:
    """`tell` gets a sentence for the operator. With `counts` what waits is counted again and again, for `figures`."""

    def __init__(
        self,
        store: RowStore,
        publish: Publish,
        *,
        sleep: Callable[[float], Awaitable[object]],
        monotonic: Callable[[], float],
        tell: Callable[[str], None],
        counts: bool = False,
    ) -> None:
        self._store = store
        self._publish = publish
        self._sleep = sleep
        self._monotonic = monotonic
        self._tell = tell
        self._limit = ROWS
        self._rests = TenantRests()
        self._trouble: str | None = None
        self._is_database_away = False
        self._idle_s, self._away_s = IDLE_FIRST_S, AWAY_FIRST_S
        self._counts = counts
        self._count = OutboxCount(0, 0, None)
        self._count_at = 0.0  # when the next one is due
        self._waits_since: int | None = None  # Unix milliseconds
        self._asked_at: float | None = None  # while a call of the database is under way
        self.published = 0
        self.refused = 0

    def figures(self, now_ms: int) -> OutboxFigures:
        """Counts since the start, what waits as of the last count, and how long the rows that are next have waited."""
        return OutboxFigures(
            published=self.published,
            refused=self.refused,
            waiting=self._count.waiting,
            aside=self._count.refused,
            lag_s=waited_s(self._waits_since, now_ms),
            is_troubled=self._trouble is not None or self._is_silent(),
        )

    def _is_silent(self) -> bool:
        return self._asked_at is not None and self._monotonic() - self._asked_at > SILENT_S

    async def run(self) -> None:
        """Publish until cancelled."""
        try:
            while True:
                if await self._round():
                    await self._store.idle(self._idle_s)
                    self._idle_s = min(self._idle_s * 2, IDLE_MOST_S)
                else:
                    self._idle_s = IDLE_FIRST_S
        finally:
            await self._store.close()

    async def flush(self, *, patience_s: float) -> None:
        """Publish until nothing is left. Raises FlushGivenUp where nothing could be published for so long."""
        try:
            done, until = 0, self._monotonic() + patience_s
            while not await self._round_within(patience_s):
                if self.published + self.refused > done:
                    done, until = self.published + self.refused, self._monotonic() + patience_s
                elif self._monotonic() > until:
                    raise FlushGivenUp(
                        self._trouble or "another relay reads, or the tenants of these rows have to wait"
                    )
        finally:
            await self._store.close()

    async def _round_within(self, patience_s: float) -> bool:
        try:
            async with asyncio.timeout(patience_s):
                return await self._round(flushing=True)
        except TimeoutError:
            raise FlushGivenUp("the database does not answer, or somebody holds the table") from None

    async def _round(self, *, flushing: bool = False) -> bool:
        """Publish the next rows; True if there were none."""
        try:
            now = self._monotonic()
            left_out = self._rests.left_out(now)
            if left_out is None:
                await self._sleep(IDLE_MOST_S)
                return False
            if self._counts and now >= self._count_at:
                self._count_at = now + COUNT_S
                await self._count_rows()
            rows = await self._asked(self._store.take(self._limit, SIZE, left_out))
            self._waits_since = self._oldest(rows, left_out)
            if rows:
                await self._take_over(rows)
                return False
            self._back()
            if rows is None:
                if flushing and not (await self._asked(self._store.count())).waiting:
                    return True  # the other one has done it
                await self._sleep(STANDBY_S)
            elif left_out:
                await self._store.release()
                if self._rests.is_all_read():
                    await self._sleep(IDLE_MOST_S)
            else:
                return True
        except RowsAway as error:
            self._is_database_away = True
            await self._away(f"the database cannot be asked: {error}")
        return False

    async def _count_rows(self) -> None:
        """Count for the metrics. Rows that are too many to be counted in time are published all the same."""
        try:
            self._count = await self._asked(self._store.count())
        except RowsAway as error:
            if not self._is_database_away:
                self._tell(f"rows cannot be counted: {error}")

    async def _asked(self, answer: Awaitable[R]) -> R:
        """The database's answer; `figures` tell of one that does not come."""
        self._asked_at = self._monotonic()
        try:
            return await answer
        finally:
            self._asked_at = None

    def _oldest(self, rows: list[OutboxRow] | None, left_out: tuple[str, ...]) -> int | None:
        """When the oldest row that waits was written. Those of another reader and of resting tenants were counted."""
        counted = self._count.oldest_at if rows is None or left_out else None
        taken = rows[0].created_at if rows else None
        return min((at for at in (taken, counted) if at is not None), default=None)

    async def _take_over(self, rows: list[OutboxRow]) -> None:
        good: list[OutboxRow] = []
        faults: list[RefusedRow] = []
        for row in rows:
            fault = _fault(row)
            if fault is not None:
                faults.append(fault)
            else:
                good.append(row)
        try:
            answers = await self._publish(good) if good else []
        except NotPublished as error:
            if error.answer is None or not error.answer.is_final:
                await self._store.release()
                await self._away(f"rows wait: {error}")
                return
            if len(good) > 1:  # look for the one that it is about
                await self._store.release()
                self._limit = len(good) // 2
                return
            answers = [error.answer]
        settled = settlement(good, answers)
        refused = [*faults, *settled.refused]
        await self._asked(self._store.settle(settled.published, refused))
        self._waits_since = None
        self._back()
        self.published += len(settled.published)
        self._limit = min(ROWS, self._limit * 2)
        self._put_aside(refused, {row.position: row.id for row in rows})
        gone = set(settled.published)
        goes_on = {row.tenant for row in good if row.position in gone}
        for news in self._rests.rest(settled.resting, goes_on=goes_on, now=self._monotonic()):
            self._tell(news)

    def _put_aside(self, refused: list[RefusedRow], ids: dict[int, str]) -> None:
        self.refused += len(refused)
        for each in refused[:TOLD_MOST]:
            self._tell(f"put aside: {storable(ids[each.position], ID_CHARS)}, {each.code}: {each.reason}")
        if len(refused) > TOLD_MOST:
            self._tell(f"put aside: {len(refused) - TOLD_MOST} more")

    async def _away(self, trouble: str) -> None:
        """Tell of it once, and pause."""
        if self._trouble != trouble:
            self._tell(trouble)
        self._trouble = trouble
        pause_s, self._away_s = self._away_s, min(self._away_s * 2, AWAY_MOST_S)
        await self._sleep(pause_s)

    def _back(self) -> None:
        if self._trouble is not None:
            self._tell("publishing again")
        self._trouble, self._away_s, self._is_database_away = None, AWAY_FIRST_S, False


def _fault(row: OutboxRow) -> RefusedRow | None:
    """The reason to put a row aside unsent; None: it is an event. Whatever else may be in it stops nobody."""
    try:
        event = event_of(row)
    except Exception as error:
        return refused_row(row.position, "unreadable_row", f"{type(error).__name__}: {error}")
    return refused_row(row.position, event.code, event.detail) if isinstance(event, Problem) else None
