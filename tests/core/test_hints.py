"""Hints: one for every name of the closed set, none that says more than it should, and what the policy makes of it."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from surehook.core import hints
from surehook.core.delivery import decide
from surehook.core.model import FIRST, RETRY, Attempt, Delivery
from surehook.core.outcome import classify, succeeds
from surehook.core.policy import Policy, parse_policy
from surehook.core.profiles import PROFILES
from surehook.ports.transport import Failure

NAMES = sorted(PROFILES)


def policy(**differs: Any) -> Policy:
    return parse_policy(differs or None, PROFILES)


def answered(
    by: Policy,
    status: int | None = None,
    *,
    failure: str | None = None,
    headers: dict[str, str] | None = None,
    body: Any = None,
) -> Attempt:
    """An attempt as it is judged under a policy."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items()).encode()
    raw = b"" if body is None else json.dumps(body).encode()
    outcome = classify(
        policy=by, success=succeeds(by), lane=RETRY, probe=False, status=status, failure=failure, headers=lines,
        body=raw, now=0,
    )  # fmt: skip
    return Attempt(
        b"d", 1, "attempt", FIRST, 0, outcome.name, False, status, failure, headers=lines, body=raw
    )


def verdict(code: str | None) -> dict[str, Any]:
    return {
        "headers": {"content-type": "application/problem+json"},
        "body": {"title": "no", "retryable": False, "code": code},
    }


def test_every_failure_has_a_hint_and_no_hint_lacks_its_failure() -> None:
    assert set(hints.BY_FAILURE) == set(get_args(Failure))


def test_hints_are_whole_sentences() -> None:
    rules = [text for name, text in vars(hints).items() if name.isupper() and isinstance(text, str)]
    assert len(rules) > 8
    for text in (*hints.BY_FAILURE.values(), *hints.BY_STATUS.values(), *rules):
        assert text[0].isupper() and text[-1] in ".?"


def test_a_failure_speaks_before_a_status_and_a_success_is_silent() -> None:
    standard, yousign = PROFILES["standard"], PROFILES["yousign"]
    assert (
        hints.hint(answered(standard, 302, failure="redirect_forbidden"), standard)
        == (hints.BY_FAILURE["redirect_forbidden"])
    )
    assert hints.hint(answered(standard, 200), standard) is None
    assert hints.hint(answered(yousign, 302), yousign) is None
    assert hints.hint(answered(standard, 404), standard) == hints.BY_STATUS[404]
    assert hints.hint(answered(standard, 418), standard) == hints.CLIENT_ERROR
    assert hints.hint(answered(standard, 599), standard) == hints.SERVER_ERROR
    assert hints.hint(Attempt(b"d", 1, "ended", FIRST, 0), standard) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_410_ends_where_the_policy_says_so_and_else_is_a_refusal(name: str) -> None:
    by = PROFILES[name]
    said = hints.hint(answered(by, 410), by)
    assert said == f"{hints.BY_STATUS[410]} {hints.GONE if 410 in by.terminal else hints.NOT_GONE}"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("status", [429, 503])
def test_a_receiver_that_asks_to_wait_is_waited_for_as_the_policy_says(name: str, status: int) -> None:
    by = PROFILES[name]
    said = hints.hint(answered(by, status, headers={"retry-after": "60"}), by)
    rule = (
        "Its policy waits as long as Retry-After asks, 1h 0m at most."
        if by.honour_retry_after
        else hints.OWN_SCHEDULE
    )
    assert said == f"{hints.BY_STATUS[status]} {rule}"


@pytest.mark.parametrize("name", NAMES)
def test_what_a_hint_says_of_waiting_is_what_is_decided(name: str) -> None:
    by = PROFILES[name]
    delivery = Delivery(b"d", b"e", b"p", "acme", "a.b", FIRST, 1, 0, 0, b"{}")
    waits = []
    for headers in (b"retry-after: 3000\r\n", b""):
        outcome = classify(
            policy=by, success=succeeds(by), lane=FIRST, probe=False, status=429, failure=None, headers=headers,
            body=b"", now=0,
        )  # fmt: skip
        waits.append(decide(delivery, outcome, policy=by, now=0, jitter=0.5).due_at)
    is_heeded = waits == [3_000_000, waits[1]]
    said = hints.hint(answered(by, 429, headers={"retry-after": "3000"}), by)
    assert said is not None and is_heeded == (hints.OWN_SCHEDULE not in said)


def test_the_longest_wait_is_the_policys_own() -> None:
    by = policy(honour_retry_after=90)
    said = hints.hint(answered(by, 429), by)
    assert said is not None and said.endswith("1m 30s at most.")
    assert hints.hint(answered(by, 503), by) == hints.BY_STATUS[503]  # nothing was asked for


def test_a_status_that_the_policy_calls_terminal_is_said_to_be() -> None:
    by = policy(terminal=[404])
    assert hints.hint(answered(by, 404), by) == f"{hints.BY_STATUS[404]} {hints.FINAL}"
    assert hints.hint(answered(by, 410), by) == f"{hints.BY_STATUS[410]} {hints.NOT_GONE}"


@pytest.mark.parametrize(
    ("code", "heeded"), [("bad_signature", hints.KEY), ("unknown_schema_version", hints.BELIEVED), (None, hints.BELIEVED)]
)  # fmt: skip
@pytest.mark.parametrize("name", NAMES)
def test_a_verdict_is_believed_where_the_policy_does(name: str, code: str | None, heeded: str) -> None:
    by = PROFILES[name]
    said = hints.hint(answered(by, 401, **verdict(code)), by)
    assert said == f"{hints.BY_STATUS[401]} {heeded if by.obey_verdicts else hints.UNHEEDED}"


@pytest.mark.parametrize(
    ("differs", "patience"),
    [
        ({}, "2s for a first call and 15s for a retry"),
        ({"profile": "insigner"}, "10s"),
        ({"timeouts": {"first": 0.5, "retry": 30}}, "0.5s for a first call and 30s for a retry"),
    ],
)
def test_a_timeout_names_the_policys_patience(differs: dict[str, Any], patience: str) -> None:
    by = policy(**differs)
    said = hints.hint(answered(by, failure="timeout"), by)
    assert said == f"{hints.BY_FAILURE['timeout']} Its policy waits {patience}."


def test_redirects_are_told_by_how_many_the_policy_follows() -> None:
    by, none = policy(redirects=1), PROFILES["standard"]
    assert hints.hint(answered(none, 302), none) == hints.UNFOLLOWED
    assert hints.hint(answered(by, 304), by) == hints.NOWHERE
    said = hints.hint(answered(by, 302, failure="redirect_limit"), by)
    assert said == f"{hints.BY_FAILURE['redirect_limit']} Its policy follows 1 in a row."


def test_without_an_endpoint_a_hint_says_what_holds_for_every_policy() -> None:
    by = PROFILES["standard"]
    assert hints.hint(answered(by, failure="timeout"), None) == hints.BY_FAILURE["timeout"]
    assert hints.hint(answered(by, 302), None) == hints.REDIRECT
    assert hints.hint(answered(by, 429), None) == hints.BY_STATUS[429]
