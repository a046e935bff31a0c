"""One form of log line for everything, and few of a kind in a minute."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from typing import Any

import pytest

from surehook.telemetry.lines import LINES_PER_MIN, TEXT_CHARS, Lines, Records
from surehook.telemetry.logging import LoggingTelemetry, level_of


class StillClock:
    """Moves when it is moved."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def now(self) -> int:
        return int(self.seconds * 1000)

    def boot(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None: ...


class Log:
    """Lines into memory."""

    def __init__(self, least: int = logging.INFO, **always: Any) -> None:
        self.clock = StillClock()
        self.stream = io.StringIO()
        self.lines = Lines(self.stream, clock=self.clock, least=least, console=False, always=always)
        self.telemetry = LoggingTelemetry(self.lines)

    @property
    def written(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


@pytest.fixture
def library() -> Any:
    """A logger of somebody else's."""
    logger = logging.Logger("somebody.else")
    yield logger
    logger.handlers.clear()


def test_a_fact_is_a_dated_line_with_a_level() -> None:
    log = Log(process=3)
    log.telemetry.fact("breaker.opened", tenant="acme", endpoint=None)

    assert log.written == [
        {"at": "1970-01-01T00:16:40.000Z", "level": "warning", "event": "breaker.opened", "process": 3, "tenant": "acme"}
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("engine.started", logging.INFO),
        ("engine.failed", logging.ERROR),
        ("loop.failed", logging.ERROR),
        ("ledger.away", logging.WARNING),
        ("ledger.back", logging.INFO),
        ("disk.floor_reached", logging.WARNING),
        ("disk.floor_left", logging.INFO),
        ("disk.sending_paused", logging.WARNING),
        ("key.refused", logging.WARNING),
        ("delivery.dead", logging.WARNING),
        ("delivery.dropped", logging.INFO),
    ],
)
def test_a_fact_is_as_loud_as_what_it_says(name: str, level: int) -> None:
    assert level_of(name) == level


def test_what_a_library_logs_has_the_same_form(library: logging.Logger) -> None:
    log = Log()
    library.addHandler(Records(log.lines))
    try:
        raise ValueError("no")
    except ValueError:
        library.exception("could not %s", "do it")

    (line,) = log.written
    assert (line["event"], line["level"], line["logger"]) == ("could not do it", "error", "somebody.else")
    assert line["exception"].startswith("Traceback") and line["exception"].endswith("ValueError: no\n")


def test_a_record_whose_arguments_do_not_fit_is_still_a_line(library: logging.Logger) -> None:
    log = Log()
    library.addHandler(Records(log.lines))
    library.warning("%d of %d", "one")

    assert log.written[0]["event"] == "%d of %d"


def test_of_one_kind_a_minute_has_a_few_lines_and_says_how_many_more_there_were(
    library: logging.Logger,
) -> None:
    log = Log()
    library.addHandler(Records(log.lines))
    for _ in range(500):
        library.warning("Invalid HTTP request received.")
    log.telemetry.fact("ledger.away")
    assert [line["event"] for line in log.written].count("Invalid HTTP request received.") == LINES_PER_MIN
    assert log.written[-1]["event"] == "ledger.away"  # another kind is not kept back

    log.clock.seconds += 60
    log.telemetry.flush()
    assert log.written[-1] | {"at": ""} == {
        "at": "", "level": "warning", "event": "log.suppressed", "kind": "somebody.else warning",
        "lines": 500 - LINES_PER_MIN,
    }  # fmt: skip
    log.telemetry.flush()
    assert [line["event"] for line in log.written].count("log.suppressed") == 1


def test_a_kind_that_goes_on_costs_a_line_a_minute_until_it_was_quiet_for_one() -> None:
    log = Log()

    def minute(count: int) -> list[dict[str, Any]]:
        """What a minute with so many lines writes, its end included."""
        before = len(log.written)
        for _ in range(count):
            log.telemetry.fact("broker.lost")
        log.clock.seconds += 60
        log.telemetry.flush()
        return log.written[before:]

    def sums(lines: list[dict[str, Any]]) -> list[tuple[str, int]]:
        return [(line["event"], line.get("lines", 1)) for line in lines]

    assert len(minute(5_000)) == LINES_PER_MIN + 1
    assert sums(minute(6_000)) == [("log.suppressed", 6_000)]
    assert sums(minute(5)) == [("log.suppressed", 5)]
    assert sums(minute(2)) == [("broker.lost", 1)] * 2
    assert minute(0) == []


def test_a_process_that_ends_says_what_it_has_counted() -> None:
    log = Log()
    records = Records(log.lines)
    for _ in range(LINES_PER_MIN + 7):
        log.telemetry.fact("broker.lost")
    records.flush()
    assert log.written[-1]["lines"] == 7


def test_a_level_below_the_least_is_not_written_and_not_counted() -> None:
    log = Log(least=logging.WARNING)
    for _ in range(100):
        log.telemetry.fact("engine.started")
    log.clock.seconds += 60
    log.telemetry.flush()

    assert log.written == []


def test_a_long_text_keeps_its_head_and_its_tail() -> None:
    log = Log()
    log.telemetry.fact("loop.failed", error="a" + "x" * 100_000 + "z")

    error = log.written[0]["error"]
    assert len(error) < TEXT_CHARS + 50 and error.startswith("ax") and error.endswith("xz")


def test_a_log_that_cannot_be_written_stops_nothing() -> None:
    log = Log()
    log.stream.close()

    log.telemetry.fact("engine.started")


async def test_writes_to_a_connection_that_is_gone_are_a_few_dated_lines_and_a_number() -> None:
    """The event loop logs a line for each of them: a process that was frozen wakes up to many."""
    log = Log()
    logger, records = logging.getLogger("asyncio"), Records(log.lines)
    logger.addHandler(records)
    try:
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.transport.abort()
        for _ in range(1_000):
            writer.transport.write(b"x")
        server.close()
        log.clock.seconds += 60
        log.lines.flush()
    finally:
        logger.removeHandler(records)
    *told, suppressed = log.written
    assert [line["event"] for line in told] == ["socket.send() raised exception."] * LINES_PER_MIN
    assert suppressed["event"] == "log.suppressed"
    assert suppressed["lines"] > 800
    assert all(line["at"].endswith("Z") for line in log.written)
