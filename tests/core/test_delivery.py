"""What one attempt leads to: `decide` over the profiles and their exceptions."""

from __future__ import annotations

import itertools
import json

import pytest

from surehook.core import schedule
from surehook.core.delivery import TRANSITIONS, decide, is_too_old
from surehook.core.model import END_STATES, FIRST, RETRY, Delivery
from surehook.core.outcome import DELIVERED, FAIL, OK, Outcome
from surehook.core.policy import parse_policy
from surehook.core.profiles import PROFILES

NOW = 1_795_260_000_000
REFUSED = Outcome("refused", FAIL)
TIMED_OUT = Outcome("timed_out", FAIL, late=True)


def a_delivery(*, attempt: int = 1, spared: int = 0, born_at: int = NOW, stood_ms: int = 0) -> Delivery:
    return Delivery(
        id=b"d" * 16, event=b"e" * 16, endpoint=b"p" * 16, tenant="acme", type="a.b", lane=FIRST,
        attempt=attempt, due_at=born_at, born_at=born_at, body=b"{}", spared=spared, stood_ms=stood_ms,
    )  # fmt: skip


def policy(text: str) -> object:
    return parse_policy(text.encode(), PROFILES)


def test_a_success_ends_the_delivery() -> None:
    assert (
        decide(a_delivery(), DELIVERED, policy=PROFILES["standard"], now=NOW, jitter=0.5).end == "delivered"
    )


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_every_profile_retries_in_the_retry_lane_after_its_wait_and_never_before(name: str) -> None:
    profile = PROFILES[name]
    now, born = NOW, NOW
    for attempt in itertools.count(1):
        decision = decide(
            a_delivery(attempt=attempt, born_at=born), REFUSED, policy=profile, now=now, jitter=0.0
        )
        if decision.end is not None or decision.parked is not None:
            break
        assert decision.number == attempt + 1
        assert decision.lane == RETRY
        assert decision.due_at >= now + schedule.wait(profile, attempt, 0.0) * 1000
        assert decision.due_at < now + schedule.wait(profile, attempt, 0.0) * 1000 + 1
        now = decision.due_at
    assert attempt <= schedule.retries(profile) + 1


def attempts_made(profile: object, outcome: Outcome = REFUSED, *, jitter: float = 0.0) -> int:
    now = NOW
    for attempt in itertools.count(1):
        decision = decide(a_delivery(attempt=attempt), outcome, policy=profile, now=now, jitter=jitter)  # type: ignore[arg-type]
        if decision.end is not None or decision.parked is not None:
            return attempt
        now = decision.due_at
    raise AssertionError


def test_yousign_and_insigner_make_nine_calls_in_all() -> None:
    assert attempts_made(PROFILES["yousign"]) == 9
    assert attempts_made(PROFILES["insigner"]) == 9


def test_webhooks_uno_stops_before_the_wait_that_would_pass_ten_days() -> None:
    # Factor 150: the twelfth wait ends at 4 d 17 h, the thirteenth would at 13 d 7 h.
    assert (
        attempts_made(
            policy('{"profile":"webhooks_uno","schedule":{"wait_factor":{"factor":150,"retries":15}}}')
        )
        == 13
    )
    assert attempts_made(PROFILES["webhooks_uno"]) == 16


@pytest.mark.parametrize(
    ("written", "end", "parked", "status"),
    [
        ('"standard"', "dead", None, None),
        ('"webhooks_uno"', None, "failure", "failure"),
        ('{"profile":"webhooks_uno","on_exhausted":"drop"}', "dropped", None, None),
    ],
)
def test_an_exhausted_delivery_ends_as_its_policy_says(
    written: str, end: str | None, parked: str | None, status: str | None
) -> None:
    delivery = a_delivery(attempt=99)
    decision = decide(delivery, REFUSED, policy=policy(written), now=NOW, jitter=0.0)  # type: ignore[arg-type]
    assert (decision.end, decision.parked, decision.endpoint_status) == (end, parked, status)


@pytest.mark.parametrize("rule", ["drop", "enter_failure", "dead_letter"])
def test_max_retries_zero_drops_at_once_whatever_the_end_rule(rule: str) -> None:
    written = policy(
        json.dumps(
            {"profile": "webhooks_uno", "schedule": {"wait_factor": {"retries": 0}}, "on_exhausted": rule}
        )
    )
    assert decide(a_delivery(), REFUSED, policy=written, now=NOW, jitter=0.0).end == "dropped"  # type: ignore[arg-type]


def test_with_auto_retry_off_only_a_first_timeout_is_retried_and_only_once() -> None:
    off = policy('{"profile":"yousign","auto_retry":false}')
    assert decide(a_delivery(), REFUSED, policy=off, now=NOW, jitter=0.0).end == "dead"  # type: ignore[arg-type]
    again = decide(a_delivery(), TIMED_OUT, policy=off, now=NOW, jitter=0.0)  # type: ignore[arg-type]
    assert (again.end, again.lane, again.number) == (None, RETRY, 2)
    assert decide(a_delivery(attempt=2), TIMED_OUT, policy=off, now=NOW, jitter=0.0).end == "dead"  # type: ignore[arg-type]


def test_a_terminal_answer_ends_the_delivery_and_410_its_endpoint_too() -> None:
    gone = decide(
        a_delivery(), Outcome("gone", OK, terminal=True), policy=PROFILES["standard"], now=NOW, jitter=0.0
    )
    assert (gone.end, gone.endpoint_status, gone.notice) == ("dead", "inactive", "delivery.dead")
    rejected = decide(
        a_delivery(),
        Outcome("rejected", OK, terminal=True),
        policy=PROFILES["standard"],
        now=NOW,
        jitter=0.0,
    )
    assert (rejected.end, rejected.endpoint_status) == ("dead", None)


def test_key_trouble_parks_and_spends_no_retry() -> None:
    decision = decide(
        a_delivery(attempt=3),
        Outcome("rejected", OK, key=True),
        policy=PROFILES["standard"],
        now=NOW,
        jitter=0.0,
    )
    assert (decision.end, decision.parked, decision.number, decision.spared) == (None, "key", 4, 1)
    # The place in the schedule is the number less the spared ones: retry 3 still lies ahead.
    later = decide(a_delivery(attempt=4, spared=1), REFUSED, policy=PROFILES["standard"], now=NOW, jitter=0.5)
    assert later.due_at - NOW == schedule.wait(PROFILES["standard"], 3, 0.5) * 1000


@pytest.mark.parametrize(("asked", "wait_s"), [(1.0, 5.0), (60.0, 60.0), (1e9, 3600.0)])
def test_retry_after_holds_where_it_is_later_and_at_most_its_cap(asked: float, wait_s: float) -> None:
    throttled = Outcome("throttled", FAIL, retry_after_s=asked)
    decision = decide(a_delivery(), throttled, policy=PROFILES["standard"], now=NOW, jitter=0.5)
    assert decision.due_at - NOW == wait_s * 1000


def test_retry_after_is_not_obeyed_by_the_profiles_that_are_seeds() -> None:
    throttled = Outcome("throttled", FAIL, retry_after_s=3000.0)
    decision = decide(a_delivery(), throttled, policy=PROFILES["yousign"], now=NOW, jitter=0.0)
    assert decision.due_at - NOW == 120_000


def test_our_own_trouble_spends_no_retry_and_backs_off() -> None:
    ours = Outcome("unreachable", "uncounted", ours=True)
    decision = decide(a_delivery(attempt=9), ours, policy=PROFILES["yousign"], now=NOW, jitter=0.0)
    assert (decision.end, decision.number, decision.spared, decision.due_at - NOW) == (None, 10, 1, 5_000)


def test_age_ends_a_delivery_whose_next_attempt_would_be_too_late_but_not_time_stood_still() -> None:
    old = NOW - 5 * 86_400_000
    assert (
        decide(a_delivery(born_at=old), REFUSED, policy=PROFILES["standard"], now=NOW, jitter=0.0).end
        == "dead"
    )
    stood = a_delivery(born_at=old, stood_ms=86_400_000)
    assert decide(stood, REFUSED, policy=PROFILES["standard"], now=NOW, jitter=0.0).end is None
    assert not is_too_old(a_delivery(born_at=0), PROFILES["yousign"], at=NOW)


def test_every_state_of_the_table_leads_only_to_states_of_the_table() -> None:
    assert {target for moves in TRANSITIONS.values() for target in moves.values()} <= set(TRANSITIONS)
    assert all(TRANSITIONS[state] == {} for state in END_STATES)
