"""The idempotency key stays with its event, and leads to it, also when the key itself is forgotten."""

from __future__ import annotations

from typing import Any

from surehook.core import limits
from surehook.ports.reading import EventFilter

from .desk import ALL, Desk
from .making import NOW, TENANT

KEPT_MS = limits.IDEMPOTENCY_KEPT_S * 1_000


async def found(desk: Desk, key: str = "k", **where: Any) -> list[bytes]:
    asked = EventFilter(**{"tenant": TENANT, "idempotency_key": key, **where})
    pages = await desk.everything(desk.ledger.events, asked, limit=1)
    whole = (await desk.ledger.events(asked, limit=9, after=None)).data
    assert pages == whole
    return [event.id for event in whole]


async def keyed(desk: Desk, now: int, key: str | None = "k", **event: Any) -> bytes:
    (delivery,) = await desk.publish(desk.endpoint, now=now, key=key, event=event)
    return delivery.event


async def test_an_event_tells_its_key(desk: Desk) -> None:
    with_key, without = await keyed(desk, NOW), await keyed(desk, NOW, None)
    assert (await desk.ledger.event(with_key)).idempotency_key == "k"
    assert (await desk.ledger.event(without)).idempotency_key is None


async def test_a_key_leads_to_its_events_when_it_is_forgotten(desk: Desk) -> None:
    """Each of them, newest first: a day later the key may be another event's."""
    first = await keyed(desk, NOW)
    await keyed(desk, NOW, "other")
    assert await found(desk) == [first]
    await desk.ledger.prune(events_before=0, bodies_before=0, limit=ALL, now=NOW + KEPT_MS)
    assert await found(desk) == [first]
    second = await keyed(desk, NOW + KEPT_MS)
    assert await found(desk) == [second, first]
    await desk.ledger.prune(events_before=0, bodies_before=0, limit=ALL, now=NOW + 2 * KEPT_MS)
    assert await found(desk) == [second, first]


async def test_a_key_that_was_taken_over_before_it_was_swept_leads_to_both(desk: Desk) -> None:
    first, second = await keyed(desk, NOW), await keyed(desk, NOW + KEPT_MS)
    assert await found(desk) == [second, first]


async def test_a_key_is_its_tenants_and_stands_beside_other_filters(desk: Desk) -> None:
    await desk.ledger.add_tenant(desk.make.tenant("globex"))
    first = await keyed(desk, NOW)
    theirs = await keyed(desk, NOW, tenant="globex")
    second = await keyed(desk, NOW + KEPT_MS, type="x.y")
    assert await found(desk, tenant="globex") == [theirs]
    assert await found(desk, type="x.y") == [second]
    assert await found(desk, type="document.signed") == [first]
    assert await found(desk, since=NOW + 1) == [second]
    assert await found(desk, until=NOW + 1) == [first]
    assert await found(desk, "never") == []


async def test_a_key_of_many_is_found_in_a_batch(desk: Desk) -> None:
    """Together with events that have none, and again where some are repeats."""
    items = [desk.make.incoming(desk.endpoint, key=key) for key in ("a", None, "b")]
    await desk.accept(*items)
    repeat = desk.make.incoming(desk.endpoint, key="a")
    more = [repeat, desk.make.incoming(desk.endpoint, key="c")]
    taken = await desk.accept(*more)
    assert [one.fresh for one in taken] == [False, True]
    for key, item in (("a", items[0]), ("b", items[2]), ("c", more[1])):
        assert await found(desk, key) == [item.event.id]
        assert (await desk.ledger.event(item.event.id)).idempotency_key == key
