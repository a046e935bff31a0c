"""Recording a window of results, in one transaction of about six statements, however large the window.

History rows are inserted by a join that also checks the leases, so their number tells if this node still held every row.
If it did not, the transaction is rolled back, the lost rows are sorted out, and the others are written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import json
from msgspec.structs import astuple

from surehook.core.endpoint_health import after_window, applies_to, disabled_notice
from surehook.core.errors import LedgerUnavailable
from surehook.core.model import (
    Attempt,
    BreakerRow,
    EndpointHealth,
    EndpointStatus,
    Notice,
    RecordedEndpoint,
    Settled,
)
from surehook.ledgers import changes as notes
from surehook.ledgers import history
from surehook.ledgers.common.errors import Unstorable
from surehook.ledgers.sqlite.nodes import fence
from surehook.ledgers.sqlite.notices import keep_notices
from surehook.ledgers.sqlite.receipts import wait
from surehook.ledgers.sqlite.rows import run_batch
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.statements import Values, batch, query
from surehook.ports.ledger import Recorded


class _Lost(Exception):
    """This node no longer holds some of the rows."""


def record(
    session: SqliteSession,
    settled: Sequence[Settled],
    *,
    is_low: Callable[[], bool],
    node: bytes,
    health: Sequence[EndpointHealth],
    breakers: Sequence[BreakerRow],
    notices: Sequence[Notice],
    now: int,
) -> Recorded:
    """Record a window. `is_low` tells if the disk is below its floor.

    If it is, the headers and bodies of answers are not stored: with 200 bytes per row instead of 20 KiB, results have
    enough room until space is freed.
    """
    lost: list[bytes] = []
    while True:
        try:
            with session.writing():
                number = fence(session, node).number
                _settle(session, settled, number, now, bare=is_low())
                keep_notices(session, notices)
                _keep_breakers(session, breakers)
                return Recorded(lost, _update_endpoints(session, health, now))
        except (_Lost, Unstorable) as error:
            # Lost: the node no longer holds a row. Unstorable: a row was settled twice in this window, and both history rows
            # have the same key. The rest of the window is written by the next round.
            settled, missing = _sorted_out(session, settled, node)
            if not missing:
                raise LedgerUnavailable("a result could not be written") from error
            lost += missing


def _settle(session: SqliteSession, settled: Sequence[Settled], number: int, now: int, *, bare: bool) -> None:
    entries: Values = []
    finished: Values = []
    dead: Values = []
    onward: Values = []
    notices: list[Notice] = []
    appended = moved = 0
    is_awaited = False
    for one in settled:
        d = one.delivery
        e = one.entry
        if e is not None:
            appended += 1
            entries += (
                d.id, _seq(e, d.attempt, d.freed), e.lane, e.started_at, e.outcome, 1 if e.unknown else 0,
                e.status, e.error, e.address, e.dns_us, e.connect_us, e.tls_us, e.first_byte_us, e.total_us,
                1 if e.truncated or (bare and e.body) else 0, e.next_at, one.end, one.reason,
                *((b"", b"") if bare else (e.headers, e.body)),
            )  # fmt: skip
        if one.end is not None:
            assert e is not None, "a delivery ends with an entry"
            finished.append(d.id)
            if one.end == "dead":
                dead += (d.id, None if bare else one.request_headers)
            elif one.finalize_by is not None:
                is_awaited = True
        else:
            moved += 1
            made = e is not None and e.kind == "attempt"
            onward += (
                d.id, d.attempt, one.lane, one.number, one.due_at, one.parked, one.spared,
                *((1, e.outcome, 1 if e.unknown else 0) if e is not None and made else (0, None, 0)),
            )  # fmt: skip
        if one.notices:
            notices += one.notices
    if appended and run_batch(session, "record_entries", entries, before=(now,), after=(number,)) != appended:
        raise _Lost
    if moved and run_batch(session, "record_next", onward, before=(now,), after=(number,)) != moved:
        raise _Lost
    if finished:
        run_batch(session, "record_finished", finished)
    if dead:
        run_batch(session, "dead_letters", dead)
    if is_awaited:
        wait(session, settled, now)
    keep_notices(session, notices)


def _seq(entry: Attempt, number: int, freed: int) -> int:
    if entry.kind == "attempt":
        return number * history.PLACES + history.ATTEMPT
    if entry.kind == "ended":
        return number * history.PLACES + history.ENDED
    return number * history.PLACES + min(freed, history.LAST_INTERRUPTION)


def _sorted_out(
    session: SqliteSession, settled: Sequence[Settled], node: bytes
) -> tuple[list[Settled], list[bytes]]:
    """Return the results whose rows the node still holds, one per row, and the ids of the others."""
    with session.snapshot():
        number = fence(session, node).number
        ids: Values = [one.delivery.id for one in settled]
        found = (session.rows(*piece) for piece in batch("in_hand").pieces(ids, after=(number,)))
        in_hand = {row for rows in found for row in rows}
    kept, lost = [], []
    for one in settled:
        place = (one.delivery.id, one.delivery.attempt)
        if place in in_hand:
            in_hand.remove(place)
            kept.append(one)
        else:
            lost.append(one.delivery.id)
    return kept, lost


def _keep_breakers(session: SqliteSession, breakers: Sequence[BreakerRow]) -> None:
    for row in breakers:
        place = (row.tenant, row.key, row.generation)
        if row.state == "closed":
            session.run(query("breaker_closed"), place)
            session.run(query("breaker_drop"), place)
        else:
            session.run(query("breaker_keep"), (*astuple(row), *place))


def breakers(session: SqliteSession, asked: Sequence[tuple[str, str]]) -> list[BreakerRow]:
    rows = session.rows(query("breakers"))
    if asked:
        rows += session.rows(query("breaker_closings"), (json.encode(asked).decode(),))
    return [BreakerRow(*row) for row in rows]


def _update_endpoints(
    session: SqliteSession, health: Sequence[EndpointHealth], now: int
) -> list[RecordedEndpoint]:
    """Update endpoints. Most windows are successes of endpoints without failures, and change nothing."""
    plain: Values = [one.endpoint for one in health if _is_plain_success(one)]
    recovered = {
        endpoint
        for piece in (batch("failing_endpoints").pieces(plain) if plain else ())
        for (endpoint,) in session.rows(*piece)
    }
    changes = []
    for one in health:
        if not _is_plain_success(one) or one.endpoint in recovered:
            change = _update_endpoint(session, one, now)
            if change is not None:
                changes.append(change)
    return changes


def _is_plain_success(health: EndpointHealth) -> bool:
    return health.succeeded and health.failures == 0 and health.status is None


def _update_endpoint(session: SqliteSession, health: EndpointHealth, now: int) -> RecordedEndpoint | None:
    """Update one endpoint; None if nothing changed or the endpoint is gone."""
    row = session.row(query("endpoint_health"), (health.endpoint,))
    if row is None or not applies_to(health, row[4]):
        return None
    tenant: str = row[0]
    count: int = row[1]
    status: EndpointStatus = row[2]
    change = after_window(health, count, status, row[3])
    if (change.failure_count, change.status, change.reason) == (count, status, row[3]):
        return None
    updated = now if change.status != status else None
    session.run(
        query("endpoint_fold"),
        (change.failure_count, change.status, change.reason, updated, change.endpoint),
    )
    if change.status != status:
        session.value(query("raise_version"))
        session.run(query("note"), (notes.ENDPOINT, change.endpoint))
        if health.status is None:
            keep_notices(session, (disabled_notice(change, tenant=tenant, now=now),))
    return change
