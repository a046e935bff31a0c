"""The published case on virtual time: two lanes and a breaker beside one queue with two workers."""

from __future__ import annotations

import pytest

from lab.sim.yousign import ADAPTIVE, run_yousign

SLACK_S = 5.0  # what a delivery may be later than its policy makes it


@pytest.mark.slow
def test_with_the_profile_as_it_is_everything_arrives_when_its_schedule_says():
    """Who answers within a second has each event at once. Who needs two is found to be slow meanwhile, and has its last
    second call two minutes after a first one that began at once."""
    figures = run_yousign()
    assert figures["delivered"] == figures["wanted"] == 2_666
    assert figures["arrival_s"]["500ms"]["p100"] < SLACK_S
    assert figures["done_after_last_publish_s"] < 1 + 120 + 2 + SLACK_S
    assert figures["breakers_open"] == ["https://never.example/hook"]


@pytest.mark.slow
def test_three_times_the_load_costs_a_slow_endpoint_what_its_slots_cannot_carry():
    """Forty requests under way would keep up with it, and an endpoint has 32."""
    figures = run_yousign(events=4_000)
    assert figures["delivered"] == figures["wanted"] == 8_000
    assert figures["arrival_s"]["500ms"]["p100"] < SLACK_S
    assert figures["done_after_last_publish_s"] < 180


@pytest.mark.slow
def test_with_patience_for_the_slow_both_answering_endpoints_are_served_and_the_third_is_left_alone():
    figures = run_yousign(events=1_500, policy=ADAPTIVE)
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
