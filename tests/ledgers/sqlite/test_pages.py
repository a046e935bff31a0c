"""Lists look at a bounded number of rows, and a cursor goes on where a page came back short."""

from __future__ import annotations

from surehook.ledgers.common.paging import LOOKS_MAX
from surehook.ports.reading import DeliveryFilter, EventFilter
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW, TENANT


async def _fill(desk: Desk, rows: int) -> None:
    for start in range(0, rows, 2_000):
        await desk.accept(
            *(desk.make.incoming(desk.endpoint) for _ in range(start, min(rows, start + 2_000)))
        )


async def test_a_rare_match_is_found_by_following_the_cursor(desk: Desk) -> None:
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
