"""Many seeds: which failed, and which faults never fired.

A check that no fault ever came near proves nothing, so a campaign of a hundred worlds or more also fails if
one of the faults and rare branches in `MUST_FIRE` was never seen.

Worlds know nothing of each other, so `jobs` processes play them; what comes of it is told in the order of seeds, and
is the same for any number of them.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from lab.sim.run import TAIL_LINES, Report, Storage, run

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

ENOUGH = 50  # worlds after which every fault should have been met
HANDED = 4  # worlds that a process is given at a time
GARBAGE_EVERY = 50_000  # objects: a world makes them by the thousand, and is gone after a second
MUST_FIRE = (
    "accepted", "refused", "request", "died", "blow-kill", "blow-power", "blow-ledger_death", "blow-stop", "blow-freeze",
    "blow-step", "stall", "fault", "mood", "dns", "order-pause", "order-delete", "order-rotate", "order-resend",
    "order-cancel", "order-replay", "fact-nodes.evicted", "fact-breaker.opened", "fact-breaker.closed",
    "fact-endpoint.failure", "fact-delivery.dead", "fact-delivery.overdue",
)  # fmt: skip


# With an inbox at the other end: both halves crash, at every kind of moment, and people and middleboxes do their part.
MUST_FIRE_INBOX = (
    "accepted", "request", "sender-crash", "inbox-crash", "inbox-kill", "inbox-power", "inbox-death", "inbox-stop",
    "inbox-freeze", "inbox-step", "inbox-stall", "inbox-away", "inbox-contended", "inbox-unknown", "inbox-death-handler",
    "inbox-death-commit-persist", "inbox-death-answer-persist", "inbox-death-commit-process", "inbox-death-answer-process",
    "inbox-death-answer-claim", "inbox-rotation", "inbox-echo", "inbox-forgery", "inbox-replay", "inbox-finalize",
    "inbox-reject", "inbox-release", "inbox-undo", "order-replay", "order-resend",
)  # fmt: skip


class Campaign(Struct):
    """Result of a campaign. `never` are faults that should have fired and did not."""

    ledger: str
    runs: int
    failed: list[Report]
    counts: dict[str, int]
    never: tuple[str, ...]
    virtual_s: float
    took_s: float
    inbox: bool = False
    events: int = 0
    applied: int = 0  # effects of the receivers' handlers

    @property
    def held(self) -> bool:
        return not self.failed and not self.never


def campaign(
    first: int,
    seeds: int,
    *,
    ledger: Storage = "memory",
    nodes: int = 1,
    broker: bool = False,
    inbox: bool = False,
    failures_max: int = 5,
    tail: int = TAIL_LINES,
    jobs: int = 1,
    told: Callable[[Report], None] = lambda report: None,
) -> Campaign:
    """Run `seeds` worlds from seed `first` on, in `jobs` processes; stop after `failures_max` findings. `told` hears of
    each run."""
    counts: Counter[str] = Counter()
    failed: list[Report] = []
    began, virtual_s, runs, events, applied = time.perf_counter(), 0.0, 0, 0, 0
    play = partial(run, ledger=ledger, nodes=nodes, broker=broker, inbox=inbox, tail=tail)
    with closing(_played(play, range(first, first + seeds), jobs)) as reports:
        for report in reports:
            runs, events, applied = runs + 1, events + report.events, applied + report.applied
            counts.update(report.counts)
            virtual_s += report.virtual_s
            told(report)
            if report.finding is not None:
                failed.append(report)
                if len(failed) >= failures_max:
                    break
    expected = MUST_FIRE_INBOX if inbox else MUST_FIRE
    never = tuple(name for name in expected if not counts[name]) if runs >= ENOUGH else ()
    return Campaign(
        ledger=ledger,
        runs=runs,
        failed=failed,
        counts=dict(sorted(counts.items())),
        never=never,
        virtual_s=round(virtual_s, 1),
        took_s=round(time.perf_counter() - began, 2),
        inbox=inbox,
        events=events,
        applied=applied,
    )


def cores() -> int:
    """Number of processes that find a core of their own."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _played(play: Callable[[int], Report], seeds: Iterable[int], jobs: int) -> Generator[Report, None, None]:
    """The reports of `seeds` in their order."""
    if jobs == 1:
        yield from map(play, seeds)
        return
    from concurrent.futures import ProcessPoolExecutor  # dear to import, and needed by campaigns only
    from multiprocessing import get_context

    context = get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin_process, initargs=(theirs,))
    try:
        with _deaf():
            reports = pool.map(play, seeds, chunksize=HANDED)  # which starts the processes
        yield from reports
    finally:
        ours.close()
        pool.shutdown(cancel_futures=True)


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes begun meanwhile never hear Ctrl-C, which a terminal sends to all of them: it is for their parent, which hears
    it when this is over, and with which they end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_process(ours: Connection) -> None:
    """Look for garbage seldom: what is imported stays, and worlds leave little behind. `ours` ends when nobody waits for
    worlds any more."""
    threading.Thread(target=_end_with, args=(ours,), daemon=True).start()
    gc.freeze()
    gc.set_threshold(GARBAGE_EVERY)


def _end_with(pipe: Connection) -> None:
    """The other end is our parent's alone, and the kernel closes it however that ends, `kill -9` included. A world in hand
    is given up: it asks nobody, and may go on for minutes."""
    pipe.poll(None)
    os._exit(1)
