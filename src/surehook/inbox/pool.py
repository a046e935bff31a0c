"""The workers of an inbox, whatever they run in: those that take too long with a handler, and those that replace them.

Nobody can stop a thread, nor a coroutine that goes on although it was cancelled. Such a worker is abandoned: its transaction is
ended under its hands, another one takes its place, and it ends when the handler comes back. So that a handler that never does
cannot fill the process, abandoned workers are replaced up to a bound; beyond it the process has to be restarted.

A worker that ends by an error is logged with it, and another one begins in its place. What it had in progress was counted when
it was claimed, and is due again when its lease lapses: it may be the reason.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from surehook.core.effects import Script
from surehook.inbox.calls import HandlerCall, HandlerCalls
from surehook.inbox.log_limits import OncePer
from surehook.inbox.result_policy import HandlerTimeout
from surehook.inbox.runs_in_hand import Takeover
from surehook.inbox.safe_log import log
from surehook.inbox.signals import Signal
from surehook.inbox.sql.handler_commits import HandlerEndedIt
from surehook.inbox.worker import Worker

LOOK_S = 0.25  # between two looks at running handlers
STUCK_MOST = 32  # workers that hang in handlers: a thread has eight megabytes of address space
# Between two looks that replace ended workers: one that ends at once must not keep the process busy.
BEGIN_S = 5.0
LET_GO_S = 1.0  # at the end, for those who waited for what a hanging handler held
RELEASE_S = 2.0  # for giving back, at the end, what was not done


class Job(Protocol):
    """Work without an end: a worker's, a receipt sender's, a queue mover's."""

    def stop(self) -> None: ...

    def until_stopped(self) -> Script[None]: ...


class Member(Protocol):
    """A job, and the thread or task that it runs in."""

    @property
    def job(self) -> Job: ...

    @property
    def caller(self) -> int:
        """Its thread or task, as `calls.HandlerCalls` knows it."""
        ...

    @property
    def is_done(self) -> bool: ...

    @property
    def error(self) -> BaseException | None:
        """The error that ended it, None if it ended by itself."""
        ...


def worker_of(member: Member) -> Worker | None:
    """The job of a member, if it calls handlers."""
    return member.job if isinstance(member.job, Worker) else None


M = TypeVar("M", bound=Member)


class WorkerPool(ABC, Generic[M]):
    """Running and abandoned workers.

    make     a worker, and what it begins with
    cut      ends the transaction of a thread or task from outside; whether that was possible
    grace_s  from the end of a handler's time until it is given up
    stop_s   how long `stopping` waits for handlers
    """

    def __init__(
        self,
        make: Callable[[Takeover | None], Worker],
        cut: Callable[[int], bool],
        has_ended: Callable[[int], bool],
        calls: HandlerCalls,
        *,
        grace_s: float,
        stop_s: float,
    ) -> None:
        self._make, self._cut, self._has_ended, self.calls = make, cut, has_ended, calls
        self._grace_s, self._stop_s = grace_s, stop_s
        self._may_begin = OncePer(calls.boot, BEGIN_S)
        self.members: list[M] = []
        self.abandoned: list[M] = []  # and still hanging
        self._owed: list[Job] = []  # for which there was no thread: begun at the next look
        self._changing = threading.Lock()
        self._watch_stop: Signal | None = None

    @abstractmethod
    def _begin(self, job: Job) -> M:
        """Run it in a thread or task of its own."""

    @abstractmethod
    def _begin_watch(self) -> Signal:
        """Run `_watching` in a thread or task of its own; the signal that ends it."""

    @abstractmethod
    def _wait(self, members: list[M], seconds: float) -> object:
        """Wait until all are done, or for so many seconds: an effect of `core/effects.py`."""

    @abstractmethod
    def _leaving(self, late: list[M]) -> Script[None]:
        """Abandon these at the end of the process, and give back what they had in progress."""

    @property
    def is_stuck(self) -> bool:
        """True if so many handlers hang that no more workers begin."""
        return len(self.abandoned) >= STUCK_MOST

    def start(self, workers: int, also: Sequence[Job]) -> None:
        with self._changing:
            for job in (*(self._make(None) for _ in range(workers)), *also):
                self.members.append(self._begin(job))
            if self._watch_stop is None:
                self._watch_stop = self._begin_watch()

    def stopping(self) -> Script[None]:
        """End the workers, each after the handler it is in; abandon what is not done after `stop_s` seconds."""
        with self._changing:
            members, self.members, self._owed = self.members, [], []
        if self._watch_stop is not None:
            self._watch_stop.set()
            self._watch_stop = None
        for member in members:
            member.job.stop()
        if members:
            yield self._wait(members, self._stop_s)
        late = [member for member in members if not member.is_done]
        if late:
            yield from self._leaving(late)

    def look(self) -> None:
        """Give up the handlers whose time is over, and replace workers that have ended."""
        with self._changing:
            self.abandoned = [member for member in self.abandoned if not member.is_done]
            self._begin_owed()
            now = self.calls.boot() - self._grace_s
            for member in list(self.members):
                call = self.calls.of(member.caller)
                worker = worker_of(member)
                if call is not None and call.until <= now and worker is not None:
                    self._replace(member, worker, call)
            ended = [member for member in self.members if member.is_done and member.error is not None]
            if ended and self._may_begin.may("again"):
                for member in ended:
                    job = member.job if worker_of(member) is None else self._make(None)
                    self.members.remove(member)
                    self._begin_or_owe(job)
                    log.error("a worker has ended, and another one begins", exc_info=member.error)

    def _begin_owed(self) -> None:
        while self._owed:
            try:
                self.members.append(self._begin(self._owed[0]))
            except RuntimeError:
                return
            del self._owed[0]

    def _begin_or_owe(self, job: Job) -> None:
        """Begin it now, or as soon as the operating system gives a thread for it."""
        try:
            self.members.append(self._begin(job))
        except RuntimeError as error:
            self._owed.append(job)
            log.error("no worker could take the place of another one, and it is tried again: %s", error)

    def _watching(self, stop: Signal) -> Script[None]:
        while not (yield stop.wait(LOOK_S)):
            try:
                self.look()
            except Exception:
                log.exception("handlers at work could not be looked after")

    def _replace(self, member: M, worker: Worker, call: HandlerCall) -> None:
        takeover = self._give_up(member, worker, call, is_late=True)
        if takeover is None:
            return
        self.members.remove(member)
        self.abandoned.append(member)
        if self.is_stuck:
            log.error(
                "%d handlers hang in this process, and no more workers begin: start it anew, and give what handlers wait "
                "for a timeout; the last: %s", len(self.abandoned), call.describe(self.calls.boot()),
            )  # fmt: skip
            return
        self._begin_or_owe(self._make(takeover))

    def _give_up(self, member: M, worker: Worker, call: HandlerCall, *, is_late: bool) -> Takeover | None:
        """Let nothing of the call be kept, and end its transaction; what is left of it to others. None if it has come back."""
        if not self.calls.give_up(call):
            return None
        worker.give_up()
        error: Exception | None = (
            HandlerTimeout.of(call.handler, call.until - call.began) if is_late else None
        )
        with suppress(Exception):  # it is closed
            # By itself: each further attempt would keep its effects once more.
            if self._has_ended(member.caller):
                error = HandlerEndedIt()
        try:
            was_cut = self._cut(member.caller)
        # The worker takes what it did for lost all the same, and others wait for their places.
        except Exception:
            log.exception("the transaction of %s could not be ended from outside", call.handler.name)
        else:
            if not was_cut:
                log.warning("the transaction of %s could not be ended from outside", call.handler.name)
        late = None if error is None else call.run
        return Takeover(worker.in_progress, worker.asleep.copy(), late, error)

    def _releasing(self, takeover: Takeover) -> Script[None]:
        """Give back what a worker left: by itself, since it may wait for a row that a statement in the server still has."""
        worker = self._make(takeover)
        worker.stop()
        yield from worker.until_stopped()
