"""Everything the process writes as dated log lines on stderr: JSON when nobody watches, columns on a terminal.

Facts of the engine, records of libraries (server, drivers, broker), Python's warnings, and errors that nobody waited
for in tasks, threads and destructors all pass `Lines`, which bounds them.
"""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any

from surehook.ports.clock import Clock
from surehook.telemetry.lines import Lines, Records

ERRORS = frozenset({"engine.failed", "loop.failed"})  # the process stops, or a part of it has
WARNINGS = (
    "failed", "away", "evicted", "disabled", "failure", "opened", "dead", "overdue", "blocked", "weak",
    "began", "reached", "refused", "sending_paused", "stalled", "unserved", "said",
)  # fmt: skip


class LoggingTelemetry:
    """ports.Telemetry: one line a fact. Of facts that come by the thousand, such as deaths, `Lines` writes a few a minute
    and counts the others."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def fact(self, name: str, **fields: object) -> None:
        told = {key: value for key, value in fields.items() if value is not None}
        self._lines.put(level_of(name), name, told, kind=name)

    def say(self, text: str) -> None:
        """Log a sentence about the processes of this program, for people who watch them."""
        self._lines.put(logging.WARNING, text, {}, kind="say")

    def flush(self) -> None:
        """Report what was suppressed, if nothing else was logged since."""
        self._lines.flush()


def level_of(name: str) -> int:
    if name in ERRORS:
        return logging.ERROR
    return logging.WARNING if name.endswith(WARNINGS) else logging.INFO


def configure(level: str, form: str, *, clock: Clock, **always: object) -> LoggingTelemetry:
    """Set logging up for this process. `form`: `json`, `console`, or `auto` (console on a terminal). `always`: fields of
    every line, which tell this process from others."""
    console = form == "console" or (form == "auto" and sys.stderr.isatty())
    least = logging.getLevelNamesMapping()[level.upper()]
    lines = Lines(sys.stderr, clock=clock, least=least, console=console, always=always)
    logging.basicConfig(handlers=[Records(lines)], level=logging.WARNING, force=True)
    logging.captureWarnings(True)
    _catch_unhandled()
    return LoggingTelemetry(lines)


def _catch_unhandled() -> None:
    """Errors that Python would print, undated, on stderr. (The loop hands those of tasks to the logger `asyncio`.)"""

    def of_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_type is not SystemExit:
            _report("thread", f"unhandled error in thread {args.thread and args.thread.name}", args.exc_value)

    def of_nobody(args: Any) -> None:
        _report("python", str(args.err_msg or "error that nobody could be told of"), args.exc_value)

    threading.excepthook = of_thread
    sys.unraisablehook = of_nobody


def _report(logger: str, text: str, error: BaseException | None) -> None:
    logging.getLogger(logger).error(text, exc_info=error)
