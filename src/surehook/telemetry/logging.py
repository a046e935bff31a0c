"""Facts as structured log lines on stderr: JSON when nobody watches, columns on a terminal."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog

QUIET = frozenset({"delivery.dead"})  # may come by the thousand: the durable notice is the record
WARNINGS = ("failed", "away", "buried", "disabled", "failure", "opened", "dead", "overdue", "blocked", "weak")


class LoggingTelemetry:
    """ports.Telemetry: one line a fact. Facts that may come by the thousand are lines at level debug."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger

    def fact(self, name: str, **fields: Any) -> None:
        told = {key: value for key, value in fields.items() if value is not None}
        if name in QUIET:
            self._logger.debug(name, **told)
        elif name.endswith(WARNINGS):
            self._logger.warning(name, **told)
        else:
            self._logger.info(name, **told)


def configure(level: str, form: str, **always: Any) -> LoggingTelemetry:
    """Set logging up for this process. `form`: `json`, `console`, or `auto` (console on a terminal). `always`: what
    every line says of where it comes from."""
    console = form == "console" or (form == "auto" and sys.stderr.isatty())
    renderer: Any = structlog.dev.ConsoleRenderer() if console else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    return LoggingTelemetry(structlog.get_logger(**always))
