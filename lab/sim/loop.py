"""An asyncio loop in which time is a number, chance is a seed, and a process can die between two steps.

Nothing here waits, opens a socket or starts a thread. When no callback is ready, the clock jumps to the
next timer. Which callback runs next is drawn from the seed, with one promise of asyncio kept: callbacks
that one step scheduled run in the order in which it scheduled them (they form a *strand*). Strands of
different steps are mixed freely, because on a real loop the order of readiness of sockets and timers is
nobody's promise.

Every callback belongs to the process whose context it was scheduled in (`PROCESS`, a context variable, so
tasks and timers inherit it without knowing). A dead process's callbacks are never run again, and those of
a frozen one wait until it thaws. CPython runs the `finally` blocks of a coroutine that is thrown away;
`evict` does that at once, in one place, and drops whatever those blocks try to schedule. What they do
through an adapter the adapter must drop by asking `process.alive`.

This leans on loop internals (`_run_once`, `_ready`, `Handle._run`) that are the same on CPython 3.11 to
3.13; `tests/sim/test_loop.py` holds them. Most of a world's time is spent between its steps, so they are taken in one
place, without a call for each part of them.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import warnings
from asyncio import events
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar
from weakref import WeakSet, WeakValueDictionary

T = TypeVar("T")

# More callbacks than this without time moving is a busy loop: the largest honest burst (a start-up over
# a full ledger with every receiver answering in the same instant) stays under 50,000.
STEPS_WITHOUT_TIME_MAX = 400_000
# One jump in eight is late by up to this much, as real loops are; timers that lie closer together than
# that then fire in seeded order. Never early.
LATENESS_S_MAX = 0.004


class SimulationError(AssertionError):
    """The world cannot go on: the loop was asked for something that has no place in it, or nothing can happen."""


class Deadlock(SimulationError):
    """Nothing is ready, no timer is set, and the main task is not done."""


class Livelock(SimulationError):
    """Callbacks go on for ever without time moving."""


class ThreadRefused(SimulationError):
    """A thread was asked for; it would escape the seed."""


class ProcessDied(Exception):
    """Answer to somebody outside who was waiting for a process that is gone."""


class Process:
    """One simulated operating-system process: what dies together.

    `steps` counts its callbacks; `deadline_step`, when set, is the step before which it is killed.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.frozen = False
        self.thawed_at = float("-inf")  # on the loop: it has run on since then, unless it is frozen
        self.steps = 0
        self.deadline_step: int | None = None
        self.wall: Callable[[], int] = lambda: 0  # what its own wall clock shows, Unix milliseconds
        self.at_death: list[Callable[[], None]] = []  # called once, by `kill`, in order
        self.held: list[events.Handle] = []  # callbacks that came due while frozen
        # By order of creation.
        self.tasks: WeakValueDictionary[int, asyncio.Task[Any]] = WeakValueDictionary()


PROCESS: ContextVar[Process | None] = ContextVar("surehook_sim_process", default=None)


class _Instant(float):
    """Due time of a timer. A heap compares plain numbers, many times over for each timer."""

    __slots__ = ("timer",)
    timer: events.TimerHandle


# What one step scheduled: mostly one callback.
_Strand = events.Handle | deque[events.Handle]


class SimLoop(asyncio.BaseEventLoop):
    """The loop. `time()` is virtual seconds since `start`."""

    # Internals of BaseEventLoop that this class works with.
    _ready: deque[events.Handle]
    _stopping: bool

    def __init__(self, seed: int | str = 0, *, start: float = 1_000.0, inline_executor: bool = False) -> None:
        super().__init__()
        self.steps = 0
        self.failures: list[dict[str, Any]] = []  # unhandled errors of living processes, in order
        self.on_step: Callable[[events.Handle, Process | None], None] | None = None
        self._now = start
        self._chance = random.Random(f"{seed}/loop")
        self._strands: list[_Strand] = []
        self._timers: list[_Instant] = []  # a heap
        self._still = 0
        self._inline_executor = inline_executor
        self._evicting = False
        self._graves: list[Process] = []
        self._current: Process | None = None
        self._tasks: WeakValueDictionary[int, asyncio.Task[Any]] = WeakValueDictionary()
        self._evicted: WeakSet[asyncio.Task[Any]] = WeakSet()
        self._spawned = 0
        self.set_exception_handler(_remember)

    # -- time ------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        """Run callbacks until the loop is to stop, and move time whenever none is ready."""
        ready, strands, draw = self._ready, self._strands, self._chance.getrandbits
        if ready:
            self._collect()
        while True:
            if not strands:
                if not self._timers and not self._stopping:
                    raise Deadlock(f"nothing can happen any more at {self._now:.3f} s: {self._waiting()}")
                self._jump()
            if strands:
                at, count = 0, len(strands)
                if count > 1:
                    at = count
                    while at >= count:
                        at = draw(count.bit_length())
                strand = strands[at]
                if isinstance(strand, deque):
                    handle = strand.popleft()
                    is_over = not strand
                else:
                    handle, is_over = strand, True
                if is_over:
                    strands[at] = strands[-1]
                    strands.pop()
                self._step(handle)
                if ready:
                    self._collect()
                while self._graves:
                    self._evict(self._graves.pop())
            if self._stopping:
                return

    def _collect(self) -> None:
        """Make one strand of what the last step scheduled."""
        ready = self._ready
        self._strands.append(ready[0] if len(ready) == 1 else deque(ready))
        ready.clear()

    def _jump(self) -> None:
        timers = self._timers
        while timers and timers[0].timer._cancelled:
            heapq.heappop(timers)
        if not timers:
            return
        if timers[0] > self._now:
            self._now = float(timers[0])
            self._still = 0
            if self._chance.random() < 0.125:
                self._now += self._chance.random() * LATENESS_S_MAX
        while timers and timers[0] <= self._now:
            timer = heapq.heappop(timers).timer
            if not timer._cancelled:
                self._strands.append(timer)

    # -- steps -----------------------------------------------------------------------------------

    def _step(self, handle: events.Handle) -> None:
        if handle._cancelled:
            return
        process: Process | None = handle._context.get(PROCESS)  # type: ignore[attr-defined]
        if process is not None:
            if process.alive and process.steps == process.deadline_step:
                self.kill(process)
            if not process.alive:
                return
            if process.frozen:
                process.held.append(handle)
                return
            process.steps += 1
        self.steps += 1
        self._still += 1
        if self._still > STEPS_WITHOUT_TIME_MAX:
            raise Livelock(
                f"{self._still} callbacks at {self._now:.3f} s without time moving; now {handle!r}"
            )
        if self.on_step is not None:
            self.on_step(handle, process)
        self._current = process
        try:
            handle._run()
        finally:
            self._current = None

    # -- processes -------------------------------------------------------------------------------

    def kill(self, process: Process) -> None:
        """`kill -9`: from this moment no callback of the process runs. May be called from inside one of its steps."""
        if not process.alive:
            return
        process.alive = False
        for tell in process.at_death:
            tell()
        process.at_death.clear()
        self._graves.append(process)

    def freeze(self, process: Process) -> None:
        """SIGSTOP: its callbacks wait, the world goes on."""
        process.frozen = True

    def thaw(self, process: Process) -> None:
        """SIGCONT: what came due meanwhile is ready now, each callback a strand of its own."""
        if process.frozen:
            process.frozen, process.thawed_at = False, self._now
        self._strands.extend(deque((handle,)) for handle in process.held)
        process.held.clear()

    def spawn(
        self, process: Process | None, coro: Coroutine[object, None, T], *, name: str | None = None
    ) -> asyncio.Task[T]:
        """A task that belongs to `process`, whoever asks."""
        task: asyncio.Task[T] = self.create_task(coro, name=name, context=context_of(process))
        return task

    async def call(self, process: Process, make: Callable[[], Awaitable[T]]) -> T:
        """Run `make()` inside `process` and hand its result out; ProcessDied if the process goes first."""
        if not process.alive:
            raise ProcessDied(process.name)
        outside: asyncio.Future[T] = self.create_future()

        def died() -> None:
            if not outside.done():
                outside.set_exception(ProcessDied(process.name))

        async def inside() -> None:
            try:
                result = await make()
            except Exception as error:
                if process.alive and not outside.done():
                    outside.set_exception(error)
            else:
                if process.alive and not outside.done():
                    outside.set_result(result)

        process.at_death.append(died)
        task = self.spawn(process, inside())
        try:
            return await outside
        finally:
            if process.alive:
                process.at_death.remove(died)
                if not task.done():
                    task.cancel()

    def _evict(self, process: Process) -> None:
        """Throw the dead process's coroutines away now, so that their `finally` blocks run here and touch nothing."""
        self._evicting = True
        try:
            for _, task in sorted(process.tasks.items()):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                self._evicted.add(task)
                heard = task._fut_waiter  # type: ignore[attr-defined]
                if heard is not None and heard.done() and not heard.cancelled():
                    heard.exception()  # the answer came, and the process died before it was read
                coro = task.get_coro()
                # A dead process's clean-up may fail in any way it likes, and what it had not begun is never awaited.
                with suppress(BaseException), warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)
                    coro.close()
            process.held.clear()
        finally:
            self._evicting = False
            self._ready.clear()

    # -- asyncio ---------------------------------------------------------------------------------

    def create_task(  # type: ignore[override]
        self, coro: Any, *, name: str | None = None, context: Context | None = None, **rest: Any
    ) -> Any:
        process = PROCESS.get() if context is None else context.get(PROCESS)
        task = super().create_task(coro, name=name, context=context, **rest)
        self._spawned += 1
        self._tasks[self._spawned] = task
        if self._evicting:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        if process is not None:
            process.tasks[self._spawned] = task
        return task

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> events.TimerHandle:
        timer = events.TimerHandle(when, callback, args, self, context)
        if self._evicting:
            timer.cancel()
        else:
            instant = _Instant(when)
            instant.timer = timer
            heapq.heappush(self._timers, instant)
        return timer

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        if not self._inline_executor:
            raise ThreadRefused(
                f"{func!r} was sent to a thread; simulated code must run it inline or go through a port"
            )
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _write_to_self(self) -> None:
        """Called by `call_soon_threadsafe`; there is nobody to wake."""

    def _process_events(self, event_list: Any) -> None:
        """Called by nobody: there is no selector."""

    def _waiting(self) -> str:
        names = sorted(task.get_name() for task in asyncio.all_tasks(self) if not task.done())
        return f"{len(names)} tasks wait, among them {', '.join(names[:10])}" if names else "no task is left"


def context_of(process: Process | None) -> Context:
    """A context whose callbacks, tasks and timers belong to `process` (None: to the world itself)."""
    context = copy_context()
    context.run(PROCESS.set, process)
    return context


def _remember(loop: asyncio.AbstractEventLoop, failure: dict[str, Any]) -> None:
    """Unhandled errors are findings, unless a dead process's clean-up made them."""
    assert isinstance(loop, SimLoop)
    process = loop._current
    culprit = failure.get("task") or failure.get("future")
    if loop._evicting or (process is not None and not process.alive) or culprit in loop._evicted:
        return
    loop.failures.append(failure)


def run(main: Coroutine[object, None, T], *, seed: int | str = 0, loop: SimLoop | None = None) -> T:
    """Run `main` to its end in a simulated world and close the loop. Like `asyncio.run`, without the waiting."""
    loop = loop or SimLoop(seed)
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main)
    finally:
        _close(loop)
        asyncio.set_event_loop(None)


def _close(loop: SimLoop) -> None:
    """Cancel what is left, in order of creation, and throw away what refuses to end."""
    try:
        for _ in range(3):  # a cancelled task may start another: three rounds end every honest one
            left = [
                task
                for _, task in sorted(loop._tasks.items())
                if not task.done() and task not in loop._evicted
            ]
            if not left:
                break
            for task in left:
                task.cancel()
            loop._still = 0
            loop.run_until_complete(_quietly(left))
    except (SimulationError, TimeoutError):
        pass
    finally:
        rest = Process("what refused to end")
        rest.tasks.update({number: task for number, task in loop._tasks.items() if not task.done()})
        loop._evict(rest)
        loop.close()


async def _quietly(tasks: list[asyncio.Task[Any]]) -> None:
    async with asyncio.timeout(60):
        await asyncio.gather(*tasks, return_exceptions=True)
