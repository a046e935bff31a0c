"""Workers: claim what is due, process it, and wait for more.

Twins of one loop, for threads and for tasks. A worker that finds work looks again at once; one that finds none waits until
something arrives in this process, the next run is due, or `IDLE_S` is over (another process may have stored something).
When the database is away it waits a little longer each time; nothing is lost by that, leases lapse by themselves.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from surehook.inbox.process import Done, Processor
from surehook.inbox.trouble import Away, Trouble
from surehook.ports.inbox import (
    AsyncStore,
    Book,
    Contended,
    DocumentKey,
    Run,
    Store,
    StoreError,
    StoreUnavailable,
)

log = logging.getLogger("surehook.inbox")

BATCH = 64  # runs in one transaction: handlers are the larger part of its cost by then
LEASE_MS = 60_000  # after that, work of a worker that died or hangs is taken up by another
IDLE_S = 1.0  # how late work is found that another process stored
BUSY_S = 0.1  # until the next look at what others have locked


class Rules(Struct, frozen=True):
    """How workers work. `batch` runs share a transaction; `lease_ms` must be more than such a batch takes."""

    batch: int = BATCH
    lease_ms: int = LEASE_MS
    idle_s: float = IDLE_S


class Claimed(Struct):
    runs: list[Run]
    waking: list[DocumentKey]  # documents for which time has passed
    next_due: int | None  # when there is nothing now


class Steps:
    """What both kinds of worker do inside transactions, and what is told of it."""

    def __init__(
        self,
        processor: Processor,
        rules: Rules,
        now: Callable[[], int],
        token: Callable[[], bytes],
        told: Callable[[Done], None],
        look: Callable[[Book], bool],
        trouble: Trouble,
    ) -> None:
        """`look` is what a worker does beside claiming; whether more is due by that."""
        self.processor = processor
        self.rules = rules
        self.now = now
        self.token = token
        self.told = told
        self.look = look
        self.trouble = trouble

    def claiming(self, token: bytes) -> Callable[[Book], Claimed]:
        def work(book: Book) -> Claimed:
            rules = self.rules
            bounds: Any = {"lease_ms": rules.lease_ms, "token": token, "limit": rules.batch}
            runs = book.claim(now=self.now(), **bounds)
            # Those of other types are for others: handed to this worker, it would ask for them again at once, for ever.
            waking = book.waking(types=self.processor.follows, now=self.now(), limit=rules.batch)
            if self.look(book) and not runs:
                runs = book.claim(now=self.now(), **bounds)
            return Claimed(runs, waking, None if runs or waking else book.next_due())

        return work

    def processing(
        self, runs: Sequence[Run], token: bytes, waking: Sequence[DocumentKey] = ()
    ) -> Callable[[Book], Done]:
        return lambda book: self.processor.process(book, runs, token, waking)

    def failing(self, run: Run, token: bytes, error: Exception) -> Callable[[Book], Done]:
        return lambda book: self.processor.fail(book, run, token, error)

    def releasing(self, runs: Sequence[Run], token: bytes) -> Callable[[Book], None]:
        return lambda book: book.release(runs, token, due_at=self.now())

    def idle_s(self, claimed: Claimed) -> float:
        """How long to wait when nothing is due."""
        if claimed.next_due is None:
            return self.rules.idle_s
        wait = (claimed.next_due - self.now()) / 1000
        # What is due and was not given is another worker's just now, or followed elsewhere: no reason to hurry.
        return min(wait if wait > 0 else BUSY_S, self.rules.idle_s)


class Worker:
    """One thread that processes. `stop` ends it after the batch it is in."""

    def __init__(self, store: Store, steps: Steps, woken: threading.Event) -> None:
        self._store, self._steps, self._woken = store, steps, woken
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()
        self._woken.set()

    def run(self) -> None:
        """Until stopped."""
        away = Away(self._steps.trouble)
        while not self._stopping.is_set():
            try:
                idle = self.turn()
                away.over()
            except Contended as error:
                log.info("workers wanted the same rows, and this one waits: %s", error)
                self._stopping.wait(BUSY_S)
            except Exception as error:
                self._stopping.wait(away.wait_s(error))
            else:
                if idle is not None and self._woken.wait(idle):
                    self._woken.clear()

    def turn(self) -> float | None:
        """Claim and process once; None if there was something, else how long to wait, in seconds."""
        steps, token = self._steps, self._steps.token()
        claimed = self._store.run(steps.claiming(token))
        if not claimed.runs and not claimed.waking:
            return steps.idle_s(claimed)
        try:
            done = self._store.run(steps.processing(claimed.runs, token, claimed.waking))
        except StoreUnavailable:
            self._give_back(claimed.runs, token)
            raise
        except Exception as error:
            self._one_by_one(claimed.runs, token, error)
        else:
            steps.told(done)
        return None

    def _one_by_one(self, runs: list[Run], token: bytes, error: Exception) -> None:
        if not runs:  # a document that cannot be woken keeps nobody else from going on
            raise error
        for run in runs:
            try:
                if len(runs) == 1:
                    raise error
                done = self._store.run(self._steps.processing([run], token))
            except StoreUnavailable:
                raise
            except Exception as own:
                done = self._store.run(self._steps.failing(run, token, own))
            self._steps.told(done)

    def _give_back(self, runs: list[Run], token: bytes) -> None:
        try:
            self._store.run(self._steps.releasing(runs, token))
        except StoreError:
            log.info("leases of %d runs are left to lapse", len(runs))


class AsyncWorker:
    """One task that processes; the twin of `Worker`."""

    def __init__(self, store: AsyncStore, steps: Steps, woken: asyncio.Event) -> None:
        self._store, self._steps, self._woken = store, steps, woken
        self._stopping = False

    def stop(self) -> None:
        self._stopping = True
        self._woken.set()

    async def run(self) -> None:
        """Until stopped."""
        away = Away(self._steps.trouble)
        while not self._stopping:
            try:
                idle = await self.turn()
                away.over()
            except Contended as error:
                log.info("workers wanted the same rows, and this one waits: %s", error)
                await self._wait(BUSY_S)
            except Exception as error:
                await self._wait(away.wait_s(error))
            else:
                if idle is not None:
                    await self._wait(idle)

    async def turn(self) -> float | None:
        """Claim and process once; None if there was something, else how long to wait, in seconds."""
        steps, token = self._steps, self._steps.token()
        claimed = await self._store.run(steps.claiming(token))
        if not claimed.runs and not claimed.waking:
            return steps.idle_s(claimed)
        try:
            done = await self._store.run(steps.processing(claimed.runs, token, claimed.waking))
        except StoreUnavailable:
            await self._give_back(claimed.runs, token)
            raise
        except Exception as error:
            await self._one_by_one(claimed.runs, token, error)
        else:
            steps.told(done)
        return None

    async def _one_by_one(self, runs: list[Run], token: bytes, error: Exception) -> None:
        if not runs:  # a document that cannot be woken keeps nobody else from going on
            raise error
        for run in runs:
            try:
                if len(runs) == 1:
                    raise error
                done = await self._store.run(self._steps.processing([run], token))
            except StoreUnavailable:
                raise
            except Exception as own:
                done = await self._store.run(self._steps.failing(run, token, own))
            self._steps.told(done)

    async def _give_back(self, runs: list[Run], token: bytes) -> None:
        try:
            await self._store.run(self._steps.releasing(runs, token))
        except StoreError:
            log.info("leases of %d runs are left to lapse", len(runs))

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return
        if not self._stopping:
            self._woken.clear()
