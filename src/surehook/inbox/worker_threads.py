"""Workers in threads of this process: begun, watched, stopped within a stated time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait

from msgspec import Struct

from surehook.core import effects
from surehook.core.effects import Script
from surehook.inbox.calls import HandlerCalls
from surehook.inbox.pool import LET_GO_S, RELEASE_S, Job, WorkerPool, worker_of
from surehook.inbox.runs_in_hand import Takeover
from surehook.inbox.safe_log import log
from surehook.inbox.worker import Worker


class ThreadMember(Struct, eq=False):
    """A job, and the thread that it runs in."""

    job: Job
    thread: threading.Thread
    done: Future[None]

    @property
    def caller(self) -> int:
        return self.thread.ident or 0

    @property
    def is_done(self) -> bool:
        return self.done.done()

    @property
    def error(self) -> BaseException | None:
        return self.done.exception()


class WorkerThreads(WorkerPool[ThreadMember]):
    """The threads of an inbox. `run_worker` is what each of them does with its job."""

    def __init__(
        self,
        make: Callable[[Takeover | None], Worker],
        run_worker: Callable[[Script[None]], None],
        cut: Callable[[int], bool],
        has_ended: Callable[[int], bool],
        calls: HandlerCalls,
        *,
        stop_s: float,
    ) -> None:
        super().__init__(make, cut, has_ended, calls, grace_s=0.0, stop_s=stop_s)
        self._run_worker = run_worker
        self._numbers = 0

    def _begin(self, job: Job) -> ThreadMember:
        name = f"surehook-inbox-{self._numbers}"
        self._numbers += 1
        return ThreadMember(job, *self._thread(job.until_stopped(), name))

    def _thread(self, script: Script[None], name: str) -> tuple[threading.Thread, Future[None]]:
        done = Future[None]()

        def run() -> None:
            try:
                self._run_worker(script)
            # `look` logs it.
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(None)

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread, done

    def _begin_watch(self) -> threading.Event:
        stop = threading.Event()
        threading.Thread(
            target=effects.run, args=(self._watching(stop),), name="surehook-inbox-watch", daemon=True
        ).start()
        return stop

    def _wait(self, members: list[ThreadMember], seconds: float) -> object:
        return wait([member.done for member in members], timeout=seconds)

    def _leaving(self, late: list[ThreadMember]) -> Script[None]:
        takeovers, waiting = list[Takeover](), list[ThreadMember]()
        for member in late:
            call, worker = self.calls.of(member.caller), worker_of(member)
            if call is None or worker is None:
                waiting.append(member)
            elif (takeover := self._give_up(member, worker, call, is_late=False)) is not None:
                what = (
                    "to be done anew"
                    if takeover.error is None
                    else "and given up, as it has ended its transaction"
                )
                log.error("left behind, %s: %s", what, call.describe(self.calls.boot()))
                takeovers.append(takeover)
        yield self._wait(waiting, LET_GO_S)
        for member in waiting:
            if not member.is_done:
                log.error("%s was left behind, waiting for its database or a sender", member.thread.name)
                self._cut(member.caller)
        released = list[Future[None]]()
        try:
            for takeover in takeovers:
                released.append(self._thread(self._releasing(takeover), "surehook-inbox-release")[1])
        except RuntimeError as error:
            log.error("not all is given back, and what was claimed waits for its lease: %s", error)
        yield wait(released, timeout=RELEASE_S)
