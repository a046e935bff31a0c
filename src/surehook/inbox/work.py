"""Workers: claim what is due, process it, and wait for more.

Twins of one loop, for threads and for tasks. A worker that finds work looks again at once; one that finds none waits until
something arrives in this process, the next run is due, or `idle_s` is over (another process may have stored something).
When the database is away it waits a little longer each time; nothing is lost by that, leases lapse by themselves.

A worker whose handler was given up (calls.py) ends when that comes back. Who takes its place begins with what it left: the run
of that handler has failed, and what shared its transaction was not tried.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from surehook.inbox.calls import GivenUp
from surehook.inbox.pace import Pace, Portion
from surehook.inbox.process import Done, Processor
from surehook.inbox.rules import Rules
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

BUSY_S = 0.1  # until the next look at what others have locked


class Claimed(Struct):
    runs: list[Run]
    waking: list[DocumentKey]  # documents for which time has passed
    next_due: int | None  # when there is nothing now


class Turn(Struct):
    """What a worker has in its hands: runs that it claimed with this token, to be handled in one transaction."""

    token: bytes = b""
    runs: Sequence[Run] = ()


class Parted(Struct):
    """What was claimed, as transactions will have it.

    first  given back at once: while a slow handler is at work, others may have them
    runs   of the next transaction
    rest   given back with it
    """

    first: list[Run]
    runs: list[Run]
    rest: list[Run]


class Left(Struct):
    """What a worker leaves to who takes its place: its turn, and the run whose handler took too long, if one did."""

    turn: Turn
    late: Run | None = None
    error: Exception | None = None

    def untried(self) -> list[Run]:
        return [run for run in self.turn.runs if run is not self.late]


class Steps:
    """What both kinds of worker do inside transactions, and what is told of it."""

    def __init__(
        self,
        processor: Processor,
        rules: Rules,
        pace: Pace,
        now: Callable[[], int],
        token: Callable[[], bytes],
        told: Callable[[Done], None],
        look: Callable[[Book, bool], bool],
        trouble: Trouble,
    ) -> None:
        """`look(book, idle)` is what a worker does beside claiming; whether more is due by that."""
        self.processor = processor
        self.rules = rules
        self.pace = pace
        self.now = now
        self.token = token
        self.told = told
        self.look = look
        self.trouble = trouble
        self._is_current = False  # the tables, once that was seen

    def claiming(self, token: bytes, limit: int | None = None) -> Callable[[Book], Claimed]:
        """At most `limit` runs; None: as many as share a transaction."""

        def work(book: Book) -> Claimed:
            self._check_tables(book)
            rules = self.rules
            most = rules.batch if limit is None else limit
            bounds: Any = {"lease_ms": rules.lease_ms, "token": token, "limit": most}
            runs = book.claim(now=self.now(), **bounds)
            # Those of other types are for others: handed to this worker, it would ask for them again at once, for ever.
            waking = book.waking(types=self.processor.follows, now=self.now(), limit=rules.batch)
            if self.look(book, not (runs or waking)) and not runs:
                runs = book.claim(now=self.now(), **bounds)
            return Claimed(runs, waking, None if runs or waking else book.next_due())

        return work

    def parted(self, runs: list[Run]) -> Parted:
        """Those of quick handlers share a transaction, a slow one is alone in its own."""
        shared = self.pace.together(runs)
        if shared or not runs:
            return Parted([], runs[:shared], runs[shared:])
        return Parted(runs[1:], runs[:1], [])

    def _check_tables(self, book: Book) -> None:
        """Nothing is claimed on tables of an older version: it could not be settled, and each try would count."""
        if not self._is_current:
            if (wrong := book.outdated()) is not None:
                raise StoreError(wrong)
            self._is_current = True

    def processing(
        self,
        runs: Sequence[Run],
        token: bytes,
        waking: Sequence[DocumentKey] = (),
        *,
        rest: Sequence[Run] = (),
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> Callable[[Book], Done]:
        def work(book: Book) -> Done:
            boot = self.pace.boot
            until = boot() + self.rules.batch_s
            return self.processor.process(
                book, runs, token, waking, rest=rest, is_over=lambda: is_stopping() or boot() >= until
            )

        return work

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
    """One thread that processes. `stop` ends it after the handler it is in. `left`: by the worker whose place it takes."""

    def __init__(self, store: Store, steps: Steps, woken: threading.Event, left: Left | None = None) -> None:
        self._store, self._steps, self._woken, self._left = store, steps, woken, left
        self._portion = Portion(steps.rules.batch)
        self._stopping = threading.Event()
        self.turn_now = Turn()
        self.is_given_up = False

    def stop(self) -> None:
        self._stopping.set()
        self._woken.set()

    def run(self) -> None:
        """Until stopped, or given up."""
        away = Away(self._steps.trouble)
        if self._left is not None:
            self._settle(self._left)
        while not self._stopping.is_set():
            try:
                idle = self.turn()
                away.over()
            except Contended as error:
                log.info("workers wanted the same rows, and this one waits: %s", error)
                self._stopping.wait(BUSY_S)
            except Exception as error:
                if self._is_given_up(error):
                    return
                self._stopping.wait(away.wait_s(error))
            else:
                if idle is not None and self._woken.wait(idle):
                    self._woken.clear()

    def turn(self) -> float | None:
        """Claim and process once; None if there was something, else how long to wait, in seconds."""
        steps, token = self._steps, self._steps.token()
        claimed = self._store.run(steps.claiming(token, self._portion.size))
        if not claimed.runs and not claimed.waking:
            return steps.idle_s(claimed)
        parted = steps.parted(claimed.runs)
        self.turn_now = Turn(token, claimed.runs)
        try:
            if parted.first:
                self._store.run(steps.releasing(parted.first, token))
                self.turn_now = Turn(token, parted.runs)
            work = steps.processing(
                parted.runs, token, claimed.waking, rest=parted.rest, is_stopping=self._stopping.is_set
            )
            done = self._store.run(work)
        except Exception as error:
            if self._is_given_up(error):
                raise
            if isinstance(error, StoreUnavailable):
                self._give_back(claimed.runs, token)
                raise
            self._give_back(parted.rest, token)
            self._one_by_one(parted.runs, token, error)
        else:
            self._portion.met(len(parted.runs) + len(parted.rest) - done.left, done.left + len(parted.first))
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
                if self._is_given_up(own):
                    raise
                done = self._store.run(self._steps.failing(run, token, own))
            self._steps.told(done)

    def _is_given_up(self, error: Exception) -> bool:
        return self.is_given_up or isinstance(error, GivenUp)

    def _settle(self, left: Left) -> None:
        steps, token = self._steps, left.turn.token
        try:
            if left.late is not None and left.error is not None:
                steps.told(self._store.run(steps.failing(left.late, token, left.error)))
            self._store.run(steps.releasing(left.untried(), token))
        except StoreError as error:
            log.info("leases of %d runs are left to lapse: %s", len(left.turn.runs), error)

    def _give_back(self, runs: Sequence[Run], token: bytes) -> None:
        if not runs:
            return
        try:
            self._store.run(self._steps.releasing(runs, token))
        except StoreError:
            log.info("leases of %d runs are left to lapse", len(runs))


class AsyncWorker:
    """One task that processes; the twin of `Worker`."""

    def __init__(
        self, store: AsyncStore, steps: Steps, woken: asyncio.Event, left: Left | None = None
    ) -> None:
        self._store, self._steps, self._woken, self._left = store, steps, woken, left
        self._portion = Portion(steps.rules.batch)
        self._stopping = False
        self.turn_now = Turn()
        self.is_given_up = False

    def stop(self) -> None:
        self._stopping = True
        self._woken.set()

    async def run(self) -> None:
        """Until stopped, or given up."""
        away = Away(self._steps.trouble)
        if self._left is not None:
            await self._settle(self._left)
        while not self._stopping:
            try:
                idle = await self.turn()
                away.over()
            except Contended as error:
                log.info("workers wanted the same rows, and this one waits: %s", error)
                await self._wait(BUSY_S)
            except Exception as error:
                if self._is_given_up(error):
                    return
                await self._wait(away.wait_s(error))
            else:
                if idle is not None:
                    await self._wait(idle)

    async def turn(self) -> float | None:
        """Claim and process once; None if there was something, else how long to wait, in seconds."""
        steps, token = self._steps, self._steps.token()
        claimed = await self._store.run(steps.claiming(token, self._portion.size))
        if not claimed.runs and not claimed.waking:
            return steps.idle_s(claimed)
        parted = steps.parted(claimed.runs)
        self.turn_now = Turn(token, claimed.runs)
        try:
            if parted.first:
                await self._store.run(steps.releasing(parted.first, token))
                self.turn_now = Turn(token, parted.runs)
            work = steps.processing(
                parted.runs, token, claimed.waking, rest=parted.rest, is_stopping=lambda: self._stopping
            )
            done = await self._store.run(work)
        except Exception as error:
            if self._is_given_up(error):
                raise
            if isinstance(error, StoreUnavailable):
                await self._give_back(claimed.runs, token)
                raise
            await self._give_back(parted.rest, token)
            await self._one_by_one(parted.runs, token, error)
        else:
            self._portion.met(len(parted.runs) + len(parted.rest) - done.left, done.left + len(parted.first))
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
                if self._is_given_up(own):
                    raise
                done = await self._store.run(self._steps.failing(run, token, own))
            self._steps.told(done)

    def _is_given_up(self, error: Exception) -> bool:
        return self.is_given_up or isinstance(error, GivenUp)

    async def _settle(self, left: Left) -> None:
        steps, token = self._steps, left.turn.token
        try:
            if left.late is not None and left.error is not None:
                steps.told(await self._store.run(steps.failing(left.late, token, left.error)))
            await self._store.run(steps.releasing(left.untried(), token))
        except StoreError as error:
            log.info("leases of %d runs are left to lapse: %s", len(left.turn.runs), error)

    async def _give_back(self, runs: Sequence[Run], token: bytes) -> None:
        if not runs:
            return
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
