"""The task of a worker, in which handlers run: it tells who cancels it.

A handler that cancels `asyncio.current_task()`, itself or by what it has begun, means its own work, and has failed. Whoever
else cancels the task means the worker: a pool that is stopped, a loop that ends, an application.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import TypeAlias

Work: TypeAlias = Coroutine[object, None, None]

# Tasks and callbacks that a handler begins have it as well.
_WITHIN: ContextVar[object] = ContextVar("surehook_worker_task", default=None)


class WorkerTask(asyncio.Task[None]):
    """`must_end`: it was cancelled by somebody else than what runs in it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, work: Work, *, context: Context | None = None, **rest: object
    ) -> None:
        """As a loop calls a task factory; `rest` is what later versions of Python hand over."""
        self.must_end = False
        own = copy_context() if context is None else context.copy()
        own.run(_WITHIN.set, self)
        super().__init__(work, loop=loop, context=own, **rest)  # type: ignore[arg-type]  # Python's own

    def cancel(self, msg: object = None) -> bool:
        if _WITHIN.get() is not self:
            self.must_end = True
        return super().cancel(msg)


def begin(work: Work) -> asyncio.Task[None]:
    """Begin the task of a worker as the running loop begins its tasks: one may keep account of them."""
    loop = asyncio.get_running_loop()
    factory = loop.get_task_factory()
    loop.set_task_factory(WorkerTask)  # type: ignore[arg-type]  # for coroutines without a result
    try:
        return loop.create_task(work)
    finally:
        loop.set_task_factory(factory)


def was_cancelled() -> bool:
    """Tell whether somebody has cancelled the current task, if it is a worker's; a thread has none."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    return isinstance(task, WorkerTask) and task.must_end


def must_end() -> bool:
    """Tell whether the current task ends by a cancellation: any that is no worker's does."""
    task = asyncio.current_task()
    return not isinstance(task, WorkerTask) or task.must_end
