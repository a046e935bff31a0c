"""The error map, and the last resort."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from lab.ledger.ledger import MemoryLedger
from surehook.api import problems
from surehook.api.codes import CODES
from surehook.core.errors import (
    CommitUnknown,
    LedgerBroken,
    LedgerFull,
    LedgerUnavailable,
    NodeEvicted,
    Overloaded,
    Problem,
    TenantOverloaded,
    TooManyCalls,
)
from tests.api.house import House


@pytest.mark.parametrize(
    ("error", "status", "code", "retry_after"),
    [
        (Overloaded("full", retry_after_s=7), 503, "overloaded", "7"),
        (TenantOverloaded("full"), 429, "tenant_overloaded", "1"),
        (TooManyCalls("full", retry_after_s=5), 429, "too_many_calls", "5"),
        (LedgerUnavailable("locked"), 503, "ledger_unavailable", "1"),
        (LedgerBroken("EIO"), 503, "ledger_unavailable", "1"),
        (LedgerFull("floor"), 503, "disk_full", "30"),
        (NodeEvicted(b"x"), 503, "ledger_unavailable", "1"),
        (CommitUnknown("x"), 503, "ledger_unavailable", "1"),  # of a call that only reads
        (Problem("not_found", "no", status=404), 404, "not_found", None),
        (Problem("made_up_code", "no", status=418), 418, "made_up_code", None),
        (RuntimeError("secret words"), 500, "internal", None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_error_has_its_answer(
    error: Exception, status: int, code: str, retry_after: str | None
) -> None:
    refusal = problems.refusal(error)

    assert (refusal.status, refusal.shape.status, refusal.shape.code) == (status, status, code)
    assert dict(refusal.headers).get("retry-after") == retry_after
    assert refusal.shape.type == f"/problems/{code}" and refusal.shape.title
    assert b"secret words" not in refusal.body()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (LedgerUnavailable("locked"), "ledger_unavailable"),
        (LedgerBroken("EIO"), "outcome_unknown"),
        (CommitUnknown("x"), "outcome_unknown"),
        (LedgerFull("floor"), "disk_full"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_change_whose_outcome_nobody_knows_has_a_code_of_its_own(error: Exception, code: str) -> None:
    told = problems.refusal(error, changes=True)
    assert (told.status, told.shape.code) == (503, code)
    assert code == "disk_full" or "look" in str(told.shape.hint)


@pytest.mark.parametrize(
    ("error", "status"),
    [(LedgerUnavailable("locked"), 503), (LedgerFull("floor"), 503), (KeyError("boom"), 500)],
)
def test_trouble_in_the_ledger_is_a_problem_at_every_call(
    error: Exception, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    failing = False

    def faults(step: str) -> None:
        if failing:
            raise error

    house = House(MemoryLedger(faults=faults))
    house.tenant()
    endpoint = house.endpoint()
    failing = True
    calls: list[tuple[str, str, Any]] = [
        ("GET", "/v1/tenants", None), ("POST", "/v1/tenants", {"name": "x"}), ("GET", "/v1/lanes", None),
        ("PATCH", f"/v1/endpoints/{endpoint['id']}", {"status": "paused"}), ("DELETE", f"/v1/endpoints/{endpoint['id']}", None),
        ("POST", "/v1/replays", {"filter": {"tenant": "a"}}), ("GET", "/v1/events", None),
        ("POST", f"/v1/endpoints/{endpoint['id']}/test", None),
    ]  # fmt: skip
    with caplog.at_level(logging.CRITICAL):
        answers = [
            house.call(method, path, **({} if body is None else {"json": body}))
            for method, path, body in calls
        ]
    failing = False
    house.close()

    assert {answer.status_code for answer in answers} == {status}
    assert all(answer.headers["content-type"] == problems.MEDIA_TYPE for answer in answers)
    assert ("retry-after" in answers[0].headers) is (status == 503)


def test_a_defect_is_logged_whole_and_told_in_one_sentence(caplog: pytest.LogCaptureFixture) -> None:
    def faults(step: str) -> None:
        if step == "before tenants":
            raise KeyError("the cause")

    house = House(MemoryLedger(faults=faults))
    response = house.call("GET", "/v1/tenants")
    house.close()

    assert (response.status_code, response.json()["code"]) == (500, "internal")
    assert "the cause" not in response.text and "the cause" in caplog.text


# Codes of commands, of settings and of the outbox in an application, which no caller of the API can meet.
ELSEWHERE = {
    "bad_duration", "backup_exists", "backup_failed", "backup_unsupported", "bad_table", "no_transaction", "not_awaitable",
    "not_blocking", "unknown_transaction",
}  # fmt: skip


def test_the_map_holds_every_code_that_is_raised_and_no_other() -> None:
    """A code that is missing here would have no title, no page and no place in the document."""
    raised: set[str] = set()
    quoted: set[str] = set()
    for path in (Path(problems.__file__).parents[1]).rglob("*.py"):
        text = path.read_text()
        raised |= set(re.findall(r'(?:Problem|refuse)\(\s*"([a-z_]+)",', text))
        if path.name not in ("problems.py", "codes.py"):
            quoted |= set(re.findall(r'"([a-z_]+)"', text))
    made_here = {
        "overloaded",
        "tenant_overloaded",
        "too_many_calls",
        "disk_full",
        "ledger_unavailable",
        "outcome_unknown",
        "internal",
    }

    assert raised - ELSEWHERE - set(CODES) == set()
    assert set(CODES) - quoted - made_here == set()
