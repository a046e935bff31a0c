"""`manage.py surehook_release` and `surehook_grant`, and a word said inside a transaction that is open."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

import surehook.inbox.django as app
from tests.inbox import djangos
from tests.inbox.djangos import Inbox
from tests.inbox.house import Clock, call, message, partner
from tests.inbox.test_documents import STRICT, story, table

WORDS = {"by": "ana", "reason": "seen on paper"}


@pytest.fixture
def inbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Inbox]:
    """The application's inbox, in which the second of three events of `doc_1` is missing."""
    with djangos.at(f"sqlite:///{tmp_path / 'shop.db'}"):
        inbox = Inbox([partner()], clock=Clock())
        inbox.follow(table(**STRICT), "partner")
        inbox.on("partner")(lambda event, tx: None)
        monkeypatch.setitem(vars(app), "inbox", inbox)
        for number in (1, 4):
            event_id, type, data = story("doc_1")[number - 1]
            assert inbox.receive(call(*message(event_id, type, **data), at=inbox.clock.now())).status == 200
        inbox.work()
        yield inbox
        inbox.close()


def said(name: str, *words: str, **options: str) -> str:
    out = StringIO()
    call_command(name, *words, stdout=out, **(WORDS | options))
    return out.getvalue()


def test_a_release_is_said_and_the_next_worker_carries_it_out(inbox: Inbox):
    assert said("surehook_release", "doc_1") == "the next worker lets it go on\n"
    inbox.work()
    assert inbox.explain("doc_1")[-1] == "now signed; number 5 comes next"
    with pytest.raises(CommandError, match="nothing is held for doc_1") as caught:
        said("surehook_release", "doc_1")
    assert caught.value.returncode == 7


def test_a_token_is_granted_and_printed(inbox: Inbox):
    assert said("surehook_grant", "doc_1", token="t1") == "t1\n"
    assert said("surehook_grant", "doc_1").startswith("rmt_")
    assert any("a remediation token was granted by ana" in line for line in inbox.explain("doc_1"))
    with pytest.raises(CommandError, match="knows no document"):
        said("surehook_grant", "doc_2")


@pytest.mark.parametrize("command", ["surehook_release", "surehook_grant"])
def test_a_document_that_nobody_has_heard_of_has_the_exit_code_of_the_command_line(
    inbox: Inbox, command: str
):
    with pytest.raises(CommandError, match=r"^the inbox knows no document 'doc_2'$") as caught:
        said(command, "doc_2")
    assert caught.value.returncode == 4


def test_a_word_commits_with_the_transaction_that_it_was_said_in(inbox: Inbox):
    with transaction.atomic():
        assert inbox.release("doc_1", **WORDS)
        transaction.set_rollback(True)
    inbox.work()
    assert inbox.explain("doc_1")[-2].startswith("now sent")
    with transaction.atomic():
        inbox.release("doc_1", **WORDS)
    inbox.work()
    assert inbox.explain("doc_1")[-1].startswith("now signed")


@pytest.mark.parametrize("workers", [0, -1, 65])
def test_workers_are_as_many_as_the_help_says(inbox: Inbox, workers: int):
    with pytest.raises(CommandError, match=f"--workers: 1 to 64, and not {workers}"):
        call_command("surehook_work", workers=workers, stdout=StringIO())
