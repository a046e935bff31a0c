"""Rows of an outbox: anybody with the right to insert may have written them."""

from __future__ import annotations

import pytest

from surehook.core.envelope import EventIn
from surehook.core.errors import Problem
from surehook.core.outbox import OutboxRow, aggregate_of, event_of
from surehook.core.outbox_answers import TAKEN, RowAnswer, TenantRest, refused_row, settlement

ID = "evt_01m8k7m42de4rbf707a4gm7w62"


def row(
    position: int = 1, *, payload: str = "1", fields: str | None = None, tenant: str = "acme"
) -> OutboxRow:
    return OutboxRow(position, ID, tenant, "document.signed", payload, "doc_42", 7, fields, 5)


@pytest.mark.parametrize("fields", [None, "{}", " { } ", '{"source":"s"}', ' {"source": "s"}\n'])
def test_a_good_row_is_an_event(fields: str | None) -> None:
    event = event_of(row(fields=fields))
    assert isinstance(event, EventIn)
    assert (event.tenant, event.subject, event.sequence, event.data) == ("acme", "doc_42", 7, b"1")
    assert event.source == ("s" if fields and "source" in fields else None)


@pytest.mark.parametrize(
    ("payload", "fields", "code"),
    [
        ("{", None, "invalid_json"), ("", None, "invalid_json"), ("1}", None, "invalid_json"), ("1", "[]", "invalid_json"),
        ("1", "x", "invalid_json"), ("1", '{"source":"s"', "invalid_json"), ("1", '"source":"s"', "invalid_json"),
        ("1", '{"tenant":"other"}', "duplicate_key"), ("1", '{"data":2}', "duplicate_key"), ("1", '{"more":1}', "unknown_field"),
        ('1,"source":"evil"', None, "invalid_json"), ('1,"tenant":"other"', None, "duplicate_key"), ('"\\u0000"', None, "bad_text"), ("1", '{"sequence":8}', "duplicate_key"),
    ],
)  # fmt: skip
def test_a_row_that_no_server_takes_has_a_reason(payload: str, fields: str | None, code: str) -> None:
    event = event_of(row(payload=payload, fields=fields))
    assert isinstance(event, Problem)
    assert event.code == code


@pytest.mark.parametrize(
    ("status", "fate"),
    [
        (400, "refused"), (409, "refused"), (413, "refused"), (415, "refused"), (422, "refused"),
        (401, "rests"), (403, "rests"), (404, "rests"), (408, "rests"), (429, "rests"), (500, "rests"), (503, "rests"),
    ],
)  # fmt: skip
def test_what_is_no_fault_of_an_event_comes_later(status: int, fate: str) -> None:
    settled = settlement([row(1), row(2, tenant="other")], [RowAnswer(status, "code", "why"), TAKEN])
    assert settled.published == [2]
    assert [each.position for each in settled.refused] == ([1] if fate == "refused" else [])
    assert settled.resting == ({"acme": TenantRest(1.0, "code", "why")} if fate == "rests" else {})


def test_a_tenant_rests_for_as_long_as_the_server_says() -> None:
    answers = [RowAnswer(429, "tenant_overloaded", "", 3.0), RowAnswer(429, "tenant_overloaded", "", 2.0)]
    assert settlement([row(1), row(2)], answers).resting == {"acme": TenantRest(3.0, "tenant_overloaded", "")}


def test_a_reason_can_be_stored_anywhere() -> None:
    found = refused_row(1, "schema_mismatch", "data.a\x00b\ud800" + "x" * 5_000)
    assert found.reason.startswith("data.a\ufffdb?x") and len(found.reason) == 1_000


def test_the_aggregate_is_the_subject_or_the_event() -> None:
    assert aggregate_of("document.signed", "doc_42", ID) == ("document", "doc_42")
    assert aggregate_of("ping", None, ID) == ("ping", ID)
