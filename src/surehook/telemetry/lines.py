"""Log lines: dated, of one form, and only a few of a kind in any minute, whatever goes on.

What is over `LINES_PER_MIN` is counted and told by one line when the minute is over. A kind that was over is only counted in
the next minute too, and so on until one in which it was not. So whatever goes on is shown when it begins and costs a line a
minute from then on, and nothing is dropped without a word. Writing never raises: a log that cannot be written must not stop
a delivery.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import TextIO

from structlog.dev import ConsoleRenderer
from structlog.processors import JSONRenderer

from surehook.core.instants import render
from surehook.ports.clock import Clock

# Of one kind: a script's changes of the configuration are in it. One that comes and goes costs 20 MB a day at most.
LINES_PER_MIN = 100
TEXT_CHARS = 4_000  # of one text in a line: a library may log a whole packet
SUPPRESSED = "log.suppressed"


class Lines:
    """Writes a line for each event, in JSON or (`console`) in columns. Safe to call from any thread.

    least   the level below which nothing is written
    always  what every line says of where it comes from
    """

    def __init__(
        self, stream: TextIO, *, clock: Clock, least: int, console: bool, always: Mapping[str, object]
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._least = least
        colours = console and stream.isatty() and not os.environ.get("NO_COLOR")
        self._render: Callable[..., object] = (
            ConsoleRenderer(colors=colours, timestamp_key="at") if console else JSONRenderer()
        )
        self._always = dict(always)
        self._lock = threading.RLock()  # writing may warn, and a warning is a line
        self._minute = -1
        self._counts: dict[str, int] = {}  # by kind, in this minute
        self._going_on: set[str] = set()  # kinds that had more than their share of the minute before

    def put(self, level: int, event: str, fields: Mapping[str, object], *, kind: str) -> None:
        """Write one line, unless its kind has had its share of this minute, or had more in the one before."""
        if level < self._least:
            return
        with self._lock:
            self.flush()
            count = self._counts[kind] = self._counts.get(kind, 0) + 1
            if count <= self._share(kind):
                self._write(level, event, fields)

    def flush(self) -> None:
        """Tell what was suppressed in a minute that is over. Called with every line and once a second."""
        minute = int(self._clock.boot() / 60)
        with self._lock:
            if minute != self._minute:
                self._minute = minute
                self.sum_up()

    def sum_up(self) -> None:
        """Tell what was suppressed since this was done last, and begin to count anew."""
        with self._lock:
            counts, self._counts = self._counts, {}
            for kind, count in counts.items():
                if count > self._share(kind):
                    fields = {"kind": kind, "lines": count - self._share(kind)}
                    self._write(logging.WARNING, SUPPRESSED, fields)
            self._going_on = {kind for kind, count in counts.items() if count > LINES_PER_MIN}

    def _share(self, kind: str) -> int:
        return 0 if kind in self._going_on else LINES_PER_MIN

    def _write(self, level: int, event: str, fields: Mapping[str, object]) -> None:
        line: dict[str, object] = {
            "at": render(self._clock.now()),
            "level": logging.getLevelName(level).lower(),
            "event": _cut(event),
            **self._always,
        }
        line.update((key, _cut(value)) for key, value in fields.items())
        with contextlib.suppress(OSError, ValueError):  # a closed pipe, a full disk, a closed stream
            self._stream.write(f"{self._render(None, '', line)}\n")
            self._stream.flush()


class Records(logging.Handler):
    """Writes logs, warnings and unhandled errors of libraries as the same lines."""

    def __init__(self, lines: Lines) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        try:
            event = record.getMessage()
        except Exception:  # a library whose arguments do not fit its text
            event = str(record.msg)
        fields: dict[str, object] = {"logger": record.name}
        if record.exc_info and record.exc_info[1] is not None:
            fields["exception"] = "".join(traceback.format_exception(record.exc_info[1]))
        self._lines.put(record.levelno, event, fields, kind=f"{record.name} {record.levelname.lower()}")

    def flush(self) -> None:
        """Called by `logging` when the process ends."""
        self._lines.sum_up()


def _cut(value: object) -> object:
    """A value of bounded length: the head and the tail of a long text, since a trace tells most at its end."""
    if not isinstance(value, str) or len(value) <= TEXT_CHARS:
        return value
    half = TEXT_CHARS // 2
    return f"{value[:half]} … {len(value) - TEXT_CHARS} characters … {value[-half:]}"
