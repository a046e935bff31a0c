"""Everything a book can be asked, in one value: two books with equal stories are the same book."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from surehook.core.model import LANES
from surehook.delivery.loading import read_all
from surehook.ports.reading import DeliveryFilter, EventFilter, NoticeFilter

from .desk import bare

PAGE = 200
PAGES_MAX = 1_000
FAR = 1 << 60  # after every wait


async def story(ledger: Any, *, now: int) -> dict[str, Any]:
    """The whole book as seen through the ports."""
    configuration = await read_all(ledger)
    deliveries = await _all(ledger.deliveries, DeliveryFilter())
    parked = await ledger.parked_counts()
    open_rows = [await ledger.open_delivery(view.id) for view in deliveries if view.finished_at is None]
    nodes = await ledger.nodes()
    return {
        "version": await ledger.version(),
        "keys": _by_id(await ledger.keys()),
        "tenants": _by_id(configuration.tenants),
        "endpoints": _by_id(configuration.endpoints),
        "event types": sorted(configuration.event_types, key=lambda one: one.name),
        "secrets": _by_id(configuration.secrets),
        "nodes": _by_id(nodes),
        "events": await _all(ledger.events, EventFilter()),
        "deliveries": deliveries,
        "open": [(bare(row), row.parked, holder) for row, holder in open_rows],
        "histories": {view.id: await ledger.attempts(view.id) for view in deliveries},
        "held": {node.id: await ledger.held(node.id, limit=PAGE) for node in nodes},
        "dead letters": await _all(ledger.dead_letters, DeliveryFilter()),
        "number of dead letters": await ledger.dead_letter_count(),
        "notices": await _all(ledger.notices, NoticeFilter()),
        "breakers": sorted(await ledger.breakers(), key=lambda row: (row.tenant, row.key)),
        "lanes": await ledger.lane_counts(now=now),
        "parked": parked,
        "groups": {(group.endpoint, group.reason) for group in await ledger.parked_groups()} == set(parked),
        "next due": [await ledger.next_due(lane) for lane in range(len(LANES))],
        "overdue": _by_id(map(bare, await ledger.overdue(now=now, limit=PAGE))),
        "awaited": await ledger.unfinalized(now=FAR, limit=PAGE),
        "replays": _by_id(await ledger.unfinished_replays()),
    }


def differences(mine: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """The chapters in which two stories differ, with both versions."""
    return [f"{name}:\n  {mine[name]}\n  {theirs[name]}" for name in mine if mine[name] != theirs[name]]


def plain(value: Any) -> Any:
    """An answer without what is said at a birth only, so that answers of two books can be compared."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if hasattr(value, "held") and hasattr(value, "parked"):
        return bare(value)
    if hasattr(value, "changes") and hasattr(value, "lost"):
        return structs.replace(value, lost=sorted(value.lost), changes=_by(value.changes, "endpoint"))
    return value


def _by_id(values: Any) -> list[Any]:
    return _by(values, "id")


def _by(values: Any, field: str) -> list[Any]:
    return sorted(values, key=lambda one: getattr(one, field))


async def _all(listing: Any, where: Any) -> list[Any]:
    data: list[Any] = []
    after = None
    for _ in range(PAGES_MAX):
        page = await listing(where, limit=PAGE, after=after)
        data += page.data
        after = page.next
        if after is None:
            return data
    raise AssertionError("a list without end")
