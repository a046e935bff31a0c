"""Where work on a connection runs: on the calling thread, or on a thread of its own.

`Inline` never lets another task run, so a simulated loop orders everything. `Thread` takes jobs one at
a time, in the order they were asked for, and hands results to the loop that asked; a caller that is
cancelled meanwhile misses the result, not the effect. Its line holds at most `LINE_MAX` jobs.

Jobs that may be joined and stand next to each other in the line share one transaction, and so one wait
for the disk: under load an accept and a record nearly always do. Where one of them fails, all are rolled
back and each is run alone, so a job must leave nothing behind but rows.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol, TypeVar

from surehook.core.errors import LedgerUnavailable

R = TypeVar("R")
# Jobs in line: the loops of the engine have one or two each, so more than this are callers of the API
# that a slow disk keeps waiting, and they are told so.
LINE_MAX = 1_000
# Jobs in one transaction: one each of accept, record, claim and park, so that none waits for many others.
JOINED_MAX = 4


class _Job(NamedTuple):
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    work: Callable[[], Any]
    joins: bool


_Outcome = tuple[Any, BaseException | None]


class Worker(Protocol):
    async def call(self, work: Callable[[], R], *, joins: bool = False) -> R: ...

    def dismiss(self) -> None:
        """Take no more work; what is under way ends by itself."""
        ...

    def stop(self) -> None:
        """Take no more work and wait for what is under way."""
        ...


class Inline:
    async def call(self, work: Callable[[], R], *, joins: bool = False) -> R:
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
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def call(self, work: Callable[[], R], *, joins: bool = False) -> R:
        if self._line.qsize() >= LINE_MAX:
            raise LedgerUnavailable(f"{LINE_MAX} calls wait for the database already")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._line.put(_Job(loop, future, work, joins))
        return await future

    def dismiss(self) -> None:
        self._line.put(None)

    def stop(self) -> None:
        self.dismiss()
        self._thread.join()

    def _work(self) -> None:
        taken: deque[_Job | None] = deque()  # out of the line, not yet done
        while True:
            job = taken.popleft() if taken else self._line.get()
            if job is None:
                return
            jobs = [job]
            if job.joins and self._joint is not None:
                jobs += self._neighbours(taken)
            for done, (answer, error) in zip(jobs, self._outcomes(jobs), strict=True):
                with suppress(RuntimeError):  # the loop that asked is closed: nobody waits
                    done.loop.call_soon_threadsafe(_answer, done.future, answer, error)
            del job, jobs, done, answer, error  # an idle thread keeps nothing alive

    def _neighbours(self, taken: deque[_Job | None]) -> list[_Job]:
        """The jobs next in line that join, as many as there are by now; one that does not stays in `taken`."""
        found: list[_Job] = []
        while len(found) < JOINED_MAX - 1:
            try:
                job = taken.popleft() if taken else self._line.get_nowait()
            except Empty:
                break
            if job is None or not job.joins:
                taken.appendleft(job)
                break
            found.append(job)
        return found

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
