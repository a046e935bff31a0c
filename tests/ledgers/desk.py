"""A ledger with a node, a tenant and an endpoint: what nearly every test begins with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from surehook.core.model import BreakerRow, Delivery, EndpointHealth, Notice, Settled
from surehook.ports.ledger import Incoming, Recorded, Taken
from surehook.ports.reading import NoticeFilter

from .making import NOW, Maker

ALL = 1_000  # more than any test makes


class Desk:
    """Short words for long calls. `node` is the node that writes unless another is named."""

    def __init__(self, ledger: Any, make: Maker) -> None:
        self.ledger = ledger
        self.make = make

    async def begin(self) -> Desk:
        self.node = await self.new_node()
        await self.ledger.add_tenant(self.make.tenant())
        self.endpoint = await self.new_endpoint()
        return self

    async def new_node(self) -> bytes:
        node = self.make.node()
        await self.ledger.enter(node, now=NOW)
        return node.id

    async def new_endpoint(self, **fields: Any) -> bytes:
        endpoint = self.make.endpoint(**fields)
        await self.ledger.add_endpoint(endpoint, self.make.secret(endpoint.id))
        return endpoint.id

    async def accept(self, *items: Incoming, now: int = NOW, node: bytes | None = None) -> list[Taken]:
        version = await self.ledger.version()
        result = await self.ledger.accept(items, node=node or self.node, version=version, now=now)
        assert not result.stale
        return result.taken

    async def publish(
        self, *endpoints: bytes, now: int = NOW, node: bytes | None = None, **fields: Any
    ) -> list[Delivery]:
        """Accept one event for the endpoints (the desk's own where none is named); its deliveries."""
        item = self.make.incoming(*(endpoints or (self.endpoint,)), at=fields.pop("at", now), **fields)
        await self.accept(item, now=now, node=node)
        return item.deliveries

    async def publish_one(self, *endpoints: bytes, **fields: Any) -> Delivery:
        (delivery,) = await self.publish(*endpoints, **fields)
        return delivery

    async def hold_one(self, **fields: Any) -> Delivery:
        """One delivery, born leased to the desk's node."""
        return await self.publish_one(held=True, **fields)

    async def claim(
        self, lane: int = 0, *, limit: int = ALL, due_by: int = NOW, node: bytes | None = None
    ) -> list[Delivery]:
        return await self.ledger.claim(lane, node=node or self.node, limit=limit, due_by=due_by, now=due_by)

    async def record(
        self,
        *settled: Settled,
        now: int = NOW,
        health: Sequence[EndpointHealth] = (),
        breakers: Sequence[BreakerRow] = (),
        notices: Sequence[Notice] = (),
        node: bytes | None = None,
    ) -> Recorded:
        return await self.ledger.record(
            settled, node=node or self.node, health=health, breakers=breakers, notices=notices, now=now
        )

    async def finish_one(self, end: str = "delivered", *, now: int = NOW, **fields: Any) -> Delivery:
        delivery = await self.hold_one(now=now, **fields)
        settled = self.make.delivered(delivery) if end == "delivered" else self.make.dead(delivery)
        await self.record(settled, now=now)
        return delivery

    async def finish(self, end: str, *, count: int) -> list[Delivery]:
        """So many deliveries of an event each, finished in one window."""
        items = [self.make.incoming(self.endpoint, held=True) for _ in range(count)]
        await self.accept(*items)
        settle = self.make.delivered if end == "delivered" else self.make.dead
        deliveries = [item.deliveries[0] for item in items]
        await self.record(*(settle(delivery) for delivery in deliveries))
        return deliveries

    async def state(self, delivery: Delivery | bytes) -> str | None:
        view = await self.ledger.delivery(delivery if isinstance(delivery, bytes) else delivery.id)
        return None if view is None else view.state

    async def row(self, delivery: Delivery) -> tuple[Delivery, bytes | None]:
        """The open row with its holder."""
        found = await self.ledger.open_delivery(delivery.id)
        assert found is not None, "the delivery is not open"
        return found

    async def kinds(self, delivery: Delivery) -> list[tuple[str, int]]:
        """The history as (kind, number)."""
        return [(entry.kind, entry.number) for entry in await self.ledger.attempts(delivery.id)]

    async def notice_kinds(self) -> list[str]:
        return [notice.kind for notice in await self.everything(self.ledger.notices, NoticeFilter())]

    async def everything(self, listing: Any, where: Any, *, limit: int = 200) -> list[Any]:
        """All pages of a list."""
        data: list[Any] = []
        after = None
        for _ in range(ALL):
            page = await listing(where, limit=limit, after=after)
            data += page.data
            after = page.next
            if after is None:
                return data
        raise AssertionError("a list without end")


def bare(delivery: Delivery) -> Delivery:
    """The delivery without what is said at birth only."""
    return structs.replace(delivery, held=False, parked=None)
