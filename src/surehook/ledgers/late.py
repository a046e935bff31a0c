"""Rows that a commit made visible late, and noting them for other processes.

Claims of other processes begin at their own positions. They see a row that becomes visible soon after it is due; if that
took longer (a slow commit, a long wait before it), the row may lie behind them. The writer knows, from the due times of the
rows and the end of the commit. Nothing is written for rows that came in time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from itertools import islice

from surehook.core.errors import LedgerError

log = logging.getLogger("surehook.ledgers")

# Half of the time for which claims still look at rows that have fallen due.
LATE_MS = 250
# Between attempts while the ledger does not answer.
AGAIN_S = 0.5
# Rows noted in one transaction.
AT_ONCE = 5_000
# Rows that wait to be noted. Looking back finds the others.
WAITING_MOST = 50_000

# Takes ids, and the instant by which they were due.
Write = Callable[[list[bytes], int], Awaitable[None]]


def late(rows: Iterable[tuple[bytes, int]], *, through: int) -> list[bytes]:
    """Return the late ones of rows (id, due time) that became ready with a commit that ended at this instant."""
    return [id for id, due_at in rows if due_at < through - LATE_MS]


class LateRows:
    """The late rows of one process, noted in a task of its own: nobody waits for it. `clock` counts seconds."""

    def __init__(self, write: Write, clock: Callable[[], float]) -> None:
        self._write = write
        self._clock = clock
        self._waiting: dict[bytes, None] = {}
        self._through = 0
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> float:
        """Begin a commit that may make rows ready. The result is to be passed to `ended`."""
        return self._clock()

    def ended(self, began: float, rows: Iterable[tuple[bytes, int]], *, now: int) -> None:
        """End the commit, and note its late rows. `now` is the instant at which it began."""
        through = now + int((self._clock() - began) * 1000)
        found = late(rows, through=through)
        if not found:
            return
        self._through = max(self._through, through)
        room = WAITING_MOST - len(self._waiting)
        self._waiting.update(dict.fromkeys(found[: max(0, room)]))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Note what is left, without trying again."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        if self._waiting:
            with suppress(LedgerError):
                await self._write_or_forget(list(self._waiting))
            self._waiting.clear()

    async def _run(self) -> None:
        while self._waiting:
            ids = list(islice(self._waiting, AT_ONCE))
            try:
                await self._write_or_forget(ids)
            except LedgerError:
                await asyncio.sleep(AGAIN_S)
                continue
            for id in ids:
                self._waiting.pop(id, None)

    async def _write_or_forget(self, ids: list[bytes]) -> None:
        """Write notes. Rows whose notes fail by a defect are left to looking back: retried, they would hold up all others."""
        try:
            await self._write(ids, self._through)
        except LedgerError:
            raise
        except Exception as error:
            log.error("%d late rows cannot be told of; looking back finds them", len(ids), exc_info=error)
