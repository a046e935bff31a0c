"""Rows to core values. Blobs inside a packed row (JSON) are hexadecimal text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import json

from surehook.core.model import Delivery
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.statements import Parameters, Values, batch, query

# Deliveries read in one packed row: with bodies of 256 KB it stays near 32 MB.
READ_AT_ONCE = 64

_list = json.Decoder(list[Any]).decode
_hex = bytes.fromhex


def unpacked_ids(packed: str) -> list[bytes]:
    """Return the ids of a packed row."""
    return [_hex(one) for one in _list(packed)]


def packed_ids(session: SqliteSession, sql: str, parameters: Sequence[object]) -> list[bytes]:
    """Run a query that packs its ids into one row, and return them."""
    return unpacked_ids(session.value(sql, parameters))


def ids_among(
    session: SqliteSession, name: str, ids: Iterable[object], *, after: Parameters = ()
) -> list[bytes]:
    """Return those of `ids` that the packing batch query `name` finds. Each id is followed by its other parameters."""
    found: list[bytes] = []
    for sql, parameters in batch(name).pieces(list(ids), after=after):
        found += packed_ids(session, sql, parameters)
    return found


def run_batch(
    session: SqliteSession,
    name: str,
    values: Values,
    *,
    before: Parameters = (),
    after: Parameters = (),
) -> int:
    """Run a writing batch statement, and return the number of rows it has written.

    The caller must not use `values` again.
    """
    changed = 0
    for sql, parameters in batch(name).pieces(values, before=before, after=after):
        changed += session.run(sql, parameters)
    return changed


def read_deliveries(
    session: SqliteSession, ids: Sequence[bytes], *, statement: str = "deliveries"
) -> list[Delivery]:
    """Read the unfinished deliveries with these ids, in this order; missing ones are left out.

    The statement `deliveries_bare` reads them without their bodies.
    """
    found: list[Delivery] = []
    # Bodies by event: each is read once.
    large: dict[bytes, bytes] = {}
    for start in range(0, len(ids), READ_AT_ONCE):
        for sql, parameters in batch(statement).pieces(list(ids[start : start + READ_AT_ONCE])):
            found += [_delivery(session, row, large) for row in _list(session.value(sql, parameters))]
    return found


def open_delivery(session: SqliteSession, delivery: bytes) -> tuple[Delivery, bytes | None] | None:
    """Read an unfinished delivery and its holder."""
    with session.snapshot():
        found = read_deliveries(session, [delivery])
        return (found[0], session.value(query("holder"), (delivery,))) if found else None


def _delivery(session: SqliteSession, row: list[Any], large: dict[bytes, bytes]) -> Delivery:
    (
        id, event, endpoint, tenant, type, lane, attempt, due_at, born_at, body,
        stood_ms, spared, freed, overdue_at, replay_of, outcome, unknown, parked, held,
    ) = row  # fmt: skip
    event = _hex(event)
    return Delivery(
        _hex(id), event, _hex(endpoint), tenant, type, lane, attempt, due_at, born_at,
        _large_body(session, event, large) if body is None else _hex(body),
        stood_ms, spared, freed, overdue_at, _hex(replay_of) if replay_of else None, outcome, unknown != 0,
        parked, held != 0,
    )  # fmt: skip


def _large_body(session: SqliteSession, event: bytes, large: dict[bytes, bytes]) -> bytes:
    body = large.get(event)
    if body is None:
        body = large[event] = session.value(query("large_body"), (event,))
    return body
