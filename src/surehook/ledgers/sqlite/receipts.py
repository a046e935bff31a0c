"""Receipts, and the deliveries whose end is awaited."""

from __future__ import annotations

from collections.abc import Sequence

from surehook.core import receipt_state
from surehook.core.model import Notice, Settled
from surehook.core.receipt import rank
from surehook.core.receipt_message import Said
from surehook.ledgers.sqlite.notices import keep_notices
from surehook.ledgers.sqlite.rows import ids_among, run_batch
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.statements import Values, batch, query
from surehook.ports.receipts import PendingReceipt, ReceiptResult


def wait(session: SqliteSession, settled: Sequence[Settled], now: int) -> None:
    """Begin the waits of a window, in its transaction."""
    values = [value for one in receipt_state.waits_of(settled) for value in one]
    run_batch(session, "receipts_wait", values, before=(now,))


def apply_receipts(
    session: SqliteSession, endpoint: bytes, items: Sequence[Said], *, tenant: str, now: int
) -> ReceiptResult:
    with session.writing():
        asked: Values = [value for one in items for value in (one.delivery, one.event, endpoint)]
        found = (session.rows(*piece) for piece in batch("receipts_known").pieces(asked))
        known = {place for rows in found for place in rows}
        rows = _rows(session, endpoint, {event for _, event in known})
        changed, reached = receipt_state.joined(rows, items, known)
        _keep(session, endpoint, changed, tenant=tenant, now=now)
    return ReceiptResult([one.delivery for one in items if (one.delivery, one.event) not in known], reached)


def _rows(
    session: SqliteSession, endpoint: bytes, events: set[bytes]
) -> dict[bytes, receipt_state.ReceiptRow]:
    keys = [value for event in sorted(events) for value in (event, endpoint)]
    return {
        event: receipt_state.ReceiptRow(delivery, receipt_state.decode(said), finalize_by)
        for piece in batch("receipts_among").pieces(keys)
        for event, delivery, said, finalize_by in session.rows(*piece)
    }


def _keep(
    session: SqliteSession,
    endpoint: bytes,
    rows: dict[bytes, receipt_state.ReceiptRow],
    *,
    tenant: str,
    now: int,
) -> None:
    values: Values = []
    for event, row in sorted(rows.items()):
        assert row.state is not None, "a receipt has come"
        stage, said = rank(row.state.stage), receipt_state.encode(row.state)
        values += (event, endpoint, tenant, row.delivery, stage, said, row.finalize_by, now)
    run_batch(session, "receipts_keep", values)


def unfinalized(session: SqliteSession, *, now: int, limit: int) -> list[PendingReceipt]:
    return [PendingReceipt(*row) for row in session.rows(query("receipts_awaited"), (now, limit))]


def mark_unfinalized(
    session: SqliteSession, awaited: Sequence[PendingReceipt], notices: Sequence[Notice], *, now: int
) -> list[bytes]:
    asked = [value for one in awaited for value in (one.event, one.endpoint, one.delivery, one.finalize_by)]
    with session.writing():
        marked = set(ids_among(session, "receipts_still_awaited", asked))
        told = [one for one in awaited if one.delivery in marked]
        run_batch(
            session,
            "receipts_told",
            [value for one in told for value in (one.event, one.endpoint)],
            before=(now,),
        )
        keep_notices(session, (one for one in notices if one.delivery in marked))
    return sorted(marked)
