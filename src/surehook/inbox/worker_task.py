"""The task of a worker, in which handlers run: it tells who cancels it.

A handler that cancels `asyncio.current_task()`, itself or by what it has begun, means its own work, and has failed. Whoever
else cancels the task means the worker: a pool that is stopped, a loop that ends, an application.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar, copy_context

# Tasks and callbacks that a handler begins have it as well.
_WITHIN: ContextVar[object] = ContextVar("surehook_worker_task", default=None)


class WorkerTask(asyncio.Task[None]):
    """`must_end`: it was cancelled by somebody else than what runs in it."""

    def __init__(self, work: Coroutine[object, None, None], loop: asyncio.AbstractEventLoop) -> None:
        self.must_end = False
        context = copy_context()
        context.run(_WITHIN.set, self)
        super().__init__(work, loop=loop, context=context)

    def cancel(self, msg: object = None) -> bool:
        if _WITHIN.get() is not self:
            self.must_end = True
        return super().cancel(msg)


def must_end() -> bool:
    """Tell whether the current task ends by a cancellation: any that is no worker's does."""
    task = asyncio.current_task()
    return not isinstance(task, WorkerTask) or task.must_end
