"""An event is written beside the application's rows or not at all, with whatever library its transaction is held."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from surehook.core.errors import Problem
from tests.outbox.applications import Application
from tests.outbox.conftest import OutboxDatabase

EVENT = ("document.signed", {"document_id": "doc_42", "name": "Ünïcode 🖋"}, {"subject": "doc_42"})


async def test_what_is_committed_is_written_and_what_is_rolled_back_is_not(
    app: Application, db: OutboxDatabase
) -> None:
    (id,) = await app.write(EVENT)
    await app.write(EVENT, keeps=False)
    assert db.ask("SELECT count(*) FROM document") == [(1,)]
    ((found, type, payload, tenant, subject, sequence, kind, key),) = db.ask(
        "SELECT id, type, payload, tenant, subject, sequence, aggregatetype, aggregateid FROM surehook_outbox"
    )
    assert (found, type, tenant, subject, sequence) == (id, "document.signed", "acme", "doc_42", None)
    assert msgspec.json.decode(payload) == EVENT[1]
    assert (kind, key) == ("document", "doc_42")


async def test_numbers_of_a_subject_have_no_gap(app: Application, db: OutboxDatabase) -> None:
    numbered = {"subject": "doc_42", "numbered": True}
    await app.write(("a", 1, numbered), ("b", 2, numbered))
    await app.write(("c", 3, numbered), keeps=False)
    await app.write(("d", 4, {"subject": "doc_7", "numbered": True}), ("e", 5, numbered))
    assert db.ask("SELECT type, subject, sequence FROM surehook_outbox ORDER BY position") == [
        ("a", "doc_42", 1), ("b", "doc_42", 2), ("d", "doc_7", 1), ("e", "doc_42", 3),
    ]  # fmt: skip


async def test_numbers_of_a_subject_are_in_the_order_of_commits(app: Application, db: OutboxDatabase) -> None:
    """Transactions side by side that number one subject wait for each other."""
    apps = [type(app)(db.url) for _ in range(4)]
    event = ("a", 1, {"subject": "doc_42", "numbered": True})
    for _ in range(3):
        await asyncio.gather(*(each.write(event) for each in apps))
    found = db.ask("SELECT sequence FROM surehook_outbox ORDER BY sequence")
    assert [number for (number,) in found] == list(range(1, 13))


async def test_all_fields_of_an_event_are_kept(app: Application, db: OutboxDatabase) -> None:
    fields = {
        "schema_version": "2", "workflow_version": "w", "correlation_id": "c", "causation_id": "k", "source": "s",
        "occurred_at": "2026-01-02T03:04:05.678Z",
    }  # fmt: skip
    await app.write(("a", b'{"x": 1.50}', {**fields, "key": "k1", "sequence": 7}))
    ((payload, sequence, kept),) = db.ask("SELECT payload, sequence, fields FROM surehook_outbox")
    assert (payload, sequence) == ('{"x": 1.50}', 7)  # as it was given
    assert msgspec.json.decode(kept) == {**fields, "idempotency_key": "k1"}


@pytest.mark.parametrize(
    ("event", "code", "field"),
    [
        (("not a type!", 1, {}), "invalid_event_type", "type"),
        (("a", float("nan"), {}), "invalid_json", "data"),
        (("a", b"{", {}), "invalid_json", None),
        (("a", b'1,"source":"evil"', {}), "invalid_json", "data"),
        (("a", object(), {}), "invalid_json", "data"),
        (("a", 1, {"subject": "s" * 300}), "too_long", "subject"),
        (("a", "x" * 300_000, {}), "body_too_large", None),
        (("a", 1, {"numbered": True}), "out_of_range", "numbered"),
        (("a", 1, {"key": "with space"}), "invalid_idempotency_key", "idempotency_key"),
    ],
)
async def test_what_no_server_would_take_is_refused_at_once(
    app: Application,
    db: OutboxDatabase,
    event: tuple[str, object, dict[str, object]],
    code: str,
    field: str | None,
) -> None:
    with pytest.raises(Problem) as refused:
        await app.write(event)
    assert (refused.value.code, refused.value.field) == (code, field)
    assert db.ask("SELECT count(*) FROM surehook_outbox") == [(0,)]
