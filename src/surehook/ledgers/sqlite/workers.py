"""Workers that run jobs on a connection: on the calling thread, or on a thread of their own.

`Inline` never lets another task run, so that a simulated loop orders everything. `Thread` runs jobs one at a time, in the
order of the calls, and hands each result to the loop that asked. If the caller is cancelled meanwhile, the job still takes
effect and its result is dropped. At most `LINE_MAX` jobs wait.

Jobs that nobody waits for by the millisecond (retention, endings in bulk, an event for thousands of endpoints) run after
all others, but at most `PASSED_MOST` transactions go before them. So do changes by people, in a line of their own: a crowd of
them delays nobody's events, and fills a part of the line alone.

Adjacent jobs that may be joined share one transaction, and so one wait for the disk: under load an accept and a record
nearly always do. If one of them fails, all are rolled back and each runs alone, so a job must leave nothing behind but rows.

Quick jobs run before all others and share a transaction only with each other. So a publish of one event waits for the
rest of the transaction under way, and not for hundreds of somebody else's rows as well. They may only be new work, which
no waiting job can depend on. While quick jobs keep coming, other jobs are not joined, so that less is left to wait for.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from enum import IntEnum
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol, TypeVar

from surehook.core.errors import LedgerUnavailable

R = TypeVar("R")
# Waiting jobs. The loops of the engine have one or two each, so more than this are callers of the API whom a slow disk keeps
# waiting; they are refused.
LINE_MAX = 1_000
CHANGES_MAX = 300
# Jobs in one transaction: one each of accept, record, claim and park, so that none waits for many others.
JOINED_MAX = 4
# Transactions that may go before a job of a lower rank: a tenth of a second on a busy disk.
PASSED_MOST = 8
# Transactions after a quick job in which nothing is joined, since another quick one is likely to come.
APART = 16


class Rank(IntEnum):
    """The rank of a job: lower ones run first."""

    QUICK = 0
    USUAL = 1
    CHANGE = 2
    BULK = 3


class _Job(NamedTuple):
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    work: Callable[[], object]
    joins: bool
    rank: Rank


_Outcome = tuple[object, BaseException | None]


class SqliteWorker(Protocol):
    async def call(self, work: Callable[[], R], *, joins: bool = False, rank: Rank = Rank.USUAL) -> R: ...

    async def last(self, work: Callable[[], R]) -> R: ...

    def dismiss(self) -> None:
        """Accept no more work; the job under way ends by itself."""
        ...

    def stop(self) -> None:
        """Accept no more work, and wait for the job under way."""
        ...


class Inline:
    async def call(self, work: Callable[[], R], *, joins: bool = False, rank: Rank = Rank.USUAL) -> R:
        return work()

    async def last(self, work: Callable[[], R]) -> R:
        return work()

    def dismiss(self) -> None:
        pass

    def stop(self) -> None:
        pass


class Thread:
    """A worker thread. `joint` opens the transaction that joined jobs share; None: nothing is joined."""

    def __init__(self, name: str, joint: Callable[[], AbstractContextManager[None]] | None = None) -> None:
        self._joint = joint
        self._line: SimpleQueue[_Job | None] = SimpleQueue()
        # By rank, jobs taken out of the line and not yet done. Other threads read their lengths only.
        self._lines: tuple[deque[_Job], ...] = tuple(deque() for _ in Rank)
        # By rank, the transactions that went before the first waiting job.
        self._passed = [0 for _ in Rank]
        self._changes = 0  # that wait or run
        # Transactions to come in which nothing is joined.
        self._apart = 0
        self._is_ending = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def call(self, work: Callable[[], R], *, joins: bool = False, rank: Rank = Rank.USUAL) -> R:
        if self._line.qsize() + sum(map(len, self._lines)) >= LINE_MAX:
            raise LedgerUnavailable(f"{LINE_MAX} calls wait for the database already")
        if rank != Rank.CHANGE:
            return await self._put(work, joins=joins, rank=rank)
        if self._changes >= CHANGES_MAX:
            raise LedgerUnavailable(f"{CHANGES_MAX} changes wait for the database already")
        self._changes += 1
        try:
            return await self._put(work, joins=joins, rank=rank)
        finally:
            self._changes -= 1

    async def last(self, work: Callable[[], R]) -> R:
        """Run a job at the end, however many wait."""
        return await self._put(work, joins=False, rank=Rank.USUAL)

    async def _put(self, work: Callable[[], R], *, joins: bool, rank: Rank) -> R:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._line.put(_Job(loop, future, work, joins, rank))
        return await future

    def dismiss(self) -> None:
        self._line.put(None)

    def stop(self) -> None:
        self.dismiss()
        self._thread.join()

    def _work(self) -> None:
        while True:
            self._listen()
            if not any(self._lines):
                return
            jobs = self._next()
            for done, (answer, error) in zip(jobs, self._outcomes(jobs), strict=True):
                # RuntimeError: the loop that asked is closed, and nobody waits.
                with suppress(RuntimeError):
                    done.loop.call_soon_threadsafe(_answer, done.future, answer, error)
            # An idle thread must keep nothing alive.
            del jobs, done, answer, error

    def _listen(self) -> None:
        """Take all jobs out of the line. If there is nothing to do, wait for one."""
        while not self._is_ending:
            try:
                job = self._line.get(block=not any(self._lines))
            except Empty:
                return
            if job is None:
                self._is_ending = True
            else:
                self._lines[job.rank].append(job)

    def _next(self) -> list[_Job]:
        """Take the jobs of the next transaction: adjacent ones that may be joined, or a single one."""
        rank = self._turn()
        line = self._lines[rank]
        jobs = [line.popleft()]
        if jobs[0].joins and self._joint is not None and (rank != Rank.USUAL or not self._apart):
            while line and line[0].joins and len(jobs) < JOINED_MAX:
                jobs.append(line.popleft())
        self._apart = APART if rank == Rank.QUICK else max(0, self._apart - 1)
        return jobs

    def _turn(self) -> Rank:
        """Choose the next rank: the lowest of those that wait, or one that has been passed too often."""
        waiting = [rank for rank in Rank if self._lines[rank]]
        passed = [rank for rank in waiting if self._passed[rank] >= PASSED_MOST]
        turn = (passed or waiting)[0]
        for rank in waiting:
            self._passed[rank] = 0 if rank == turn else self._passed[rank] + 1
        return turn

    def _outcomes(self, jobs: list[_Job]) -> list[_Outcome]:
        if len(jobs) > 1:
            assert self._joint is not None
            # On an error each job runs alone, and raises it there.
            with suppress(Exception):
                with self._joint():
                    answers = [job.work() for job in jobs]
                return [(answer, None) for answer in answers]
        return [_outcome(job.work) for job in jobs]


def _outcome(work: Callable[[], object]) -> _Outcome:
    try:
        return work(), None
    except BaseException as error:
        return None, error


def _answer(future: asyncio.Future[object], answer: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(answer)
    else:
        future.set_exception(error)
