"""Ends a process whose loop is stuck in something that holds the interpreter.

While native code holds the interpreter, no Python runs: no thread, no handler of SIGTERM. So the kernel does it, with a
timer of the processor time of this process that the loop keeps resetting. Its signal writes the stacks of all threads to
stderr and ends the process. Processor time, since a process that was stopped or slept is not stuck.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import signal
from collections.abc import Iterator

STUCK_CPU_S = 30.0  # a loop that was late by so much has lost every lease it had
WIND_S = 5.0


@contextlib.contextmanager
def watched(stuck_s: float = STUCK_CPU_S, wind_s: float = WIND_S) -> Iterator[None]:
    """End the process if its loop does not come round once in `stuck_s` of processor time."""
    if signal.getsignal(signal.SIGPROF) is not signal.SIG_DFL:  # somebody measures this process by it
        yield
        return
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle | None = None

    def wind() -> None:
        nonlocal timer
        signal.setitimer(signal.ITIMER_PROF, stuck_s)
        timer = loop.call_later(wind_s, wind)

    # Without stderr nothing is written.
    with contextlib.suppress(OSError, ValueError, RuntimeError, AttributeError):
        faulthandler.register(signal.SIGPROF, chain=True)
    wind()
    try:
        yield
    finally:
        assert timer is not None
        timer.cancel()
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.unregister(signal.SIGPROF)
