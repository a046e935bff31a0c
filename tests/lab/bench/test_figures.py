"""Figures are what the two logs say, no more."""

import pytest

from lab.bench.figures import Joined, batch_sizes, flat, percentile, spread

from .making import arrivals, sent

MS = 1_000_000


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.5, 50), (0.95, 95), (0.99, 99), (1.0, 100)])
def test_a_percentile_is_the_nearest_rank(share, value):
    assert percentile(list(range(1, 101)), share) == value


def test_the_percentiles_of_nothing_are_unknown():
    assert spread([]) == {"p50": None, "p95": None, "p99": None, "max": None}


def test_latency_runs_from_the_meant_instant_to_the_answer_and_to_the_first_arrival():
    joined = Joined([sent((b"e1", 0, 3 * MS))], arrivals((b"d1", b"e1", 2 * MS), (b"d1", b"e1", 9 * MS)))
    assert joined.accept_ms()["max"] == 3.0
    assert joined.arrival_ms()["max"] == 2.0


def test_a_promised_delivery_that_never_arrives_is_lost():
    joined = Joined([sent((b"e1", 0, 1), (b"e2", 0, 1))], arrivals((b"d1", b"e1", 2)))
    assert joined.lost == 1


def test_another_loads_arrivals_do_not_hide_a_loss():
    joined = Joined([sent((b"e1", 0, 1))], arrivals((b"d9", b"e9", 2)))
    assert joined.lost == 1


def test_what_came_but_was_never_answered_is_lost():
    joined = Joined([sent((b"e1", 0, 1))], arrivals((b"d1", b"e1", 2), unanswered=(b"d1",)))
    assert (joined.delivered, joined.lost) == (0, 1)


def test_fan_out_is_counted_by_delivery():
    joined = Joined([sent((b"e1", 0, 1), deliveries=2)], arrivals((b"d1", b"e1", 2), (b"d2", b"e1", 3)))
    assert joined.lost == 0
    assert len(joined.first) == 2


def test_what_arrives_after_an_instant_is_missing_at_it():
    joined = Joined([sent((b"e1", 0, 5), (b"e2", 0, 6))], arrivals((b"d1", b"e1", 7), (b"d2", b"e2", 20)))
    assert joined.missing_at(10) == 1
    assert joined.missing_at(20) == 0


def test_windows_are_cut_by_the_meant_instant():
    joined = Joined(
        [sent((b"e1", 0, 1), (b"e2", 50 * MS, 51 * MS))],
        arrivals((b"d1", b"e1", MS), (b"d2", b"e2", 90 * MS)),
    )
    assert joined.arrival_ms(until=10 * MS)["max"] == 1.0
    assert joined.arrival_ms(since=10 * MS)["max"] == 40.0


def test_batch_sizes_are_the_means_of_what_was_added_meanwhile():
    before = {
        "surehook_accept_batch_sum": 10.0,
        "surehook_accept_batch_count": 10.0,
        "other_sum": 1.0,
        "other_count": 1.0,
    }
    after = {
        "surehook_accept_batch_sum": 110.0,
        "surehook_accept_batch_count": 20.0,
        "other_sum": 9.0,
        "other_count": 2.0,
    }
    assert batch_sizes(before, after) == {"accept_batch": 10.0}


def test_a_result_becomes_one_level_for_a_table():
    assert flat({"a": 1, "b": {"c": 2}, "d": [3]}) == {"a": 1, "b c": 2}
