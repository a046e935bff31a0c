"""The published case on virtual time: two lanes and a breaker beside one queue with two workers."""

from __future__ import annotations

import pytest

from surehook.sim.yousign import run_yousign


@pytest.mark.slow
def test_with_lanes_both_answering_endpoints_are_served_and_the_third_is_left_alone():
    figures = run_yousign(events=1_500)
    assert figures["delivered"] == figures["wanted"] == 3_000
    assert figures["done_after_last_publish_s"] is not None
    assert figures["done_after_last_publish_s"] < 10
    assert figures["breakers_open"] == ["https://never.example/hook"]
    assert figures["requests"]["never"] < 100


def test_with_one_queue_and_one_worker_a_lane_hardly_anything_arrives():
    figures = run_yousign(mode="single_queue", events=400, publish_s=30.0, slots=2, horizon_s=150.0)
    assert figures["delivered"] < 0.1 * figures["wanted"]
    assert figures["done_after_last_publish_s"] is None


def test_the_figures_of_a_seed_are_the_same_each_time():
    first, second = (run_yousign(events=100, publish_s=10.0, seed=7) for _ in range(2))
    assert first == second
