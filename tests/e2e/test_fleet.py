"""The frame of the fleets' faults, on the one ledger that needs no server; and what its judge must not overlook."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from contextlib import closing

import pytest
from msgspec.structs import replace

from tests.e2e.faults.fleet import PER_NODE, running
from tests.e2e.faults.judging import SLACK_NS, Hit, judge
from tests.e2e.faults.nodes import judge_waits, kill_nodes
from tests.lab.bench.making import arrivals, sent

S = 1_000_000_000
KILL = Hit(10 * S, 10 * S, 11 * S, "again")


@pytest.mark.slow
def test_one_node_on_sqlite_is_killed_under_load_and_nothing_is_lost() -> None:
    with running(("all",), None) as run:
        kill_nodes(run, random.Random(1), 2)
        figures = run.end(per_fault=PER_NODE).figures
    judge_waits(figures)
    assert figures["accepted"] > 0
    assert figures["faults"] == 2


@pytest.mark.slow
def test_a_ledger_that_forgets_open_deliveries_is_found_out() -> None:
    with running(("all",), None) as run:
        node = run.fleet.nodes["all1"]
        os.kill(run.sink.process.pid, signal.SIGSTOP)  # so that deliveries wait
        time.sleep(0.7)
        node.kill()
        with closing(sqlite3.connect(node.launch.folder / "surehook.db")) as book, book:
            assert book.execute("delete from delivery").rowcount > 0
        os.kill(run.sink.process.pid, signal.SIGCONT)
        node.start()
        node.wait_ready()
        run.sends_after(node.started_ns)
        with pytest.raises(AssertionError, match="did not reach all endpoints"):
            run.end(per_fault=PER_NODE, still_s=2.0)


def verdict(*rows, accepted=((b"e1", 0, 9 * S),), hits=(KILL,), unanswered=(), bound=10, **more):
    book = sent(*accepted)
    book = replace(book, **more.pop("book", {}))
    found = arrivals(*rows, unanswered=unanswered)
    return judge(hits, [book], found, endpoints=1, bound=bound, **more)


def test_what_arrives_once_is_well() -> None:
    found = verdict((b"d1", b"e1", 9 * S + 1))
    assert found.defects == []
    assert found.figures["accepted"] == 1
    assert "again_s" not in found.figures


def test_what_waited_through_a_kill_is_timed_from_the_start_after_it() -> None:
    assert verdict((b"d1", b"e1", 13 * S)).figures["again_s"] == [2.0]


@pytest.mark.parametrize("between_ns", [0, SLACK_NS - 1])
def test_a_repeat_across_a_fault_is_excused(between_ns: int) -> None:
    found = verdict((b"d1", b"e1", 10 * S + between_ns), (b"d1", b"e1", 12 * S))
    assert found.defects == []
    assert (found.figures["duplicated"], found.figures["most_per_fault"]) == (1, 1)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], "did not reach all endpoints"),
        ([(b"d1", b"e1", 9 * S), (b"d1", b"e1", 9 * S + 1)], "without a fault between"),
        ([(b"d1", b"e1", 11 * S), (b"d1", b"e1", 12 * S)], "without a fault between"),
        ([(b"d1", b"e1", 9 * S), (b"d1", b"e1", 12 * S), (b"d1", b"e1", 13 * S)], "without a fault between"),
        ([(b"d1", b"e1", 9 * S), (b"d2", b"e1", 9 * S)], "fanned out twice"),
    ],
)
def test_defects_are_named(rows, says) -> None:
    (defect,) = verdict(*rows).defects
    assert says in defect


def test_an_arrival_that_was_never_answered_is_no_delivery() -> None:
    (defect,) = verdict((b"d1", b"e1", 9 * S), unanswered=(b"d1",)).defects
    assert "did not reach" in defect


def test_more_repeats_than_a_fault_may_cause_are_a_defect() -> None:
    rows = [(b"d1", b"e1", 9 * S), (b"d1", b"e1", 12 * S)]
    assert verdict(*rows, bound=1).defects == []
    assert "1 requests were repeated" in verdict(*rows, bound=0).defects[0]


def test_a_202_without_a_ledger_is_a_defect() -> None:
    rows, accepted = [(b"d1", b"e1", 15 * S)], [(b"e1", 0, 12 * S)]
    assert (
        "while there was no ledger" in verdict(*rows, accepted=accepted, away=[(11 * S, 13 * S)]).defects[0]
    )
    assert verdict(*rows, accepted=accepted, away=[(12 * S, 13 * S)]).defects == []


@pytest.mark.parametrize(
    ("book", "says"),
    [
        ({"bare_503": 1}, "no Retry-After"),
        ({"statuses": {"202": 1, "500": 1}}, "neither 202 nor 503"),
        ({"deliveries": 2}, "promised 2 deliveries"),
    ],
)
def test_wrong_answers_are_defects(book, says) -> None:
    (defect,) = verdict((b"d1", b"e1", 9 * S), book=book).defects
    assert says in defect


def test_a_wait_far_beyond_its_limit_is_a_defect() -> None:
    judge_waits({"again_s": [2.0, 5.9], "rescued_s": [17.0]})
    with pytest.raises(AssertionError, match="again_s"):
        judge_waits({"again_s": [2.0, 6.1]})
