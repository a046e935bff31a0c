"""Commands answer plainly where somebody slipped, said no, or wants to know what became of something."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from surehook.cli import inputs
from surehook.cli.output import cell
from surehook.cli.serve import greet
from surehook.config import Settings
from surehook.core.model import State
from surehook.core.profiles import PROFILES
from tests.cli.conftest import Run
from tests.cli.fake_api import DELIVERY, ENDPOINT, EVENT, T0, attempt, delivery, endpoint, fake_api
from tests.client.stand_in import answer

ROTATE = f"POST /v1/endpoints/{ENDPOINT}/rotate-secret"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("module", ["typer", "surehook.cli.version"])
def test_ctrl_c_while_a_command_is_loaded_is_no_traceback(module: str) -> None:
    program = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *rest):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "sys.argv = ['surehook', 'version']\n"
        "from surehook.__main__ import main\n"
        "sys.exit(main())\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")


def test_stopping_all_other_secrets_asks_first(surehook: Run) -> None:
    with fake_api(**{ROTATE: endpoint(secret="whsec_new")}) as api:
        unasked = surehook("endpoints", "rotate-secret", ENDPOINT, "--overlap", "0s", env=api.env)
        assert (unasked.code, api.asked) == (2, [])
        ran = surehook("endpoints", "rotate-secret", ENDPOINT, "--overlap", "0s", "--yes", env=api.env)
        overlapping = surehook("endpoints", "rotate-secret", ENDPOINT, env=api.env)
    assert ran.code == 0 and "no other secret signs any more" in ran.err
    assert overlapping.code == 0 and "signs as well until 20" in overlapping.err


def test_no_is_an_answer_and_no_interruption(surehook: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    with fake_api() as api:
        ran = surehook("endpoints", "delete", ENDPOINT, env=api.env)
    assert (ran.code, api.asked) == (1, [])
    assert "nothing was done" in ran.err


def test_a_replay_without_a_filter_is_refused_before_anybody_is_asked(surehook: Run) -> None:
    with fake_api() as api:
        ran = surehook("replays", "create", env=api.env)
        dry = surehook("replays", "create", "--dry-run", env=api.env)
    assert (ran.code, dry.code, api.asked) == (2, 2, [])
    assert "--state dead" in ran.err


def test_an_endpoint_that_is_not_there_is_said_to_be_so(surehook: Run) -> None:
    with fake_api(**{"GET /v1/deliveries": [], "GET /v1/dead-letters": []}) as api:
        for noun in ("deliveries", "dead-letters"):
            ran = surehook(noun, "list", "--endpoint", ENDPOINT, env=api.env)
            assert ran.code == 0 and f"there is no endpoint {ENDPOINT}" in ran.err
        assert surehook("replays", "create", "--endpoint", ENDPOINT, "--yes", env=api.env).code == 4
        assert not any("replays" in asked for asked in api.asked)
        api.values[f"GET /v1/endpoints/{ENDPOINT}"] = endpoint()
        assert (
            "there is no endpoint"
            not in surehook("deliveries", "list", "--endpoint", ENDPOINT, env=api.env).err
        )


@pytest.mark.parametrize("noun", ["deliveries", "dead-letters", "events"])
@pytest.mark.parametrize(
    ("span", "words"),
    [(("--since", "5"), "is not a time"), (("--since", "30m", "--until", "2h"), "is not before --until 2h")],
)
def test_a_span_that_cannot_be_meant_is_refused(
    surehook: Run, noun: str, span: tuple[str, ...], words: str
) -> None:
    with fake_api() as api:
        ran = surehook(noun, "list", *span, env=api.env)
    assert (ran.code, api.asked) == (2, [])
    assert words in ran.err


def test_an_event_that_nobody_takes_is_said_to_be_so(surehook: Run) -> None:
    values = {"POST /v1/events": {"id": EVENT, "deliveries": 0}, f"GET /v1/events/{EVENT}/deliveries": []}
    with fake_api(**values) as api:
        ran = surehook("send", "a.b", "--tenant", "acme", "--wait", "0s", env=api.env)
    assert ran.code == 0
    assert "no endpoint of tenant acme takes a.b" in ran.err


def test_what_was_waited_for_is_in_the_one_document(surehook: Run) -> None:
    ended = delivery(state="delivered", finished_at=T0)
    values = {
        "POST /v1/events": {"id": EVENT, "deliveries": 1},
        f"GET /v1/events/{EVENT}/deliveries": [ended],
    }
    with fake_api(**values) as api:
        ran = surehook("send", "a.b", "--tenant", "acme", "--wait", "1s", "--json", env=api.env)
    assert ran.json == {"id": EVENT, "deliveries": 1, "outcomes": [ended]}


def test_what_did_not_arrive_names_its_endpoint_and_where_the_cause_is_shown(surehook: Run) -> None:
    dead = delivery(state="dead", outcome="unreachable", finished_at=T0)
    values = {
        "POST /v1/events": {"id": EVENT, "deliveries": 1},
        f"GET /v1/events/{EVENT}/deliveries": [dead],
    }
    with fake_api(**values) as api:
        ran = surehook("send", "a.b", "--tenant", "acme", "--wait", "0s", env=api.env)
    assert ran.code == 7
    assert f"why, at {ENDPOINT}: surehook deliveries show {DELIVERY}" in ran.err


def test_what_stays_parked_after_a_resend_says_why(surehook: Run) -> None:
    still = delivery(state="parked", reason="paused")
    with fake_api(**{f"POST /v1/deliveries/{DELIVERY}/resend": still}) as api:
        ran = surehook("resend", DELIVERY, env=api.env)
    assert ran.out == f"{DELIVERY}  parked (paused)\n"
    assert f"surehook endpoints resume {ENDPOINT}" in ran.err


@pytest.mark.parametrize(
    ("changes", "is_shown"),
    [
        ({"state": "parked", "reason": "inactive", "due_at": None}, False),
        ({"state": "cancelled", "finished_at": T0, "due_at": None}, False),
        ({"state": "retrying"}, True),
    ],
)
def test_a_next_time_is_told_only_where_there_is_one(
    surehook: Run, changes: dict[str, Any], is_shown: bool
) -> None:
    values = {
        f"GET /v1/deliveries/{DELIVERY}": delivery(**changes),
        f"GET /v1/deliveries/{DELIVERY}/attempts": [attempt()],
    }
    with fake_api(**values) as api:
        ran = surehook("deliveries", "show", DELIVERY, env=api.env)
    assert ("  next  " in ran.out) is is_shown


def test_a_narrow_list_of_notices_or_breakers_loses_nothing(surehook: Run) -> None:
    notice = {
        "id": "ntc_1", "at": T0, "kind": "delivery.unfinalized", "tenant": "acme-industries", "endpoint": ENDPOINT,
        "delivery": DELIVERY, "detail": "x" * 100,
    }  # fmt: skip
    breaker = {
        "tenant": "acme-industries", "url": "https://hooks.example.com/in", "state": "open", "reason": "failures",
        "failures": 31, "calls": 40, "window_s": 600, "opened_at": None, "probe_at": None, "parked": 118,
    }  # fmt: skip
    with fake_api(
        **{"GET /v1/notices": [notice], "GET /v1/breakers": {"data": [breaker], "next": None}}
    ) as api:
        notices = surehook("notices", "list", env={**api.env, "COLUMNS": "60"}).out
        breakers = surehook("breakers", "list", env={**api.env, "COLUMNS": "60"}).out
    assert DELIVERY in notices and "".join(notices.split()).count("x" * 100) == 1
    for words in ("failures", "31 of 40", "acme-industries"):
        assert words in breakers


def test_breakers_are_those_of_the_tenant_that_is_meant(surehook: Run) -> None:
    breakers = [
        {
            "tenant": tenant, "url": f"https://{tenant}.example/in", "state": "open", "reason": "failures",
            "failures": 1, "calls": 1, "window_s": 600, "opened_at": None, "probe_at": None, "parked": 0,
        }
        for tenant in ("acme", "beta")
    ]  # fmt: skip
    values: dict[str, Any] = {
        "GET /v1/breakers": {"data": breakers, "next": None},
        "GET /v1/tenants/acme": {"id": "acme"},
    }
    with fake_api(**values) as api:
        env = {**api.env, "SUREHOOK_TENANT": "acme"}
        mine = surehook("breakers", "list", "--json", env=env).json["data"]
        everybodys = surehook("breakers", "list", "--tenant", "*", "--json", env=env).json["data"]
        unknown = surehook("breakers", "list", "--tenant", "gamma", env=env)
    assert ([b["tenant"] for b in mine], len(everybodys), unknown.code) == (["acme"], 2, 4)


def test_nested_values_keep_what_belongs_together() -> None:
    schema = {
        "type": "object",
        "properties": {"signer": {"type": "object"}, "email": {}},
        "required": ["a", "b"],
    }
    assert cell(schema) == (
        'type=object  properties={"signer":{"type":"object"},"email":{}}  required=["a","b"]'
    )
    assert cell([{"a": 1}, "b"]) == '{"a":1}, b'


def test_help_shows_no_default_where_nothing_stays_as_it_was(surehook: Run) -> None:
    assert (
        "[default:"
        not in surehook("endpoints", "update", "-h").out.replace("SUREHOOK", "").partition("--server")[0]
    )
    assert "[default: (*)]" in " ".join(surehook("endpoints", "create", "-h").out.split())


def test_a_secret_of_another_kind_is_told_the_kinds_that_verify(surehook: Run) -> None:
    ran = surehook("listen", "0", "--secret", "short")
    assert "whpk_" in ran.err


def test_a_new_ledger_is_said_to_be_new_and_shown_with_its_whole_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    greet(Settings.load(), "http://127.0.0.1:1", None, is_new=True)
    greet(Settings.load(), "http://127.0.0.1:1", None)
    first, second = (text for text in capsys.readouterr().err.splitlines() if "ledger" in text)
    assert str(tmp_path / "surehook.db") in first and str(tmp_path / "surehook.db") in second
    assert ("NEW" in first, "NEW" in second) == (True, False)


def test_an_inbox_without_its_tables_says_how_they_are_made(
    surehook: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bare_inbox.py").write_text(
        "from sqlalchemy import create_engine\n"
        "from surehook.inbox import Inbox, sources\n"
        "inbox = Inbox(create_engine('sqlite:///inbox.db'), [sources.named('surehook', secret='whsec_' + 'A' * 32)])\n"
    )
    (tmp_path / "inbox.db").touch()
    monkeypatch.syspath_prepend(tmp_path)
    ran = surehook("inbox", "stats", "bare_inbox:inbox")
    assert ran.code == 1
    assert "create_tables()" in ran.err
    assert "defect" not in ran.err


def test_a_key_and_an_instant_that_moves_are_refused_before_they_conflict(surehook: Run) -> None:
    with fake_api(**{"POST /v1/events": {"id": EVENT, "deliveries": 1}}) as api:
        words = ("send", "a.b", "--tenant", "acme", "--key", "k", "--occurred-at")
        moving = surehook(*words, "5m", env=api.env)
        assert (moving.code, api.asked) == (2, [])
        assert "another instant each time" in moving.err
        assert surehook(*words, T0, env=api.env).code == 0


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("POST /v1/tenants", "surehook tenants create"),
        ("POST /v1/event-types", "surehook event-types create"),
        ("POST /v1/events sends to other endpoints", "`surehook send` sends to other endpoints"),
    ],
)
def test_hints_for_programs_are_told_in_commands(surehook: Run, said: str, shown: str) -> None:
    problem = {"code": "unknown_tenant", "detail": "There is none.", "field": "tenant", "hint": said}
    with fake_api(**{"POST /v1/events": answer(422, problem)}) as api:
        ran = surehook("send", "a.b", "--tenant", "acme", env=api.env)
    assert ran.code == 5
    assert shown in ran.err and "/v1/" not in ran.err


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("surehook deliveries list --state d", {"delivered", "dead", "dropped"}),
        ("surehook replays create --state de", {"dead", "delivered"}),
        ("surehook endpoints create --policy s", {"standard", "signing"}),
        ("surehook endpoints list --status p", {"paused"}),
    ],
)
def test_a_shell_is_offered_the_words_of_an_option(
    surehook: Run, capsys: pytest.CaptureFixture[str], typed: str, offered: set[str]
) -> None:
    asked = {
        "_SUREHOOK_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    with pytest.raises(SystemExit):
        surehook(env=asked)
    assert {word for word in capsys.readouterr().out.split() if word.startswith(typed.split()[-1])} == offered


def test_the_words_that_are_offered_are_those_there_are() -> None:
    assert set(inputs.profiles()) == set(PROFILES)
    assert set(inputs.states()) == set(get_args(State)) > set(inputs.end_states())


@pytest.mark.parametrize("noun", ["endpoints", "deliveries", "replays", "tenants", "event-types", "inbox"])
def test_no_summary_of_a_command_is_cut(surehook: Run, noun: str) -> None:
    ran = surehook(noun, "-h", env={"COLUMNS": "80"})
    assert "Commands:" in ran.out
    assert "..." not in ran.out.partition("Commands:")[2]
