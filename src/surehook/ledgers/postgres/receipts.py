"""Receipts, and the deliveries whose end is awaited. Rows are locked in the order of their keys, against deadlocks."""

from __future__ import annotations

from collections.abc import Sequence

from surehook.core import receipt_state
from surehook.core.model import Notice, Settled
from surehook.core.receipt import rank
from surehook.core.receipt_message import Said
from surehook.ledgers.postgres.notices import keep_notices
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query
from surehook.ports.receipts import PendingReceipt, ReceiptResult


async def wait(session: PostgresSession, settled: Sequence[Settled], now: int) -> None:
    """Begin the waits of a window, in its transaction."""
    waits = receipt_state.waits_of(settled)
    if waits:
        await session.run(query("receipts_wait"), *map(list, zip(*waits, strict=True)), now)


async def apply_receipts(
    session: PostgresSession, endpoint: bytes, items: Sequence[Said], *, tenant: str, now: int
) -> ReceiptResult:
    async with session.writing():
        asked = [one.delivery for one in items], [one.event for one in items]
        known = {(row[0], row[1]) for row in await session.rows(query("receipts_known"), *asked, endpoint)}
        firsts = {one.event: one.delivery for one in reversed(items) if (one.delivery, one.event) in known}
        if firsts:
            new = list(firsts), list(firsts.values())
            await session.run(query("receipts_begin"), *new, endpoint, tenant, now)
        found = await session.rows(query("receipts_lock"), list(firsts), endpoint)
        rows = {
            row[0]: receipt_state.ReceiptRow(row[1], receipt_state.decode(row[2]), row[3]) for row in found
        }
        changed, reached = receipt_state.joined(rows, items, known)
        await _keep(session, endpoint, changed, now)
    return ReceiptResult([one.delivery for one in items if (one.delivery, one.event) not in known], reached)


async def _keep(
    session: PostgresSession, endpoint: bytes, rows: dict[bytes, receipt_state.ReceiptRow], now: int
) -> None:
    if not rows:
        return
    words = [row.state for row in rows.values() if row.state is not None]
    assert len(words) == len(rows), "receipts have come"
    await session.run(
        query("receipts_keep"),
        list(rows),
        [rank(one.stage) for one in words],
        [receipt_state.encode(one) for one in words],
        [row.finalize_by for row in rows.values()],
        endpoint,
        now,
    )


async def unfinalized(session: PostgresSession, *, now: int, limit: int) -> list[PendingReceipt]:
    return [PendingReceipt(*row) for row in await session.rows(query("receipts_awaited"), now, limit)]


async def mark_unfinalized(
    session: PostgresSession, awaited: Sequence[PendingReceipt], notices: Sequence[Notice], *, now: int
) -> list[bytes]:
    keys = sorted((one.event, one.endpoint, one.delivery, one.finalize_by) for one in awaited)
    if not keys:
        return []
    async with session.writing():
        found = await session.rows(query("receipts_told"), *map(list, zip(*keys, strict=True)), now)
        marked = {row[0] for row in found}
        await keep_notices(session, (one for one in notices if one.delivery in marked))
    return sorted(marked)
