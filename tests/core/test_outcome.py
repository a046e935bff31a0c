"""The table of outcomes (docs/delivery-contract.md), row by row, for a policy that obeys and one that does not."""

from __future__ import annotations

import pytest

from surehook.core.model import FIRST, RETRY
from surehook.core.outcome import BY_FAILURE, FAIL, OK, OURS, UNCOUNTED, Outcome, classify, succeeds
from surehook.core.profiles import PROFILES

NOW = 1_795_260_000_000
VERDICT = b"content-type: application/problem+json\r\n"


def seen(
    profile: str = "standard",
    *,
    status: int | None = None,
    failure: str | None = None,
    headers: bytes = b"",
    body: bytes = b"",
    lane: int = RETRY,
    probe: bool = False,
) -> Outcome:
    policy = PROFILES[profile]
    return classify(
        policy=policy,
        success=succeeds(policy),
        lane=lane,  # type: ignore[arg-type]
        probe=probe,
        status=status,
        failure=failure,
        headers=headers,
        body=body,
        now=NOW,
    )


@pytest.mark.parametrize(
    ("profile", "status", "headers", "name", "terminal", "breaker"),
    [
        ("standard", 200, b"", "delivered", False, OK),
        ("standard", 204, b"", "delivered", False, OK),
        ("standard", 299, b"", "delivered", False, OK),
        ("standard", 301, b"", "redirected", False, OK),
        ("standard", 304, b"", "redirected", False, OK),
        ("yousign", 304, b"", "delivered", False, OK),
        ("yousign", 301, b"", "delivered", False, OK),
        ("standard", 400, b"", "refused", False, OK),
        ("standard", 404, b"", "refused", False, OK),
        ("standard", 408, b"", "refused", False, OK),
        ("standard", 425, b"", "refused", False, OK),
        ("standard", 410, b"", "gone", True, OK),
        ("signing", 410, b"", "gone", True, OK),
        ("yousign", 410, b"", "refused", False, OK),
        ("insigner", 410, b"", "refused", False, OK),
        ("webhooks_uno", 410, b"", "refused", False, OK),
        ("standard", 429, b"", "throttled", False, FAIL),
        ("standard", 429, b"retry-after: 7\r\n", "throttled", False, FAIL),
        ("standard", 500, b"", "refused", False, FAIL),
        ("standard", 500, b"retry-after: 7\r\n", "refused", False, FAIL),
        ("standard", 502, b"", "refused", False, FAIL),
        ("standard", 502, b"retry-after: 7\r\n", "throttled", False, FAIL),
        ("standard", 503, b"retry-after: 7\r\n", "throttled", False, FAIL),
        ("standard", 504, b"retry-after: 7\r\n", "throttled", False, FAIL),
        ("standard", 503, b"retry-after: junk\r\n", "refused", False, FAIL),
        ("standard", 599, b"", "refused", False, FAIL),
    ],
)
def test_a_status_means_what_the_table_says(
    profile: str, status: int, headers: bytes, name: str, terminal: bool, breaker: str
) -> None:
    found = seen(profile, status=status, headers=headers)
    assert (found.name, found.terminal, found.breaker) == (name, terminal, breaker)


@pytest.mark.parametrize("status", [400, 401, 403, 409, 413, 422])
def test_a_verdict_that_says_not_retryable_ends_the_delivery(status: int) -> None:
    body = b'{"retryable": false, "code": "unknown_schema"}'
    found = seen(status=status, headers=VERDICT, body=body)
    assert (found.name, found.terminal, found.key) == ("rejected", True, False)
    assert seen("yousign", status=status, headers=VERDICT, body=body).name == "refused"


@pytest.mark.parametrize("status", [402, 404, 418, 500, 503])
def test_a_verdict_counts_only_with_the_statuses_of_the_table(status: int) -> None:
    body = b'{"retryable": false}'
    assert seen(status=status, headers=VERDICT, body=body).name == "refused"


@pytest.mark.parametrize("code", ["bad_signature", "unknown_key"])
def test_a_verdict_about_the_key_is_no_verdict_about_the_event(code: str) -> None:
    found = seen(status=401, headers=VERDICT, body=b'{"retryable": false, "code": "%s"}' % code.encode())
    assert (found.name, found.terminal, found.key) == ("rejected", False, True)


@pytest.mark.parametrize("failure", sorted(BY_FAILURE))
def test_every_failure_of_the_transport_has_an_outcome(failure: str) -> None:
    found = seen(failure=failure)
    assert found.name == BY_FAILURE[failure]
    assert found.ours is (failure in OURS)
    if failure in OURS or found.name == "blocked":
        assert found.breaker == UNCOUNTED
    elif found.name == "redirected":
        assert found.breaker == OK
    else:
        assert found.breaker == FAIL


def test_every_failure_the_transport_can_report_is_known() -> None:
    from typing import get_args

    from surehook.ports.transport import Failure

    assert set(get_args(Failure)) == set(BY_FAILURE)


def test_a_first_lane_timeout_is_not_counted_but_a_probe_and_the_retry_lane_are() -> None:
    assert seen(failure="timeout", lane=FIRST).breaker == UNCOUNTED
    assert seen(failure="timeout", lane=FIRST, probe=True).breaker == FAIL
    assert seen(failure="timeout", lane=RETRY).breaker == FAIL


def test_what_the_receiver_asks_for_is_reported_whole() -> None:
    assert seen(status=429, headers=b"retry-after: 7200\r\n").retry_after_s == 7200
    assert seen(status=429).retry_after_s is None


@pytest.mark.parametrize("lane", [FIRST, RETRY])
def test_a_call_is_late_wherever_its_time_ran_out(lane: int) -> None:
    late = {failure for failure in BY_FAILURE if seen(failure=failure, lane=lane).late}
    assert late == {"timeout", "dns_timeout", "connect_timeout", "tls_timeout", "token_timeout"}
