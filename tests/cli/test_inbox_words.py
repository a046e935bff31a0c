"""`surehook inbox release` and `grant`: a person's words about a document that waits."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from surehook.inbox import Inbox, sources
from tests.cli.conftest import Run
from tests.inbox.house import SECRET, call, message

PLACE = "waiting_inbox:inbox"
WORDS = ("--by", "ana", "--reason", "seen on paper")
ABSENT = "inb_01ka9x7k2ceabtx1qs2yq6fq1d"
MODULE = f"""
from msgspec.structs import replace
from surehook.inbox import Inbox, sources
from surehook.inbox.workflow import SIGNING, Fields

inbox = Inbox("sqlite:///waiting.db", [sources.named("standard", name="partner", secret="{SECRET}")])
inbox.create_tables()
inbox.follow(replace(SIGNING, fields=Fields(document="doc", sequence="n", party="signer", replaces="for")), "partner", "document.*")
inbox.on("partner", "document.*")(lambda event, tx: None)
"""


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An inbox in which the second of three events of `c1` is missing."""
    (tmp_path / "waiting_inbox.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "waiting_inbox", raising=False)  # another folder's
    import waiting_inbox

    for n, kind in ((1, "sent"), (3, "signed")):
        event = message(f"e{n}", f"document.{kind}", doc="c1", n=n)
        assert waiting_inbox.inbox.receive(call(*event, at=round(time.time() * 1000))).status == 200
    waiting_inbox.inbox.work()
    return waiting_inbox.inbox


def test_a_release_is_said_and_the_next_worker_carries_it_out(surehook: Run, waiting) -> None:
    ran = surehook("inbox", "release", PLACE, "c1", *WORDS)
    assert (ran.code, ran.err) == (0, "the next worker lets it go on\n")
    waiting.work()
    told = surehook("inbox", "explain", PLACE, "c1").out
    assert "number 2 given up by ana: seen on paper [gave_up]" in told
    assert "now signed" in told
    ran = surehook("inbox", "release", PLACE, "c1", *WORDS)
    assert (ran.code, ran.err) == (7, "nothing is held for c1\n")


def test_a_token_is_granted_and_printed(surehook: Run, waiting) -> None:
    assert surehook("inbox", "grant", PLACE, "c1", "--token", "t1", *WORDS).out == "t1\n"
    assert surehook("inbox", "grant", PLACE, "c1", *WORDS).out.startswith("rmt_")
    assert "a remediation token was granted by ana" in surehook("inbox", "explain", PLACE, "c1").out


@pytest.mark.parametrize("command", ["release", "grant"])
def test_nobody_says_a_word_without_a_name_and_a_reason(surehook: Run, waiting, command: str) -> None:
    assert surehook("inbox", command, PLACE, "c1").code == 2


@pytest.mark.parametrize("workers", ["0", "-1", "1.5", "65"])
def test_a_command_refuses_a_number_of_workers_that_is_none(surehook: Run, waiting, workers: str) -> None:
    ran = surehook("inbox", "work", PLACE, "--workers", workers)
    assert ran.code == 2
    assert "'--workers'" in ran.err


@pytest.mark.parametrize("command", [("events",), ("events", "--json"), ("replay", "--reason", "again")])
def test_a_source_that_is_nowhere_is_named_with_the_nearest(
    surehook: Run, waiting, command: tuple[str, ...]
) -> None:
    ran = surehook("inbox", command[0], PLACE, *command[1:], "--source", "partnr")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines() == [
        "error: source: this inbox has no source 'partnr'",
        "hint:  did you mean 'partner'?",
    ]


def test_who_lists_what_failed_is_told_of_the_states(surehook: Run, waiting) -> None:
    ran = surehook("inbox", "events", PLACE, "--state", "failed")
    assert (ran.code, ran.out) == (2, "")
    assert "`dead` has failed and is given up" in ran.err and "finalized'" not in ran.err
    assert "did you mean 'dead'?" in surehook("inbox", "events", PLACE, "--state", "deed").err


def test_a_replay_of_everything_is_refused_with_the_options_that_say_what(surehook: Run, waiting) -> None:
    ran = surehook("inbox", "replay", PLACE, "--reason", "again")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[1] == "hint:  --source, --type, --state, …"


@pytest.mark.parametrize("command", ["show", "finalize"])
def test_the_sender_s_id_is_told_from_a_reference_by_the_command_that_finds_it(
    surehook: Run, waiting, command: str
) -> None:
    ran = surehook("inbox", command, PLACE, "e1")
    assert ran.code != 0 and ran.out == ""
    assert ran.err.splitlines()[1] == (
        f"hint:  its `ref`, such as inb_01ka…; `surehook inbox events {PLACE} --id …` finds it by the sender's id"
    )


def test_a_source_that_an_inbox_defines_may_have_nothing_that_fits(surehook: Run, waiting) -> None:
    ran = surehook("inbox", "events", PLACE, "--source", "partner", "--state", "dead")
    assert (ran.code, ran.err) == (0, "no event matches\n")


def test_a_source_that_is_no_longer_defined_has_its_events(surehook: Run, waiting) -> None:
    waiting.add(sources.named("standard", name="other", secret=SECRET))
    del waiting.receiver.sources["partner"]
    ran = surehook("inbox", "events", PLACE, "--source", "partner", "--json")
    assert [one["id"] for one in ran.json["data"]] == ["e3", "e1"]
    ran = surehook("inbox", "events", PLACE, "--source", "partner", "--state", "dead")
    assert (ran.code, ran.err) == (0, "no event matches\n")


def test_an_inbox_that_only_looks_has_no_sources_to_name(
    surehook: Run, waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["waiting_inbox"], "looks", Inbox("sqlite:///waiting.db"), raising=False)
    ran = surehook("inbox", "events", "waiting_inbox:looks", "--source", "partnr")
    assert (ran.code, ran.err) == (0, "no event matches\n")


def test_a_history_is_of_one_type_and_ends_with_the_last_decisions(surehook: Run, waiting) -> None:
    def explained(*words):
        return surehook("inbox", "explain", PLACE, "c1", *words)

    assert explained("--document-type", "signing").out == explained().out
    last = explained("--limit", "1").out
    assert last.startswith("the last 1 decisions; earlier ones are not shown")
    assert "document.sent e1" not in last
    assert "document.signed e3" in last
    ran = explained("--document-type", "leave")
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith("the inbox knows no document c1 of type leave")


@pytest.mark.parametrize("command", ["explain", "release", "grant"])
@pytest.mark.parametrize(
    ("flags", "whose"), [((), "(without a tenant)"), (("--tenant", "acme"), "of tenant acme")]
)
def test_a_document_that_nobody_has_heard_of_is_not_found(
    surehook: Run, waiting, command: str, flags: tuple[str, ...], whose: str
) -> None:
    words = () if command == "explain" else WORDS
    ran = surehook("inbox", command, PLACE, "c2", *words, *flags)
    assert (ran.code, ran.out) == (4, "")
    assert ran.err == f"the inbox knows no document c2 {whose}\n"


def test_a_type_of_document_that_nobody_has_heard_of_is_not_found(surehook: Run, waiting) -> None:
    for command in ("release", "grant"):
        ran = surehook("inbox", command, PLACE, "c1", *WORDS, "--document-type", "invoice")
        assert ran.code == 4
        assert ran.err == "the inbox knows no document c1 of type invoice (without a tenant)\n"


@pytest.mark.parametrize(
    "command", [("show",), ("finalize",), ("reject", "--code", "late")], ids=lambda words: str(words[0])
)
def test_an_event_that_is_not_there_is_not_found(surehook: Run, waiting, command: tuple[str, ...]) -> None:
    ran = surehook("inbox", command[0], PLACE, ABSENT, *command[1:])
    assert (ran.code, ran.err) == (4, f"the inbox has no event {ABSENT}\n")


@pytest.mark.parametrize("command", [("finalize",), ("reject", "--code", "late")])
def test_an_event_that_was_not_waiting_for_a_decision_is_there(
    surehook: Run, waiting, command: tuple[str, ...]
) -> None:
    (event,) = waiting.events(id="e1")
    ran = surehook("inbox", command[0], PLACE, event.ref, *command[1:])
    assert (ran.code, ran.err) == (
        7,
        f"{event.ref} is finalized: only an event that is `processed` waits for that (on(…, final=False))\n",
    )


def test_events_are_listed_and_replayed_since_a_duration_ago(surehook: Run, waiting) -> None:
    assert "e1" in surehook("inbox", "events", PLACE, "--since", "1h").out
    assert "e1" not in surehook("inbox", "events", PLACE, "--until", "1h").out
    ran = surehook("inbox", "replay", PLACE, "--reason", "again", "--since", "1h", "--id", "e1")
    assert (ran.code, ran.out) == (0, "1 event will be processed again\n")
    ran = surehook("inbox", "events", PLACE, "--since", "soon")
    assert (ran.code, "'soon' is not a time" in ran.err) == (2, True)


def test_a_prune_without_end_is_refused(surehook: Run, waiting) -> None:
    ran = surehook("inbox", "prune", PLACE, "--events-days", "inf")
    assert (ran.code, "at most 1,000,000 days" in ran.err) == (2, True)


@pytest.mark.parametrize("command", [("status",), ("stats",), ("events",), ("prune",)])
def test_a_database_that_is_not_there_is_named_and_not_made(
    surehook: Run, waiting, tmp_path: Path, command: tuple[str, ...]
) -> None:
    waiting.close()
    for path in tmp_path.glob("waiting.db*"):
        path.unlink()
    done = surehook("inbox", *command, PLACE)
    assert done.code == 2
    assert f"is not there: {tmp_path / 'waiting.db'}" in done.err
    assert "upgrade waiting_inbox:inbox" in done.err
    assert not list(tmp_path.glob("waiting.db*"))
    assert surehook("inbox", "upgrade", PLACE).code == 0
