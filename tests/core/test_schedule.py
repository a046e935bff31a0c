"""Schedules, exactly as the known senders document them, and jitter that stays within its bounds."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehook.core import instants, schedule
from surehook.core.policy import (
    Exponential,
    Fixed,
    JitterAdd,
    JitterFull,
    JitterRatio,
    WaitFactor,
    parse_policy,
)
from surehook.core.profiles import PROFILES

MINUTE, HOUR, DAY = 60, 3600, 86400


def policy(**changes):
    return parse_policy({"profile": "standard", "jitter": None, **changes}, PROFILES)


def waits(policy):
    return [schedule.base_wait(policy, retry) for retry in range(1, schedule.retries(policy) + 1)]


def test_yousign_waits_its_eight_documented_steps():
    assert waits(PROFILES["yousign"]) == [
        2 * MINUTE, 6 * MINUTE, 30 * MINUTE, 1 * HOUR, 5 * HOUR, 18 * HOUR, 1 * DAY, 2 * DAY,
    ]  # fmt: skip
    assert PROFILES["yousign"].jitter is None


def test_insigner_waits_its_eight_documented_steps_and_ends_after_two_and_a_half_days():
    assert waits(PROFILES["insigner"]) == [
        1 * MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 18 * HOUR, 24 * HOUR,
    ]  # fmt: skip
    assert round(sum(waits(PROFILES["insigner"])) / DAY, 1) == 2.5


def test_standard_waits_its_nine_steps():
    assert waits(PROFILES["standard"]) == [
        5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR,
    ]  # fmt: skip


def test_signing_doubles_from_five_seconds_to_an_hour_and_stays_there_for_sixty_retries():
    steps = waits(PROFILES["signing"])
    assert steps[:11] == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600]
    assert set(steps[10:]) == {3600}
    assert len(steps) == 60


# The documented table of webhooks.uno: retry, wait and total at factor 100, wait and total at factor 150.
WEBHOOKS_UNO = """
 1 | 32s     | 32s     | 32s     | 32s
 2 | 1m 4s   | 1m 36s  | 1m 8s   | 1m 40s
 3 | 1m 38s  | 3m 14s  | 1m 52s  | 3m 32s
 4 | 2m 16s  | 5m 30s  | 3m 4s   | 6m 36s
 5 | 3m 2s   | 8m 32s  | 5m 31s  | 12m 7s
 6 | 4m 4s   | 12m 36s | 11m 32s | 23m 39s
 7 | 5m 38s  | 18m 14s | 27m 38s | 51m 17s
 8 | 8m 16s  | 26m 30s | 1h 12m  | 2h 3m
 9 | 13m 2s  | 39m 32s | 3h 17m  | 5h 21m
10 | 22m 4s  | 1h 1m   | 9h 11m  | 14h 32m
11 | 39m 38s | 1h 41m  | 1d 1h   | 1d 16h
12 | 1h 14m  | 2h 55m  | 3d 0h   | 4d 17h
13 | 2h 23m  | 5h 18m  | 8d 14h  | 13d 7h
14 | 4h 40m  | 9h 58m  | 24d 6h  | 37d 14h
15 | 9h 13m  | 19h 12m | 68d 15h | 106d 5h
"""
ROWS = [[cell.strip() for cell in line.split("|")] for line in WEBHOOKS_UNO.strip().splitlines()]


def uno(factor, retries=15):
    return parse_policy(
        {"profile": "webhooks_uno", "schedule": {"wait_factor": {"factor": factor, "retries": retries}}},
        PROFILES,
    )


@pytest.mark.parametrize(("factor", "column"), [(100, 1), (150, 3)])
def test_webhooks_uno_agrees_with_all_sixty_cells_of_its_table(factor, column):
    """The table cuts waits to whole seconds, adds up the cut waits, and shows the two largest units."""
    cut = [int(wait) for wait in waits(uno(factor))]
    totals = list(itertools.accumulate(cut))
    shown = [
        (instants.say(wait * 1000), instants.say(total * 1000))
        for wait, total in zip(cut, totals, strict=True)
    ]
    assert shown == [(row[column], row[column + 1]) for row in ROWS]


def test_the_table_is_complete():
    assert [int(row[0]) for row in ROWS] == list(range(1, 16))
    assert all(len(row) == 5 and all(row) for row in ROWS)


def test_real_waits_are_not_cut_to_seconds():
    assert schedule.base_wait(uno(150), 1) == pytest.approx(30 + 2**1.5)


def test_a_wait_that_would_pass_ten_days_in_all_is_not_begun():
    patient = uno(150)
    waited = sum(waits(patient)[:11])
    assert schedule.begins(patient, 12, waited)
    assert not schedule.begins(patient, 13, waited + waits(patient)[11])


def test_the_ten_day_bound_is_inclusive():
    one = uno(100)
    room = 10 * DAY - schedule.base_wait(one, 3)
    assert schedule.begins(one, 3, room)
    assert not schedule.begins(one, 3, room + 0.001)


def test_the_ten_day_bound_belongs_to_the_wait_factor_alone():
    assert schedule.begins(PROFILES["yousign"], 8, 1000 * DAY)


@pytest.mark.parametrize("retries", range(16))
def test_max_retries_is_the_number_of_retries(retries):
    assert schedule.retries(uno(100, retries)) == retries


def test_waits_grow_with_the_retry_for_every_wait_factor():
    for factor in range(10, 201):
        steps = waits(uno(factor))
        assert steps == sorted(steps)
        assert steps[0] == 30 + 2 ** (factor / 100)


def test_an_exponential_schedule_never_passes_its_cap():
    for factor, cap in itertools.product((1, 1.5, 2, 3, 10), (5, 60, 3600)):
        steps = waits(
            policy(schedule={"exponential": {"base": 5, "factor": factor, "cap": cap, "retries": 100}})
        )
        assert steps[0] == 5
        assert max(steps) <= cap
        assert steps == sorted(steps)


def test_an_empty_schedule_retries_at_once_where_a_retry_is_guaranteed():
    nothing = policy(schedule={"fixed": []})
    assert schedule.retries(nothing) == 0
    assert schedule.base_wait(nothing, 1) == 0.0


def test_ratio_jitter_moves_a_wait_by_its_part_both_ways():
    jittered = policy(jitter={"ratio": 0.2}, schedule={"fixed": [100]})
    assert schedule.jitter_range(jittered, 1) == (-20, 20)
    assert [schedule.wait(jittered, 1, fraction) for fraction in (0, 0.25, 0.5, 0.75)] == [80, 90, 100, 110]


def test_full_jitter_takes_any_part_of_the_wait():
    jittered = policy(jitter={"full": True}, schedule={"fixed": [100]})
    assert schedule.jitter_range(jittered, 1) == (-100, 0)
    assert [schedule.wait(jittered, 1, fraction) for fraction in (0, 0.25, 0.5)] == [0, 25, 50]


def test_added_jitter_only_lengthens_a_wait():
    assert schedule.jitter_range(PROFILES["webhooks_uno"], 1) == (0, 60)
    assert [schedule.wait(PROFILES["webhooks_uno"], 1, fraction) for fraction in (0, 0.5)] == [32, 62]


def test_no_jitter_is_the_wait_itself():
    assert {schedule.wait(PROFILES["yousign"], 1, fraction) for fraction in (0, 0.3, 0.999)} == {120}


WAITS = st.floats(0.01, 30 * DAY)
SCHEDULES = st.one_of(
    st.lists(WAITS, min_size=1, max_size=20).map(lambda steps: {"fixed": steps}),
    st.builds(
        lambda base, factor, retries: {
            "exponential": {"base": base, "factor": factor, "cap": 30 * DAY, "retries": retries}
        },
        WAITS, st.floats(1, 10), st.integers(1, 100),
    ),
    st.builds(
        lambda factor, retries: {"wait_factor": {"factor": factor, "retries": retries}},
        st.floats(10, 200), st.integers(1, 100),
    ),
)  # fmt: skip
JITTERS = st.one_of(
    st.none(),
    st.floats(0, 1, exclude_min=True, exclude_max=True).map(lambda ratio: {"ratio": ratio}),
    st.just({"full": True}),
    st.floats(0, 3600, exclude_min=True).map(lambda add: {"add": add}),
)


@given(given_schedule=SCHEDULES, jitter=JITTERS, fraction=st.floats(0, 1, exclude_max=True), data=st.data())
def test_every_wait_is_finite_not_negative_and_inside_its_range(given_schedule, jitter, fraction, data):
    any_policy = policy(schedule=given_schedule, jitter=jitter)
    retry = data.draw(st.integers(1, schedule.retries(any_policy)))
    base, wait = schedule.base_wait(any_policy, retry), schedule.wait(any_policy, retry, fraction)
    low, high = schedule.jitter_range(any_policy, retry)
    slack = 1e-9 * max(base, 1)
    assert -slack <= base + low - slack <= wait + slack
    assert wait <= base + high + slack < float("inf")
    assert wait >= 0


def test_the_kinds_of_schedule_and_jitter_are_the_ones_of_the_policy_page():
    assert isinstance(PROFILES["standard"].schedule, Fixed)
    assert isinstance(PROFILES["signing"].schedule, Exponential)
    assert isinstance(PROFILES["webhooks_uno"].schedule, WaitFactor)
    assert isinstance(PROFILES["standard"].jitter, JitterRatio)
    assert isinstance(PROFILES["signing"].jitter, JitterFull)
    assert isinstance(PROFILES["webhooks_uno"].jitter, JitterAdd)
