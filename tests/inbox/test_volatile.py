"""Repeats that differ only in what describes the delivery are repeats; another body of a foreign sender is kept and accepted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from surehook.core.sources import payload
from surehook.inbox import sources
from surehook.inbox.sources import PROVIDERS, Field, Header, Provider, SourceError
from surehook.inbox.testing import Trial
from tests.inbox.house import SECRET

NAMED = {
    "stripe": ({"id": "evt_1", "type": "invoice.paid", "created": 1_767_268_000, "data": {}}, "pending_webhooks", 2, 1),
    "docusign": (
        {
            "event": "envelope-completed", "generatedDateTime": "2026-01-01T11:59:00.0000000Z",
            "data": {"envelopeId": "env_1"},
        },
        "retryCount", "0", "1",
    ),
    "paddle": (
        {"event_id": "evt_1", "event_type": "transaction.paid", "occurred_at": "2026-01-01T11:59:00Z", "data": {}},
        "notification_id", "ntf_1", "ntf_2",
    ),
    "linear": (
        {"type": "Issue", "action": "create", "createdAt": "2026-01-01T11:59:00.000Z", "data": {}},
        "webhookTimestamp", 1_767_268_800_000, 1_767_268_801_000,
    ),
}  # fmt: skip


@pytest.fixture
def trial(tmp_path) -> Any:
    with Trial(f"sqlite:///{tmp_path / 'trial.db'}") as trial:
        yield trial


def say(trial: Trial, source: str, body: dict[str, Any]) -> Any:
    headers = {"Linear-Delivery": "dlv_1"} if source == "linear" else None
    return trial.send(trial.sign(source, body=json.dumps(body).encode(), headers=headers))


@pytest.mark.parametrize("name", NAMED)
def test_a_repeat_with_another_count_of_the_delivery_is_a_repeat(name, trial):
    body, field, first, second = NAMED[name]
    trial.add(sources.named(name, secret=SECRET, on_conflict="refuse"))
    trial.on(name)(lambda event, tx: None)
    assert say(trial, name, body | {field: first}).status == 200
    assert say(trial, name, body | {field: second}).status == 200
    trial.work()
    assert len(trial.states()) == 1
    assert trial._do(trial.inbox.conflicts()) == []
    changed = body | {field: second, "data": {**body["data"], "state": "other"}}
    assert say(trial, name, changed).status == 409, "what the event says still counts"


def test_every_volatile_field_is_tried_here():
    assert {name for name, one in PROVIDERS.items() if one.volatile} == set(NAMED)


def test_foreign_senders_are_accepted_and_what_differs_is_kept(trial):
    trial.add(sources.named("stripe", secret=SECRET))
    trial.add(sources.named("surehook", secret=SECRET))
    body, *_ = NAMED["stripe"]
    assert say(trial, "stripe", body).status == 200
    assert say(trial, "stripe", body | {"data": {"object": "other"}}).status == 200
    (kept,) = trial._do(trial.inbox.conflicts())
    (other,) = trial._do(trial.inbox.show(kept.ref)).others
    assert b"other" in other.body
    answers = [trial.send(trial.sign("surehook", "a", {"n": n}, id="evt_1")).status for n in range(2)]
    assert answers == [200, 409], "our own sender repeats no other body under an id"


@pytest.mark.parametrize(
    ("value", "path", "left"),
    [
        ({"a": 1, "b": 2}, "b", {"a": 1}),
        ({"a": {"b": 2, "c": 3}}, "a.b", {"a": {"c": 3}}),
        ({"a": 1}, "b", {"a": 1}),
        ({"a": [1]}, "a.0", {"a": [1]}),
        ([1], "0", [1]),
        ("text", "a", "text"),
    ],
)
def test_what_stands_at_a_place_is_left_out(value, path, left):
    before = json.dumps(value)
    assert payload.without(value, (Field(path),)) == left
    assert json.dumps(value) == before, "the value stays as it was"


def test_what_says_which_event_it_is_cannot_be_volatile():
    with pytest.raises(SourceError, match="volatile"):
        Provider(
            name="mine", scheme=PROVIDERS["hmac"].scheme if "hmac" in PROVIDERS else PROVIDERS["github"].scheme,
            id=(Field("id"), Header("X-Id", optional=True)), volatile=(Field("id"),),
        )  # fmt: skip
