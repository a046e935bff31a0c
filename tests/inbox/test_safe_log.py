"""Logging of an application's that raises: workers and senders go on, and stderr says so."""

from __future__ import annotations

import logging

import pytest

from surehook.inbox import Backoff, safe_log
from surehook.inbox.log_limits import OncePer
from tests.inbox.house import Clock, House


class OfARequest(logging.Filter):
    def filter(self, record):
        if record.levelno >= logging.WARNING:
            raise LookupError("working outside of a request\nwhatever that is")
        return True


@pytest.fixture
def raises(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(safe_log, "_once", OncePer(clock.boot, safe_log.EVERY_S))
    handler = logging.StreamHandler()
    handler.addFilter(OfARequest())
    logging.getLogger().addHandler(handler)
    yield clock
    logging.getLogger().removeHandler(handler)


@pytest.mark.parametrize("ground", [("sqlite", "sync"), ("sqlite", "async")], ids="-".join)
def test_a_failed_attempt_that_cannot_be_logged_is_a_failed_attempt(
    raises, ground, ground_of, runner, capsys
):
    database, kind = ground
    house = House(kind, ground_of(database, kind)[1], runner, backoff=Backoff(attempts=2)).prepare()
    house.on(lambda event: 1 / 0 if event.type == "bad" else None)
    for n in range(3):
        house.receive(f"evt_{n}", "bad")
    house.receive("evt_9", "good")
    for _ in range(2):
        house.work()
        house.clock.passes(3600)
    assert house.states() == {"evt_0": "dead", "evt_1": "dead", "evt_2": "dead", "evt_9": "finalized"}
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("surehook: ")]
    assert len(told) == 1
    assert "the application's logging raised LookupError: working outside of a request; lost: inb_" in told[0]
    house.close()


def test_lines_name_who_logs_and_not_this_module(caplog):
    safe_log.log.warning("a line with %s", "words", extra={"ref": "inb_1"})
    (record,) = caplog.records
    assert (record.filename, record.getMessage(), record.ref) == (
        "test_safe_log.py",
        "a line with words",
        "inb_1",
    )


def test_what_is_to_end_the_process_ends_it(monkeypatch):
    def leaves(record):
        raise KeyboardInterrupt

    monkeypatch.setattr(logging.getLogger("surehook.inbox"), "handle", leaves)
    with pytest.raises(KeyboardInterrupt):
        safe_log.log.error("x")
