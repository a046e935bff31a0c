"""Lanes, timeouts, pace and shares."""

from __future__ import annotations

import pytest

from surehook.core.lanes import ALONE, TRIAL, TRIAL_HUNG, TRIAL_WORSE, Limit, Pace, first_lane, timeout_s
from surehook.core.model import FIRST, RETRY
from surehook.core.policy import parse_policy
from surehook.core.profiles import PROFILES

PATIENT = parse_policy(b'{"profile":"standard","timeouts":{"first":5,"retry":15}}', PROFILES)


@pytest.mark.parametrize(
    ("policy", "is_slow", "lane"),
    [
        (PROFILES["standard"], False, FIRST),
        (PROFILES["standard"], True, RETRY),
        (PROFILES["yousign"], False, FIRST),
        (PROFILES["yousign"], True, FIRST),
        (PROFILES["insigner"], False, RETRY),
        (PATIENT, False, RETRY),
    ],
)
def test_the_first_attempt_takes_the_fast_lane_where_there_is_one_to_give(policy, is_slow, lane) -> None:  # type: ignore[no-untyped-def]
    assert first_lane(policy, is_slow=is_slow) == lane


def test_timeouts_follow_the_lane_and_the_place_in_the_schedule() -> None:
    yousign, standard = PROFILES["yousign"], PROFILES["standard"]
    assert timeout_s(yousign, lane=FIRST, place=1, is_slow=False) == 1.0
    assert timeout_s(yousign, lane=RETRY, place=2, is_slow=False) == 10.0
    assert timeout_s(yousign, lane=FIRST, place=1, is_slow=False, probe=True) == 10.0
    assert timeout_s(standard, lane=RETRY, place=1, is_slow=True) == 15.0
    assert timeout_s(PATIENT, lane=RETRY, place=1, is_slow=False) == 5.0


def test_an_endpoint_is_slow_when_more_than_one_in_twenty_recent_answers_is() -> None:
    pace = Pace()
    for _ in range(9):
        pace.note(True)
    assert not pace.is_slow  # too few to say
    pace.note(True)
    assert pace.is_slow
    for _ in range(38):
        pace.note(False)
    assert not pace.is_slow  # two of forty is not more than one in twenty


def test_a_limit_halves_on_pushback_and_comes_back_with_successes() -> None:
    limit = Limit(32)
    limit.shrink(begun=0)
    limit.shrink(begun=1)
    assert limit.now == 8
    for _ in range(8):
        limit.grow()
    assert limit.now == 9
    for _ in range(2_000):
        limit.grow()
    assert limit.now == 32


def test_a_limit_never_falls_below_its_floor() -> None:
    limit = Limit(32)
    for cut in range(50):
        limit.shrink(begun=cut, floor=4)
    assert limit.now == 4
    for cut in range(50, 100):
        limit.shrink(begun=cut)
    assert limit.now == 1


def test_a_wave_of_timeouts_is_one_pushback() -> None:
    limit = Limit(32)
    for _ in range(32):
        limit.shrink(begun=0)
    assert limit.now == 16


def hang(limit: Limit, calls: int = 1) -> None:
    for _ in range(calls):
        limit.hang(begun=limit.cuts, floor=4)


def at_the_floor() -> Limit:
    limit = Limit(32)
    hang(limit, 3)
    return limit


def trial(limit: Limit, *, hung: int, of: int = TRIAL) -> None:
    """As many first calls as are judged together, so many of which time out."""
    for number in range(of):
        if number % of >= of - hung:
            hang(limit)
        else:
            limit.grow(begun=limit.cuts)


def found_slow(*, hung: int = TRIAL) -> Limit:
    """Of the calls at the floor, and of those one at a time, so many of forty time out."""
    limit = at_the_floor()
    trial(limit, hung=hung)
    assert limit.now == 1
    trial(limit, hung=hung // 2, of=ALONE)
    return limit


def test_a_first_call_that_hangs_is_pushback_down_to_the_floor() -> None:
    assert at_the_floor().now == 4


@pytest.mark.parametrize("hung", [TRIAL, TRIAL // 2, TRIAL_HUNG])
def test_a_receiver_that_is_slow_however_little_it_is_asked_is_asked_more_up_to_half(hung: int) -> None:
    limit = found_slow(hung=hung)
    seen = [limit.now]
    for _ in range(12):
        trial(limit, hung=hung)
        seen.append(limit.now)
    assert seen == [8, 9, 10, 11, 12, 13, 14, 15, 16, 16, 16, 16, 16]


def test_one_that_answers_what_it_is_asked_one_at_a_time_was_overwhelmed() -> None:
    limit = at_the_floor()
    trial(limit, hung=TRIAL)
    for _ in range(ALONE - 6):
        hang(limit)
    for _ in range(6):
        limit.grow(begun=limit.cuts)
    assert limit.now <= 4
    limit.now = 8
    hang(limit)
    assert limit.now == 4, "time-outs are pushback"


def test_where_asking_little_helps_time_outs_stay_pushback() -> None:
    limit = at_the_floor()
    trial(limit, hung=TRIAL_HUNG - 1)
    limit.now = 16
    hang(limit)
    assert limit.now == 8


def test_where_more_does_harm_it_is_asked_as_little_as_before() -> None:
    limit = found_slow(hung=TRIAL // 2)
    trial(limit, hung=TRIAL // 2)
    assert limit.now == 9
    trial(limit, hung=TRIAL // 2 + TRIAL_WORSE + 1)
    assert limit.now == 4


def test_what_began_before_the_floor_says_nothing_about_asking_little() -> None:
    limit = at_the_floor()
    for _ in range(2 * TRIAL):
        limit.hang(begun=0, floor=4)
    assert limit.now == 4


def test_a_plea_for_less_holds_whatever_was_found() -> None:
    limit = found_slow()
    for _ in range(4):
        trial(limit, hung=TRIAL)
    assert limit.now == 12
    limit.refuse(begun=limit.cuts)
    assert limit.now == 6
    hang(limit)
    assert limit.now == 4


def test_a_ramp_begins_with_one_and_doubles_a_round() -> None:
    limit = Limit(32)
    limit.ramp()
    assert limit.now == 1
    limit.grow()
    assert limit.now == 2
    limit.grow()
    limit.grow()
    assert limit.now == 4
