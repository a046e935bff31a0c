"""Which rows a commit brought late, and telling others of them.

Claims of other processes begin where they stand. A row is seen there if it is visible soon after the instant it is due for; what
took longer (a commit that stood still, a long wait before it) may lie behind them. Whoever wrote it knows: by the rows' own
instants and when the commit was through. Nothing is written for rows that came in time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from itertools import islice

from surehook.core.errors import LedgerError

log = logging.getLogger("surehook.ledgers")

LATE_MS = 250  # half of the time for which claims still look at what has fallen due
AGAIN_S = 0.5  # between tries while the ledger does not answer
AT_ONCE = 5_000  # rows told in one transaction
WAITING_MOST = 50_000  # rows that wait to be told; what is beyond is found by looking back

Tell = Callable[[list[bytes], int], Awaitable[None]]  # ids, and the instant by which they were due


def late(rows: Iterable[tuple[bytes, int]], *, through: int) -> list[bytes]:
    """Of rows that became ready with a commit that was through at this instant, as (id, due time), those that came late."""
    return [id for id, due_at in rows if due_at < through - LATE_MS]


class Telling:
    """What one process has to tell, in a task of its own: nobody waits for it. `clock` counts seconds."""

    def __init__(self, tell: Tell, clock: Callable[[], float]) -> None:
        self._tell = tell
        self._clock = clock
        self._waiting: dict[bytes, None] = {}
        self._through = 0
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> float:
        """A commit begins that may make rows ready."""
        return self._clock()

    def ended(self, began: float, rows: Iterable[tuple[bytes, int]], *, now: int) -> None:
        """It is through. `now`: the instant at which it began."""
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
        """Tell what is left, once."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        if self._waiting:
            with suppress(LedgerError):
                await self._tell_or_forget(list(self._waiting))
            self._waiting.clear()

    async def _run(self) -> None:
        while self._waiting:
            ids = list(islice(self._waiting, AT_ONCE))
            try:
                await self._tell_or_forget(ids)
            except LedgerError:
                await asyncio.sleep(AGAIN_S)
                continue
            for id in ids:
                self._waiting.pop(id, None)

    async def _tell_or_forget(self, ids: list[bytes]) -> None:
        """Rows whose telling is a defect are left to looking back: tried again they would keep all others waiting."""
        try:
            await self._tell(ids, self._through)
        except LedgerError:
            raise
        except Exception as error:
            log.error("%d late rows cannot be told of; looking back finds them", len(ids), exc_info=error)
