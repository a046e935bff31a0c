"""Progress for a person who waits: nothing under two seconds, then how long it has been."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SILENT_S = 2.0  # shorter work needs no message
LINE_EVERY_S = 5.0  # where there is no terminal to redraw
REDRAW_S = 0.25


class Busy:
    """`text` may be changed while the work goes on."""

    def __init__(self, text: str) -> None:
        self.text = text


@contextmanager
def busy(text: str, *, silent_s: float = SILENT_S) -> Iterator[Busy]:
    """Say on stderr that the block is still at work, and for how long."""
    state, ended = Busy(text), threading.Event()
    teller = threading.Thread(target=_tell, args=(state, ended, silent_s), daemon=True)
    teller.start()
    try:
        yield state
    finally:
        ended.set()
        teller.join()


def _tell(state: Busy, ended: threading.Event, silent_s: float) -> None:
    began, redraws = time.monotonic(), sys.stderr.isatty()
    pause = silent_s
    while not ended.wait(pause):
        line = f"{state.text}, {time.monotonic() - began:.0f} s"
        sys.stderr.write(f"\r\x1b[2K{line}" if redraws else f"{line}\n")
        sys.stderr.flush()
        pause = REDRAW_S if redraws else LINE_EVERY_S
    if redraws and time.monotonic() - began > silent_s:
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()
