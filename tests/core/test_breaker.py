"""The breaker opens at its rate, lets one probe through, and closes or opens again by it."""

from __future__ import annotations

import pytest

from surehook.core.breaker import KEY_PROBE_AFTER_S, Breaker
from surehook.core.policy import BreakerPolicy

POLICY = BreakerPolicy(window=600.0, failure_ratio=0.4, calls=20, probe_after=300.0)
NOW = 1_795_260_000_000


def a_breaker() -> Breaker:
    return Breaker("acme", "https://a.example/hook", POLICY)


def call(breaker: Breaker, *, failed: int, ok: int, at: int = NOW) -> str | None:
    changes = [breaker.after(False, at, probe=None) for _ in range(ok)]
    changes += [breaker.after(True, at, probe=None) for _ in range(failed)]
    return next((change for change in changes if change), None)


@pytest.mark.parametrize(
    ("failed", "ok", "opens"),
    [
        (19, 0, False),
        (20, 0, True),
        (8, 12, True),
        (7, 13, False),
        (40, 60, True),
        (39, 61, False),
        (0, 500, False),
    ],
)
def test_it_opens_at_forty_percent_of_at_least_twenty_calls(failed: int, ok: int, opens: bool) -> None:
    breaker = a_breaker()
    assert (call(breaker, failed=failed, ok=ok) == "opened") is opens
    assert breaker.is_closed is not opens


def test_calls_older_than_the_window_are_forgotten() -> None:
    breaker = a_breaker()
    call(breaker, failed=19, ok=0)
    assert call(breaker, failed=1, ok=0, at=NOW + 601_000) is None
    assert breaker.counts(NOW + 601_000) == (1, 1)


def test_calls_within_the_window_are_kept() -> None:
    breaker = a_breaker()
    call(breaker, failed=19, ok=0)
    assert call(breaker, failed=1, ok=0, at=NOW + 580_000) == "opened"


def test_no_probe_before_its_time_and_exactly_one_then() -> None:
    breaker = a_breaker()
    call(breaker, failed=20, ok=0)
    assert not breaker.take_probe(NOW + 299_999)
    assert len([1 for _ in range(50) if breaker.take_probe(NOW + 300_000) is not None]) == 1
    assert breaker.state == "half_open"


def test_a_probe_that_fails_opens_it_for_as_long_again() -> None:
    breaker = a_breaker()
    call(breaker, failed=20, ok=0)
    probe = breaker.take_probe(NOW + 300_000)
    assert breaker.after(True, NOW + 310_000, probe=probe) == "reopened"
    assert not breaker.take_probe(NOW + 609_999)
    assert breaker.take_probe(NOW + 610_000)


def test_a_probe_that_succeeds_closes_it_with_a_clean_window() -> None:
    breaker = a_breaker()
    call(breaker, failed=20, ok=0)
    probe = breaker.take_probe(NOW + 300_000)
    assert breaker.after(False, NOW + 300_100, probe=probe) == "closed"
    assert breaker.counts(NOW + 300_100) == (0, 0)


def test_answers_to_calls_begun_before_it_opened_change_nothing() -> None:
    breaker = a_breaker()
    call(breaker, failed=20, ok=0)
    assert breaker.after(False, NOW + 1, probe=None) is None
    assert breaker.state == "open"


def test_a_probe_that_was_not_sent_can_be_taken_by_the_next() -> None:
    breaker = a_breaker()
    call(breaker, failed=20, ok=0)
    probe = breaker.take_probe(NOW + 300_000)
    assert probe is not None
    breaker.drop_probe(probe)
    assert breaker.take_probe(NOW + 300_000)


def test_a_probe_that_is_never_heard_of_is_lost_after_its_time() -> None:
    breaker = a_breaker()
    call(breaker, failed=20, ok=0)
    lost = breaker.take_probe(NOW + 300_000)
    assert lost is not None
    assert breaker.take_probe(NOW + 300_000 + 89_999) is None
    probe = breaker.take_probe(NOW + 300_000 + 90_000)
    assert probe is not None
    assert breaker.after(False, NOW + 400_000, probe=lost) is None, "only the probe that is known decides"
    assert breaker.after(True, NOW + 400_000, probe=probe) == "reopened"


def test_a_dropped_probe_decides_nothing_and_drops_nobody_elses() -> None:
    breaker = a_breaker()
    call(breaker, failed=20, ok=0)
    first = breaker.take_probe(NOW + 300_000)
    assert first is not None
    breaker.drop_probe(first, next_at=NOW + 301_000)
    assert breaker.take_probe(NOW + 300_999) is None
    second = breaker.take_probe(NOW + 301_000)
    breaker.drop_probe(first, next_at=0)
    assert breaker.probe is second
    assert breaker.after(False, NOW + 302_000, probe=first) is None
    assert not breaker.is_closed


def test_a_clock_that_is_set_back_does_not_keep_a_lost_probe_for_days() -> None:
    breaker = a_breaker()
    call(breaker, failed=20, ok=0)
    breaker.take_probe(NOW + 300_000)
    weeks_ago = NOW - 20 * 86_400_000
    breaker.mind_the_clock(weeks_ago)
    assert breaker.take_probe(weeks_ago + 300_000) is not None


def test_key_trouble_opens_it_at_once_even_without_a_breaker_policy() -> None:
    breaker = Breaker("acme", "https://a.example/hook", None)
    assert breaker.trip("key", NOW) == "opened"
    assert (breaker.reason, breaker.probe_at) == ("key", NOW + int(KEY_PROBE_AFTER_S * 1000))


def test_it_goes_on_after_a_restart_where_the_book_says_it_stood() -> None:
    breaker = a_breaker()
    call(breaker, failed=20, ok=0)
    again = a_breaker()
    again.restore(breaker.row())
    assert (again.state, again.probe_at, again.reason) == ("open", breaker.probe_at, "failures")


def test_a_clock_that_is_set_back_does_not_put_the_probe_off_for_days() -> None:
    breaker = a_breaker()
    call(breaker, failed=20, ok=0)
    breaker.mind_the_clock(NOW + 1_000)
    assert breaker.probe_at == NOW + 300_000, "an honest clock changes nothing"
    weeks_ago = NOW - 20 * 86_400_000
    breaker.mind_the_clock(weeks_ago)
    assert breaker.probe_at == weeks_ago + 300_000


def test_a_policy_with_a_shorter_wait_shortens_the_one_under_way_and_a_longer_one_does_not() -> None:
    breaker = a_breaker()
    call(breaker, failed=20, ok=0)
    breaker.policy = BreakerPolicy(probe_after=600.0)
    breaker.mind_the_clock(NOW + 10_000)
    assert breaker.probe_at == NOW + 300_000
    breaker.policy = BreakerPolicy(probe_after=5.0)
    breaker.mind_the_clock(NOW + 10_000)
    assert breaker.probe_at == NOW + 15_000


def test_a_clock_that_jumps_ahead_and_back_does_not_freeze_the_window() -> None:
    breaker = Breaker("acme", "https://a.example/hook", BreakerPolicy(window=60.0, calls=10_000))
    breaker.after(False, NOW + 7 * 86_400_000, probe=None)
    for second in range(300):
        breaker.after(False, NOW + second * 1000, probe=None)
    assert breaker.counts(NOW + 299_000) == (60, 0)


def test_a_clock_that_is_set_back_by_a_moment_forgets_nothing() -> None:
    breaker = a_breaker()
    call(breaker, failed=5, ok=5, at=NOW)
    assert breaker.counts(NOW - 1_000) == (10, 5)


def test_the_strategy_count_opens_at_so_many_failures_whatever_went_well() -> None:
    breaker = Breaker(
        "acme", "https://a.example/hook", BreakerPolicy(window=60.0, strategy="count", failures=3)
    )
    assert call(breaker, failed=2, ok=500) is None
    assert breaker.after(True, NOW + 59_000, probe=None) == "opened"


def test_the_strategy_count_forgets_failures_that_left_the_window() -> None:
    breaker = Breaker(
        "acme", "https://a.example/hook", BreakerPolicy(window=60.0, strategy="count", failures=3)
    )
    call(breaker, failed=2, ok=0)
    assert call(breaker, failed=1, ok=0, at=NOW + 61_000) is None


# -- what others decided -----------------------------------------------------------------------------------


def hear(breaker: Breaker, state: str, generation: int, *, opened_at: int = NOW) -> bool:
    return breaker.hear(
        is_open=state == "open", reason="failures", opened_at=opened_at, probe_at=opened_at + 9,
        generation=generation,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("own", "heard", "by", "stands"),
    [
        ("open", "closed", 1, "closed"),
        ("open", "closed", 0, "closed"),
        ("open", "closed", -1, "open"),
        ("closed", "open", 1, "open"),
        ("closed", "open", 0, "closed"),
        ("closed", "open", -1, "closed"),
        ("open", "open", 1, "open"),
        ("closed", "closed", 1, "closed"),
    ],
)
def test_the_greater_generation_holds_and_of_one_generation_the_closing(
    own: str, heard: str, by: int, stands: str
) -> None:
    breaker = a_breaker()
    hear(breaker, "open", NOW)
    if own == "closed":
        hear(breaker, "closed", NOW)
    assert hear(breaker, heard, NOW + by) is (own != stands)
    assert breaker.state == stands
    assert breaker.generation == NOW + max(by, 0)


def test_a_decision_is_newer_than_all_that_was_known_by_whatever_clock() -> None:
    breaker = a_breaker()
    hear(breaker, "open", NOW + 4_000)
    breaker.close(NOW)
    assert breaker.generation == NOW + 4_001
    breaker.trip("key", NOW + 9_000)
    assert breaker.generation == NOW + 9_000, (
        "and is an instant, so that nodes which know nothing of it agree"
    )


def test_a_newer_opening_brings_its_probe_along() -> None:
    breaker = a_breaker()
    hear(breaker, "open", NOW)
    assert not hear(breaker, "open", NOW + 60_000, opened_at=NOW + 60_000)
    assert (breaker.opened_at, breaker.probe_at) == (NOW + 60_000, NOW + 60_009)


def test_who_hears_that_a_probe_may_go_sooner_is_told_so() -> None:
    breaker = a_breaker()
    hear(breaker, "open", NOW, opened_at=NOW)
    assert not hear(breaker, "open", NOW + 1, opened_at=NOW)
    assert hear(breaker, "open", NOW + 2, opened_at=NOW - 1)


def test_after_a_restart_what_was_known_is_not_undone_by_older_news() -> None:
    breaker = a_breaker()
    call(breaker, failed=20, ok=0)
    again = a_breaker()
    again.restore(breaker.row())
    assert not hear(again, "closed", NOW - 1)
    assert again.state == "open"
