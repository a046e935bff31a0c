"""Ctrl-C while the server is at it, or its loss: what may have been done is said, and how to find out."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Run
from tests.cli.fake_api import DELIVERY, ENDPOINT
from tests.client.stand_in import Heard, answer, stand_in


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """The handler that a terminal's program has; a worker of the test run may ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(heard: Heard) -> bytes | None:
    os.kill(os.getpid(), signal.SIGINT)
    return None


def test_an_interrupted_send_names_the_event_by_which_it_can_be_found_or_repeated(surehook: Run) -> None:
    with stand_in(interrupted) as server:
        ran = surehook("send", "a.b", "--tenant", "acme", env={"SUREHOOK_URL": server.url})
        keyed = surehook("send", "a.b", "--tenant", "acme", "--key", "k-1", env={"SUREHOOK_URL": server.url})
    event = server.heard[0].json["id"]
    assert ran.code == keyed.code == 130
    assert ran.out == ""
    assert f"may have been accepted: look with `surehook events show {event}`" in ran.err
    assert f"--id {event}" in ran.err
    assert "--key k-1 again is the same event" in keyed.err


@pytest.mark.parametrize(
    ("words", "look"),
    [
        (("endpoints", "create", "https://a.example", "--tenant", "acme"), "surehook endpoints list"),
        (("endpoints", "pause", ENDPOINT), f"surehook endpoints show {ENDPOINT}"),
        (("deliveries", "cancel", DELIVERY), f"surehook deliveries show {DELIVERY}"),
        (("tenants", "create", "Acme"), "surehook tenants list"),
    ],
)
def test_an_interrupted_change_says_where_to_look(surehook: Run, words: tuple[str, ...], look: str) -> None:
    with stand_in(interrupted) as server:
        ran = surehook(*words, env={"SUREHOOK_URL": server.url})
    assert (ran.code, ran.out) == (130, "")
    assert ran.err == f"interrupted; it may have been done: look with `{look}`\n"


def test_an_interrupted_test_call_has_left_nothing_to_look_for(surehook: Run) -> None:
    with stand_in(interrupted) as server:
        ran = surehook("endpoints", "test", ENDPOINT, env={"SUREHOOK_URL": server.url})
    assert (ran.code, ran.out, ran.err) == (130, "", "")


def test_after_an_interrupted_rotation_nobody_looks_for_a_secret_that_is_shown_once(surehook: Run) -> None:
    with stand_in(interrupted) as server:
        ran = surehook("endpoints", "rotate-secret", ENDPOINT, "--yes", env={"SUREHOOK_URL": server.url})
    assert ran.code == 130
    assert "rotate it again" in ran.err


def test_an_interrupted_look_has_changed_nothing_and_says_nothing(surehook: Run) -> None:
    with stand_in(interrupted) as server:
        ran = surehook("endpoints", "show", ENDPOINT, env={"SUREHOOK_URL": server.url})
    assert (ran.code, ran.out, ran.err) == (130, "", "")


def test_what_was_shown_is_in_no_doubt(surehook: Run) -> None:
    def accepts(heard: Heard) -> bytes | None:
        return answer(202, {"id": heard.json["id"], "deliveries": 1}) if heard.body else interrupted(heard)

    with stand_in(accepts) as server:
        ran = surehook("send", "a.b", "--tenant", "acme", "--wait", "9s", env={"SUREHOOK_URL": server.url})
    assert ran.code == 130
    assert "1 delivery" in ran.out
    assert "may have" not in ran.err


@pytest.mark.parametrize("how", ["outcome_unknown", "no answer"])
def test_who_loses_the_server_or_its_ledger_meanwhile_is_told_the_same(surehook: Run, how: str) -> None:
    problem = {"code": "outcome_unknown", "detail": "nobody knows", "hint": "publish it again"}
    with stand_in(lambda heard: answer(503, problem) if how == "outcome_unknown" else None) as server:
        ran = surehook("send", "a.b", "--tenant", "acme", env={"SUREHOOK_URL": server.url})
    event = server.heard[-1].json["id"]
    assert f"the event may have been accepted: look with `surehook events show {event}`" in ran.err
    assert "publish it again" not in ran.err
    assert ran.code == (1 if how == "outcome_unknown" else 6)


def test_who_is_told_that_nothing_was_accepted_is_in_no_doubt(surehook: Run) -> None:
    problem = {
        "code": "ledger_unavailable",
        "detail": "not accepted: the ledger is away",
        "hint": "publish it again",
    }
    with stand_in(lambda heard: answer(503, problem)) as server:
        ran = surehook("send", "a.b", "--tenant", "acme", env={"SUREHOOK_URL": server.url})
    assert ran.code == 1
    assert "not accepted: the ledger is away (ledger_unavailable)" in ran.err
    assert "may have been" not in ran.err
