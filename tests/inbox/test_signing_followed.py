"""The signing table in a trial, as docs/inbox.md has it: what a first-time user writes holds no document for ever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from surehook.core.errors import SettingsError
from surehook.inbox import sources
from surehook.inbox.testing import Trial
from surehook.inbox.workflow import SIGNING
from tests.inbox.house import SECRET


@pytest.fixture(params=["document.*", "*"])
def trial(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[Trial]:
    with Trial(f"sqlite:///{tmp_path / 'trial.db'}") as trial:
        trial.add(sources.named("surehook", secret=SECRET))
        trial.follow(SIGNING, "surehook", request.param)
        yield trial


def tell(trial: Trial, type: str, number: int, **data: Any) -> None:
    sent = trial.sign("surehook", type, data, subject="doc_1", sequence=number)
    assert trial.send(sent).status == 200
    trial.work()


def test_information_between_moves_holds_nothing_and_is_heard(trial):
    heard: list[tuple[str, str]] = []
    trial.on("surehook", "document.*")(lambda event, tx: heard.append((event.type, event.change.after)))
    trial.on("surehook", "identity.*")(lambda event, tx: heard.append((event.type, event.change.after)))
    tell(trial, "document.sent", 1)
    tell(trial, "document.signed", 3, signer="ana")
    tell(trial, "identity.verified", 2, signer="ana")
    assert heard == [("document.sent", "sent"), ("identity.verified", "sent"), ("document.signed", "signed")]


def test_a_table_is_followed_by_several_patterns_and_stays_one_workflow(trial):
    first = trial.follow(SIGNING, "surehook", "certificate.*")
    assert trial.follow(replace(SIGNING), "surehook", "identity.*") is first
    tell(trial, "certificate.attached", 1)
    tell(trial, "document.sent", 2)
    assert trial.states() == {"evt_1": "ignored", "evt_2": "finalized"}


def test_a_test_may_decide_on_a_processed_event_and_hear_what_is_undone(trial):
    undone: list[tuple[str, str, str]] = []
    trial.on("surehook", "document.*", final=False)(lambda event, tx: None)
    trial.on_undo("surehook")(
        lambda event, tx: undone.append((event.id, event.change.before, event.change.after))
    )
    tell(trial, "document.sent", 1)
    tell(trial, "document.viewed", 2)
    assert trial.finalize("evt_1") and not trial.finalize("evt_1")
    assert trial.reject("evt_2", "not_compliant", source="surehook")
    trial.work()
    assert undone == [("evt_2", "viewed", "sent")]
    assert trial.states() == {"evt_1": "finalized", "evt_2": "rejected"}
    with pytest.raises(SettingsError, match="0 events here have the id 'evt_9'"):
        trial.reject("evt_9")
    with pytest.raises(SettingsError, match="this inbox has no source 'stripe'"):
        trial.sign("stripe")


def test_a_test_may_say_a_persons_words(trial):
    trial.on("surehook", "document.*")(lambda event, tx: None)
    tell(trial, "document.sent", 1)
    tell(trial, "document.declined", 3, signer="ana")
    assert trial.release("doc_1")
    trial.work()
    assert trial.explain("doc_1")[-2] == "now declined; number 4 comes next"
    tell(trial, "document.signed", 4, signer="ana")
    assert trial.explain("doc_1")[-2] == "now declined; number 5 comes next"
    assert trial.grant("doc_1", "t1") == "t1"
    tell(trial, "document.signed", 5, signer="ana", remediation_token="t1")
    assert trial.explain("doc_1")[-2:] == ["now signed; number 6 comes next", "  ana is signed"]
