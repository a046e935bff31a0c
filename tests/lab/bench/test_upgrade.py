"""An upgrade is judged by rows that vanish and by what logs tell of."""

from __future__ import annotations

import contextlib
from pathlib import Path

from lab.bench.upgrade import longest
from lab.bench.upgrade_ledger import FAILED, Rows, vanished
from lab.bench.upgrade_nodes import FILL, LIVE, Node

BEFORE = Rows(
    events={"e1", "e2"},
    open={"d1": "parked", "d2": "waiting"},
    ended={"d3": "dead", "d4": "delivered"},
    letters={"d3"},
    history=4,
)
NOTHING = {"events": 0, "open deliveries": 0, "ends": 0, "dead letters": 0, "history": 0}


def test_an_open_delivery_may_end_and_more_may_come() -> None:
    after = Rows(
        events={"e1", "e2", "e3"},
        open={"d1": "waiting"},
        ended={"d2": "delivered", "d3": "dead", "d4": "delivered", "d5": "delivered"},
        letters={"d3"},
        history=7,
    )
    assert vanished(BEFORE, after) == NOTHING
    assert after.deliveries() - BEFORE.deliveries() == 1


def test_whatever_is_gone_has_vanished() -> None:
    after = Rows(events={"e2"}, open={"d1": "parked"}, ended={"d3": "dropped"}, letters=set(), history=3)
    assert vanished(BEFORE, after) == {
        "events": 1, "open deliveries": 1, "ends": 2, "dead letters": 1, "history": 1,
    }  # fmt: skip


def test_a_log_tells_of_errors_traces_and_warnings(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        node = Node("old api", tmp_path / "surehook", "sqlite://", stack)
        node.server.log.write_text(
            '  ledger sqlite:///surehook.db\n{"level": "info", "event": "started"}\n'
            '{"level": "warning", "event": "breaker.opened"}\n{"level": "error", "event": "loop.failed"}\n'
            "Traceback (most recent call last):\n"
        )
        bad, warnings = node.told()
    assert [line.partition(": ")[0] for line in bad] == ["old api", "old api"]
    assert warnings == {"old api: breaker.opened": 1}


def test_a_failed_statement_is_seen_and_a_notice_is_not() -> None:
    assert FAILED.search("2026-11-24 20:43:16.740 UTC [88] surehook ERROR:  deadlock detected")
    assert not FAILED.search("2026-11-24 20:43:16.740 UTC [88] surehook LOG:  checkpoint complete")


def test_the_longest_time_between_two_instants() -> None:
    assert longest([0, 1_000_000_000, 3_500_000_000]) == 2.5
    assert longest([]) == 0.0


def test_every_event_of_the_load_reaches_the_endpoint_that_is_judged() -> None:
    assert all(name.startswith("live.") for name in LIVE)
    assert len(FILL) == 200
