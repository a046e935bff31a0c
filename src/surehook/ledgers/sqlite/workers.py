"""Where work on a connection runs: on the calling thread, or on a thread of its own.

`Inline` never lets another task run, so a simulated loop orders everything. `Thread` takes jobs one at
a time, in the order they were asked for, and hands results to the loop that asked; a caller that is
cancelled meanwhile misses the result, not the effect. Its line holds at most `LINE_MAX` jobs.

Jobs that nobody waits for by the millisecond (retention, endings in bulk, an event for thousands of endpoints) stand
behind all others, and are never passed more often than `PASSED_MOST` times.

Jobs that may be joined and stand next to each other in the line share one transaction, and so one wait
for the disk: under load an accept and a record nearly always do. Where one of them fails, all are rolled
back and each is run alone, so a job must leave nothing behind but rows.

Quick jobs go before all others and share their transaction only with each other. So a publish of one event waits for what
is left of the transaction under way, and not for hundreds of rows of somebody else's as well. They may be new work
alone, of which nothing in the line can know. While such jobs come, others go alone, so that less is left to wait for.
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
# Jobs in line: the loops of the engine have one or two each, so more than this are callers of the API
# that a slow disk keeps waiting, and they are told so.
LINE_MAX = 1_000
# Jobs in one transaction: one each of accept, record, claim and park, so that none waits for many others.
JOINED_MAX = 4
# Transactions of others that may go before a job that can wait: a tenth of a second on a busy disk.
PASSED_MOST = 8
# Transactions after a quick one in which nothing is joined: for as long, another is likely to come.
APART = 16


class Rank(IntEnum):
    """Where a job stands."""

    QUICK = 0
    USUAL = 1
    BULK = 2


class _Job(NamedTuple):
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    work: Callable[[], Any]
    joins: bool
    rank: Rank


_Outcome = tuple[Any, BaseException | None]


class Worker(Protocol):
    async def call(self, work: Callable[[], R], *, joins: bool = False, rank: Rank = Rank.USUAL) -> R: ...

    def dismiss(self) -> None:
        """Take no more work; what is under way ends by itself."""
        ...

    def stop(self) -> None:
        """Take no more work and wait for what is under way."""
        ...


class Inline:
    async def call(self, work: Callable[[], R], *, joins: bool = False, rank: Rank = Rank.USUAL) -> R:
        return work()

    def dismiss(self) -> None:
        pass

    def stop(self) -> None:
        pass


class Thread:
    """`joint` opens the transaction that joined jobs share; None: nothing is joined."""

    def __init__(self, name: str, joint: Callable[[], AbstractContextManager[None]] | None = None) -> None:
        self._joint = joint
        self._line: SimpleQueue[_Job | None] = SimpleQueue()
        # Out of the line and not yet done. The thread's own, but for their lengths.
        self._lines: tuple[deque[_Job], ...] = (deque(), deque(), deque())  # by rank
        self._passed = [0, 0, 0]  # by rank, the transactions that went before the first one in line
        self._apart = 0  # transactions to come in which nothing is joined
        self._is_ending = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def call(self, work: Callable[[], R], *, joins: bool = False, rank: Rank = Rank.USUAL) -> R:
        if self._line.qsize() + sum(map(len, self._lines)) >= LINE_MAX:
            raise LedgerUnavailable(f"{LINE_MAX} calls wait for the database already")
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
                with suppress(RuntimeError):  # the loop that asked is closed: nobody waits
                    done.loop.call_soon_threadsafe(_answer, done.future, answer, error)
            del jobs, done, answer, error  # an idle thread keeps nothing alive

    def _listen(self) -> None:
        """Take everything out of the line; where nothing is to be done, wait for something."""
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
        """The jobs of the next transaction: those that stand next to each other and join, or one that can wait."""
        rank = self._turn()
        line = self._lines[rank]
        jobs = [line.popleft()]
        if jobs[0].joins and self._joint is not None and (rank == Rank.QUICK or not self._apart):
            while line and line[0].joins and len(jobs) < JOINED_MAX:
                jobs.append(line.popleft())
        self._apart = APART if rank == Rank.QUICK else max(0, self._apart - 1)
        return jobs

    def _turn(self) -> Rank:
        """Whose turn it is: of those who wait, the first in rank, or who has been passed so often."""
        waiting = [rank for rank in Rank if self._lines[rank]]
        passed = [rank for rank in waiting if self._passed[rank] >= PASSED_MOST]
        turn = (passed or waiting)[0]
        for rank in waiting:
            self._passed[rank] = 0 if rank == turn else self._passed[rank] + 1
        return turn

    def _outcomes(self, jobs: list[_Job]) -> list[_Outcome]:
        if len(jobs) > 1:
            assert self._joint is not None
            with suppress(Exception):  # each is run alone, and meets its error there
                with self._joint():
                    answers = [job.work() for job in jobs]
                return [(answer, None) for answer in answers]
        return [_outcome(job.work) for job in jobs]


def _outcome(work: Callable[[], Any]) -> _Outcome:
    try:
        return work(), None
    except BaseException as error:
        return None, error


def _answer(future: asyncio.Future[Any], answer: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(answer)
    else:
        future.set_exception(error)
