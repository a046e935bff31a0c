"""Workers in tasks of an event loop.

A coroutine whose time is over is cancelled where it waits (result_policy.py); only one that goes on all the same is abandoned.
What blocks the loop, an ordinary function that takes long, blocks this as well: no task of the process goes on until it returns,
and then that is logged (slow_loop.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from surehook.core import effects
from surehook.core.effects import Script
from surehook.inbox import worker_task
from surehook.inbox.calls import HandlerCalls
from surehook.inbox.pool import LET_GO_S, RELEASE_S, Job, WorkerPool, worker_of
from surehook.inbox.runs_in_hand import Takeover
from surehook.inbox.safe_log import log
from surehook.inbox.signals import TaskEvent
from surehook.inbox.slow_loop import SlowLoopWatch
from surehook.inbox.worker import Worker

COME_S = 5.0  # from being cancelled until a coroutine is taken for one that does not end


class TaskMember(Struct, eq=False):
    """A job, and the task that it runs in."""

    job: Job
    task: asyncio.Task[None]

    @property
    def caller(self) -> int:
        return id(self.task)

    @property
    def is_done(self) -> bool:
        return self.task.done()

    @property
    def error(self) -> BaseException | None:
        return asyncio.CancelledError() if self.task.cancelled() else self.task.exception()


class WorkerTasks(WorkerPool[TaskMember]):
    """The tasks of an inbox."""

    def __init__(
        self,
        make: Callable[[Takeover | None], Worker],
        cut: Callable[[int], bool],
        has_ended: Callable[[int], bool],
        calls: HandlerCalls,
        *,
        stop_s: float,
    ) -> None:
        super().__init__(make, cut, has_ended, calls, grace_s=COME_S, stop_s=stop_s)
        self._slow_loop = SlowLoopWatch(calls)
        self._watch: asyncio.Task[None] | None = None  # a loop holds its tasks weakly

    def _begin(self, job: Job) -> TaskMember:
        work = self._slow_loop.timed(effects.run_async(job.until_stopped()))
        return TaskMember(job, worker_task.begin(work))

    def _begin_watch(self) -> TaskEvent:
        stop = TaskEvent()
        self._watch = asyncio.get_running_loop().create_task(effects.run_async(self._watching(stop)))
        return stop

    def _wait(self, members: list[TaskMember], seconds: float) -> object:
        return asyncio.wait({member.task for member in members}, timeout=seconds)

    def _leaving(self, late: list[TaskMember]) -> Script[None]:
        takeovers, waiting = list[Takeover](), list[TaskMember]()
        for member in late:
            call, worker = self.calls.of(member.caller), worker_of(member)
            if worker is not None:  # what it gives back itself meanwhile nobody gives back again
                takeovers.append(Takeover(worker.in_progress, worker.asleep.copy()))
            if call is None or worker is None:
                waiting.append(member)
                continue
            member.task.cancel()
            log.error("left behind, to be done anew: %s", call.describe(self.calls.boot()))
        yield self._wait(late, LET_GO_S)
        for member in waiting:
            if not member.is_done:
                log.error("a worker was left behind, waiting for its database or a sender")
                member.task.cancel()
        yield self._wait(late, RELEASE_S - LET_GO_S)
        for member in late:
            call, worker = self.calls.of(member.caller), worker_of(member)
            if call is not None and worker is not None:
                self._give_up(member, worker, call, is_late=False)
                log.error(
                    "%s goes on although it was cancelled: asyncio.run, or who else ends the loop, waits for it. Let it raise "
                    "CancelledError, if it is not SQLite that waits for another process", call.handler.name,
                )  # fmt: skip
        releasing = {asyncio.ensure_future(effects.run_async(self._releasing(one))) for one in takeovers}
        if releasing:
            yield asyncio.wait(releasing, timeout=RELEASE_S)
        for one in releasing:
            one.cancel()
