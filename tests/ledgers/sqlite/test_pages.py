"""Lists look at a bounded number of rows, and a cursor goes on where a page came back short."""

from __future__ import annotations

import pytest

from surehook.core.receipt import word
from surehook.core.receipt_message import Said
from surehook.ledgers.common import deliveries, subjects
from surehook.ledgers.common.indexes import LOOKS_MAX
from surehook.ports.reading import DeliveryFilter, EventFilter
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW, TENANT


async def _fill(desk: Desk, rows: int) -> None:
    for start in range(0, rows, 2_000):
        await desk.accept(
            *(desk.make.incoming(desk.endpoint) for _ in range(start, min(rows, start + 2_000)))
        )


async def test_a_rare_match_is_found_by_following_the_cursor(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "OPEN_LOOKS_MAX", LOOKS_MAX)
    await desk.ledger.add_tenant(desk.make.tenant("rare"))
    rare = desk.make.incoming(desk.endpoint, event={"tenant": "rare"})
    await desk.accept(rare)
    await _fill(desk, LOOKS_MAX + 10)
    for listing, where in (
        (desk.ledger.events, EventFilter(tenant="rare")),
        (desk.ledger.deliveries, DeliveryFilter(tenant="rare")),
    ):
        page = await listing(where, limit=50, after=None)
        assert page.data == []
        assert page.next is not None
        page = await listing(where, limit=50, after=page.next)
        assert len(page.data) == 1
        assert page.next is None


async def test_an_id_older_than_its_acceptance_is_found_by_time(desk: Desk) -> None:
    """An outbox makes ids long before they arrive; a search by time must not stop at the id's own."""
    old = desk.make.incoming(at=NOW - 86_400_000, given=True, event={"accepted_at": NOW})
    await desk.accept(old)
    page = await desk.ledger.events(EventFilter(since=NOW), limit=50, after=None)
    assert [event.id for event in page.data] == [old.event.id]
    assert (await desk.ledger.events(EventFilter(until=NOW), limit=50, after=None)).data == []


async def test_a_subject_is_found_through_its_index(desk: Desk) -> None:
    await desk.accept(desk.make.incoming(event={"subject": "doc_rare"}))
    await _fill(desk, LOOKS_MAX + 10)
    page = await desk.ledger.events(EventFilter(tenant=TENANT, subject="doc_rare"), limit=50, after=None)
    assert len(page.data) == 1
    assert page.next is None


async def test_a_subject_is_found_whoever_has_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every tenant in turn, and of all of them on the first page."""
    wanted = []
    for tenant in ("a", "b", "c"):
        await desk.ledger.add_tenant(desk.make.tenant(tenant))
        its = desk.make.incoming(desk.endpoint, event={"tenant": tenant, "subject": "doc_rare"})
        await desk.accept(its, desk.make.incoming(event={"tenant": tenant, "subject": "doc_other"}))
        wanted.insert(0, its)
    await _fill(desk, LOOKS_MAX + 10)
    monkeypatch.setattr(deliveries, "OPEN_LOOKS_MAX", 1_000)
    for listing, where, ids in (
        (desk.ledger.events, EventFilter(subject="doc_rare"), [one.event.id for one in wanted]),
        (
            desk.ledger.deliveries,
            DeliveryFilter(subject="doc_rare"),
            [one.deliveries[0].id for one in wanted],
        ),
    ):
        page = await listing(where, limit=50, after=None)
        assert ([one.id for one in page.data], page.next) == (ids, None)
        first = await listing(where, limit=2, after=None)
        second = await listing(where, limit=2, after=first.next)
        assert [one.id for one in (*first.data, *second.data)] == ids


async def test_a_subject_is_walked_for_where_there_are_many_tenants(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subjects, "TENANTS_MAX", 1)
    wanted = []
    for tenant in ("a", "b", "c"):
        await desk.ledger.add_tenant(desk.make.tenant(tenant))
        wanted.insert(0, desk.make.incoming(event={"tenant": tenant, "subject": "doc"}))
    await desk.accept(*wanted[::-1])
    page = await desk.ledger.events(EventFilter(subject="doc"), limit=50, after=None)
    assert [one.id for one in page.data] == [one.event.id for one in wanted]


async def test_what_a_receiver_said_is_found_on_the_first_page(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = await desk.publish_one(held=True)
    done = await desk.finish_one()
    said = [Said(one.id, one.event, word("rejected", NOW)) for one in (held, done)]
    await desk.ledger.apply_receipts(desk.endpoint, said, tenant=TENANT, now=NOW)
    await _fill(desk, LOOKS_MAX + 10)
    monkeypatch.setattr(deliveries, "OPEN_LOOKS_MAX", 1_000)
    page = await desk.ledger.deliveries(DeliveryFilter(receipt="rejected"), limit=50, after=None)
    assert ([one.id for one in page.data], page.next) == ([done.id, held.id], None)


async def test_a_dead_letter_of_which_a_receiver_spoke_is_found_on_the_first_page(desk: Desk) -> None:
    dead = await desk.finish_one("dead")
    await desk.ledger.apply_receipts(
        desk.endpoint, [Said(dead.id, dead.event, word("rejected", NOW))], tenant=TENANT, now=NOW
    )
    for _ in range(6):
        await desk.finish("dead", count=LOOKS_MAX // 5)
    page = await desk.ledger.dead_letters(DeliveryFilter(receipt="rejected"), limit=50, after=None)
    assert ([one.id for one in page.data], page.next) == ([dead.id], None)
