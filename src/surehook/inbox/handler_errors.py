"""Errors that handlers raise and that would be taken for somebody else's, marked as the handler's.

An error of a store that a handler asked by itself, another inbox perhaps, says nothing of the store under the worker.
`SystemExit`, and whatever else is no `Exception`, would end the worker; so would a coroutine's `CancelledError`, when it was not
the worker's task that was cancelled but something the coroutine waited for. Each is a failure of that handler, as others are.

A handler may also have the worker's own task cancelled, on a loop: it runs in that. Then the worker learns of it where its
transaction ends, asks whether it was told to end itself (worker_task.py), and takes it for the handler's failure if not.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from typing import TypeVar

from surehook.core.errors import causes
from surehook.inbox import tracebacks
from surehook.inbox.log_limits import OncePer
from surehook.inbox.safe_log import log
from surehook.inbox.sql.handler_commits import HandlerCommits
from surehook.inbox.sql.open_transactions import AsksWithin
from surehook.ports.inbox import LostLease, StoreError

T = TypeVar("T")

FAILURE_S = 60.0  # between two lines about the same hook
# Only the transaction that a handler is in says these. Who asks within a batch may do so in a transaction of its own.
_OWN = (AsksWithin, HandlerCommits, LostLease)

CANCELLED = (
    "hint: the handler, or what it began, cancelled the task that it runs in: asyncio.current_task() is the worker's there. "
    "asyncio.timeout(…) bounds what it waits for, and a task of its own may be cancelled"
)


class HandlerError(Exception):
    """Marks an error as the handler's."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {words(error)}")
        self.error = error


def marked(error: BaseException) -> HandlerError | None:
    """Mark an error of a handler's own code, if it would be taken for somebody else's; None: raise it as it is.

    Where its own transaction has failed, that says so again as soon as anything is written: the failure is not kept then.
    """
    if isinstance(error, StoreError):
        return None if isinstance(error, _OWN) else HandlerError(error)
    return None if isinstance(error, Exception) or _ends_the_worker(error) else HandlerError(error)


def cancellation_of(error: BaseException) -> asyncio.CancelledError | None:
    """Find the cancellation of the current task in an error, or in those that it came of: who is cancelled while it asks the
    database loses the transaction, and some drivers make an error of their own of it."""
    if isinstance(error, asyncio.CancelledError):
        return error
    if not _is_cancelled():
        return None
    return next((one for one in causes(error) if isinstance(one, asyncio.CancelledError)), None)


def uncancelled(error: asyncio.CancelledError) -> HandlerError:
    """Let the current task go on, which a handler has had cancelled; that as the handler's error."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()
    error.add_note(CANCELLED)
    return HandlerError(error)


class HookCalls:
    """Calls of an application's hooks. One that fails, by whatever it raises, is logged, and others go on: once a minute for
    each hook, as one that fails does so for every event. `boot` counts seconds."""

    def __init__(self, boot: Callable[[], float]) -> None:
        self._once = OncePer(boot, FAILURE_S)
        self._left_out: Counter[int] = Counter()

    def call(self, hook: Callable[[T], object], told: T, what: str) -> None:
        """Call a hook, which is kept for as long as this: its failures are counted by its identity."""
        try:
            hook(told)
        except BaseException as error:
            if not isinstance(error, Exception) and _ends_the_worker(error):
                raise
            if not self._once.may(id(hook)):
                self._left_out[id(hook)] += 1
                return
            left_out = self._left_out.pop(id(hook), 0)
            log.exception(
                "%s of the inbox failed, %s; it goes on%s", what, name_of(hook),
                f" ({left_out} failures of it before this one were not written)" if left_out else "",
            )  # fmt: skip


def name_of(function: Callable[..., object]) -> str:
    """Name a function of an application's, or an object that is called, by where it is defined."""
    while isinstance(function, partial):
        function = function.func
    named = function if inspect.isroutine(function) or isinstance(function, type) else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def words(error: BaseException) -> str:
    """Say what an error says. Its class is the application's own: what that raises here would end the worker."""
    try:
        return str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return "it cannot say what it is"


def told(error: BaseException, functions: Collection[Callable[..., object]]) -> str:
    """Write an error of these handlers with its traceback (tracebacks.py), or with as much of it as can be written."""
    try:
        return tracebacks.written(error, tracebacks.packages(functions))
    except KeyboardInterrupt:
        raise
    except BaseException as failure:
        cause = type(failure).__name__
    why = f"{type(error).__name__}: {words(error)}\n(its traceback cannot be written: {cause})\n"
    try:
        return "".join(traceback.format_tb(error.__traceback__)) + why
    except Exception:
        return why


def bare(error: Exception) -> BaseException:
    """Return the error that a handler raised, without our mark."""
    return error.error if isinstance(error, HandlerError) else error


def _ends_the_worker(error: BaseException) -> bool:
    """Tell whether it is meant for the handler's caller: Ctrl-C, a task that is cancelled, a generator that is closed."""
    if isinstance(error, KeyboardInterrupt):
        return threading.current_thread() is threading.main_thread()
    if isinstance(error, asyncio.CancelledError):
        return _is_cancelled()
    if isinstance(error, GeneratorExit):
        return not _is_called()
    return type(error).__name__ == "GreenletExit"


def _is_called() -> bool:
    """Tell whether a handler runs here, by a thread or a task; a coroutine that is closed has no task any more."""
    try:
        return asyncio.current_task() is not None
    except RuntimeError:  # a thread without a loop
        return True


def _is_cancelled() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # a thread without a loop
        return False
    return task is not None and task.cancelling() > 0
