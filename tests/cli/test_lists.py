"""Lists at the widths of real terminals: what matters is in sight, ids are whole, no line is longer than the screen."""

from __future__ import annotations

import io
from typing import Any

import pytest

from surehook.cli.delivery_text import COLUMNS, row
from surehook.cli.tables import Column, fitted, length
from tests.cli.conftest import Run
from tests.cli.fake_api import DELIVERY, ENDPOINT, delivery, endpoint, event, fake_api

WIDTHS = (80, 110, 160)


def parked(reason: str, **more: Any) -> dict[str, Any]:
    given = {"state": "parked", "reason": reason, "due_at": None, "outcome": None, "unknown": False} | more
    return delivery(**given)


FULL = [
    delivery(),
    delivery(state="delivered", outcome="delivered", unknown=False, finished_at="2026-11-21T10:46:00.000Z"),
    delivery(state="dead", outcome="unreachable", finished_at="2026-11-21T10:46:00.000Z", attempts=12),
    parked("inactive"),
    parked("breaker", due_at="2126-11-21T10:46:00.000Z"),
]
for long in FULL:
    long["type"], long["tenant"] = "document.signed.by.everyone", "acme-industries-emea"


def lines(columns: Any, entries: list[dict[str, Any]], width: int) -> list[str]:
    rows = [[str(value) for value in row(entry)] for entry in entries]
    return fitted(columns, rows, width, io.StringIO())


@pytest.mark.parametrize("width", WIDTHS)
def test_a_delivery_is_one_line_with_state_result_attempts_age_type_and_id(width: int) -> None:
    head, *body = lines(COLUMNS, FULL, width)

    assert head.split()[:6] == ["ID", "STATE", "RESULT", "TRY", "AGE", "TYPE"]
    assert len(body) == len(FULL) and all(length(line) <= width for line in (head, *body))
    for line, entry in zip(body, FULL, strict=True):
        assert line.startswith(DELIVERY) and entry["state"] in line and entry["type"][:7] in line
    assert "parked inactive" in body[3] and "unreacha" in body[2] and " 12 " in body[2]


def test_a_wider_terminal_shows_when_next_whose_and_where_to() -> None:
    heads = [lines(COLUMNS, FULL, width)[0].split() for width in WIDTHS]

    assert [len(head) for head in heads] == sorted(len(head) for head in heads)
    assert "NEXT" in heads[1] and heads[2][-3:] == ["NEXT", "TENANT", "ENDPOINT"]


def test_a_narrow_terminal_gets_a_block_for_each_entry_with_everything_in_it() -> None:
    shown = lines(COLUMNS, FULL, 60)

    assert all(length(line) <= 60 for line in shown)
    assert [line for line in shown if not line.startswith(" ")] == [DELIVERY] * len(FULL)
    text = "\n".join(shown)
    assert "state parked inactive" in text and f"endpoint {ENDPOINT}" in text and "next resume" in text


def test_a_cut_text_says_so_and_wide_letters_count_twice() -> None:
    columns = (Column("id"), Column("what", least=6))
    shown = fitted(columns, [["x", "漢字漢字漢字"], ["y", "short"]], 12, io.StringIO())

    assert shown == ["ID  WHAT", "x   漢字漢…", "y   short"]


def test_the_width_is_that_of_the_terminal_a_pipe_and_wide_get_everything(surehook: Run) -> None:
    with fake_api(**{"GET /v1/deliveries": FULL}) as api:
        narrow = surehook("deliveries", "list", env={**api.env, "COLUMNS": "80"})
        wide = surehook("deliveries", "list", "--wide", env={**api.env, "COLUMNS": "80"})
        piped = surehook("deliveries", "list", env={**api.env, "COLUMNS": ""})

    assert max(map(len, narrow.out.splitlines())) <= 80 and ENDPOINT not in narrow.out
    assert wide.out == piped.out
    assert ENDPOINT in wide.out and "document.signed.by.everyone" in wide.out and "…" not in wide.out


def test_what_strangers_wrote_does_not_steer_the_terminal(surehook: Run) -> None:
    with fake_api(**{"GET /v1/events": [event(subject="a\x1b[2Jb\nc")]}) as api:
        ran = surehook("events", "list", env=api.env)

    assert "\x1b" not in ran.out and len(ran.out.splitlines()) == 2


@pytest.mark.parametrize("width", ["60", "80", "160"])
def test_every_list_fits(surehook: Run, width: str) -> None:
    breaker = {
        "tenant": "acme-industries", "url": "https://hooks.example.com/" + "x" * 80, "state": "open", "reason": "failures",
        "failures": 31, "calls": 40, "window_s": 600, "opened_at": None, "probe_at": "2126-11-21T10:46:00.000Z",
        "parked": 118,
    }  # fmt: skip
    notice = {
        "id": "ntc_1", "at": "2026-11-21T10:46:00.000Z", "kind": "delivery.unfinalized", "tenant": "acme-industries",
        "endpoint": ENDPOINT, "delivery": DELIVERY, "detail": "x" * 100,
    }  # fmt: skip
    values: dict[str, Any] = {
        "GET /v1/deliveries": FULL,
        "GET /v1/dead-letters": FULL,
        "GET /v1/events": [event(tenant="acme-industries-emea", subject="s" * 90)],
        "GET /v1/endpoints": [endpoint(url="https://hooks.example.com/" + "x" * 80, event_types=["a.*"] * 9)],
        "GET /v1/notices": [notice],
        "GET /v1/breakers": {"data": [breaker], "next": None},
    }
    with fake_api(**values) as api:
        for noun in ("deliveries", "dead-letters", "events", "endpoints", "notices", "breakers"):
            ran = surehook(noun, "list", env={**api.env, "COLUMNS": width})
            assert ran.code == 0, ran.err
            assert max(map(length, ran.out.splitlines())) <= int(width), (noun, ran.out)


def test_the_tenant_of_the_settings_holds_for_lists_and_a_star_is_all(surehook: Run) -> None:
    with fake_api(**{"GET /v1/deliveries": [], "GET /v1/endpoints": [endpoint()]}) as api:
        env = {**api.env, "SUREHOOK_TENANT": "acme"}
        ran = surehook("deliveries", "list", env=env)
        surehook("endpoints", "list", env=env)
        surehook("endpoints", "list", "--tenant", "globex", env=env)
        surehook("endpoints", "list", "--tenant", "*", env=env)

    assert ["tenant=acme" in asked for asked in api.asked] == [True, True, False, False]
    assert "tenant=globex" in api.asked[2] and "tenant" not in api.asked[3]
    assert "of tenant acme" in ran.err


def test_a_delivery_that_is_held_says_that_it_may_wait_for_its_turn(surehook: Run) -> None:
    path = f"/v1/deliveries/{DELIVERY}"
    with fake_api(**{f"GET {path}": delivery(state="sending"), f"GET {path}/attempts": []}) as api:
        sending = surehook("deliveries", "show", DELIVERY, env=api.env).out
        api.values[f"GET {path}"] = delivery(state="scheduled")
        scheduled = surehook("deliveries", "show", DELIVERY, env=api.env).out

    assert "held         by a process: it waits for its turn there, or for its receiver's answer" in sending
    assert "by a process" not in scheduled


def test_a_parked_delivery_says_what_it_waits_for_and_when(surehook: Run) -> None:
    path = f"/v1/deliveries/{DELIVERY}"
    with fake_api(**{f"GET {path}": parked("paused"), f"GET {path}/attempts": []}) as api:
        paused = surehook("deliveries", "show", DELIVERY, env=api.env).out
        api.values[f"GET {path}"] = parked("breaker", due_at="2126-11-21T10:46:00.000Z")
        behind_breaker = surehook("deliveries", "show", DELIVERY, env=api.env).out

    assert f"surehook endpoints resume {ENDPOINT}" in paused and "next probe" not in paused
    assert "next probe" in behind_breaker and "(in " in behind_breaker


def test_sending_and_waiting_says_at_once_that_the_endpoint_is_paused(surehook: Run) -> None:
    accepted = {"id": "evt_" + "0" * 26, "deliveries": 1}
    values = {"POST /v1/events": accepted, f"GET /v1/events/{accepted['id']}/deliveries": [parked("paused")]}
    with fake_api(**values) as api:
        # It does not wait for the hour.
        ran = surehook("send", "a.b", "--tenant", "acme", "--wait", "1h", env=api.env)

    assert ran.code == 7 and f"surehook endpoints resume {ENDPOINT}" in ran.err


@pytest.mark.parametrize(
    "words", [("deliveries", "list"), ("send",), ("lanes",), ("inbox", "stats"), ("migrate", "up")]
)
def test_every_command_knows_h(surehook: Run, words: tuple[str, ...]) -> None:
    ran = surehook(*words, "-h")

    assert ran.code == 0 and ran.out.startswith(f"Usage: surehook {' '.join(words)}")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete_commands(surehook: Run, shell: str) -> None:
    assert "_SUREHOOK_COMPLETE" in surehook("completion", shell).out


def test_what_a_shell_asks_is_answered(surehook: Run, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"_SUREHOOK_COMPLETE": "complete_bash", "COMP_WORDS": "surehook deliveries re", "COMP_CWORD": "2"}
    with pytest.raises(SystemExit):
        surehook(env=asked)

    assert capsys.readouterr().out.split() == ["resend"]
