"""Recording a window of results, in one transaction.

A window with nothing but successes, the usual one, is one statement: the rows that this node holds leave the table and
become the last rows of their histories, and their number tells if the node held them all. A window with changes of
endpoints, breakers, notices or awaited receipts is a transaction around the same statement.

A window whose commit was lost runs again. The node no longer holds its rows, but their history rows exist, equal in every
field; and since the window was one transaction, one such row means that all of the window was committed.
"""

from __future__ import annotations

from collections.abc import Sequence

from surehook.core.endpoint_health import after_window, applies_to, disabled_notice
from surehook.core.model import (
    BreakerRow,
    EndpointHealth,
    Notice,
    RecordedEndpoint,
    Settled,
)
from surehook.ledgers import history
from surehook.ledgers.common.attempts import attempt
from surehook.ledgers.postgres import columns
from surehook.ledgers.postgres.breakers import keep_breakers
from surehook.ledgers.postgres.errors import TransactionConflict
from surehook.ledgers.postgres.nodes import check_fence
from surehook.ledgers.postgres.notices import keep_notices
from surehook.ledgers.postgres.receipts import wait
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query
from surehook.ports.ledger import Recorded


async def record(
    session: PostgresSession,
    settled: Sequence[Settled],
    *,
    node: bytes,
    health: Sequence[EndpointHealth],
    breakers: Sequence[BreakerRow],
    notices: Sequence[Notice],
    now: int,
) -> Recorded:
    settled, repeated = _each_once(settled)
    if health or breakers or notices or not _are_plain(settled):
        return await _record_all(
            session, settled, repeated, node=node, health=health, breakers=breakers, notices=notices, now=now
        )
    columns_ = columns.of_finished(settled)
    found = await session.change(query("record_delivered"), node, len(settled), now, *columns_)
    check_fence(found, node)
    lost, _ = await _sorted_out(session, settled, found[0][1])
    return Recorded(lost + repeated, [])


async def _record_all(
    session: PostgresSession,
    settled: Sequence[Settled],
    repeated: list[bytes],
    *,
    node: bytes,
    health: Sequence[EndpointHealth],
    breakers: Sequence[BreakerRow],
    notices: Sequence[Notice],
    now: int,
) -> Recorded:
    finished = columns.of_finished([one for one in settled if one.end is not None])
    moved = columns.of_moved([one for one in settled if one.end is None])
    letters = columns.of_letters(settled)
    async with session.writing():
        found = await session.rows(query("record"), node, len(settled), now, *finished, *moved, *letters)
        check_fence(found, node)
        lost, was_committed = await _sorted_out(session, settled, found[0][1])
        told = [notice for one in settled if one.delivery.id not in lost for notice in one.notices]
        if was_committed:
            return Recorded(lost + repeated, await _as_they_are(session, health))
        await keep_notices(session, [*told, *notices])
        await keep_breakers(session, breakers)
        await wait(session, [one for one in settled if one.delivery.id not in lost], now)
        return Recorded(lost + repeated, await _update_endpoints(session, health, now))


def _are_plain(settled: Sequence[Settled]) -> bool:
    return all(one.end == "delivered" and not one.notices and one.finalize_by is None for one in settled)


def _each_once(settled: Sequence[Settled]) -> tuple[Sequence[Settled], list[bytes]]:
    """Return the first result of each delivery, and the ids of repeats, whose rows the first result settles."""
    seen: set[bytes] = set()
    firsts, repeated = [], []
    for one in settled:
        id = one.delivery.id
        if id in seen:
            repeated.append(id)
        else:
            seen.add(id)
            firsts.append(one)
    return (firsts, repeated) if repeated else (settled, repeated)


async def _sorted_out(
    session: PostgresSession, settled: Sequence[Settled], done: list[bytes] | None
) -> tuple[list[bytes], bool]:
    """Return the rows that were lost, and True if the window was committed before. `done` is None if no row was missing."""
    if done is None:
        return [], False
    in_hand = set(done)
    missing = [one for one in settled if one.delivery.id not in in_hand]
    asked = [
        (one.delivery.id, history.place(one.entry, one.delivery)) for one in missing if one.entry is not None
    ]
    found = await session.rows(query("lines"), [id for id, _ in asked], [seq for _, seq in asked])
    written = [attempt(row) for row in found]
    lost = [one.delivery.id for one in missing if one.entry is None or one.entry not in written]
    return lost, len(lost) < len(missing)


async def _update_endpoints(
    session: PostgresSession, health: Sequence[EndpointHealth], now: int
) -> list[RecordedEndpoint]:
    """Update endpoints. Most windows are successes of endpoints without failures, and change nothing."""
    if not health:
        return []
    # Management locks the configuration first and the endpoint second. What may switch an endpoint off must do the same.
    may_change_status = await _may_change_status(session, health)
    if may_change_status:
        await session.value(query("lock_configuration"))
    found = await session.rows(
        query("endpoint_health"),
        [one.endpoint for one in health],
        [_is_plain_success(one) for one in health],
    )
    before = {row[0]: row for row in found}
    changes, turned, notices = [], [], []
    for one in health:
        if one.endpoint not in before:
            continue
        _, tenant, count, status, reason, url = before[one.endpoint]
        if not applies_to(one, url):
            continue
        change = after_window(one, count, status, reason)
        if (change.failure_count, change.status, change.reason) == (count, status, reason):
            continue
        changes.append(change)
        turned.append(change.status != status)
        if change.status != status and one.status is None:
            notices.append(disabled_notice(change, tenant=tenant, now=now))
    if any(turned) and not may_change_status:
        # The next run sees it before it locks.
        raise TransactionConflict("other windows brought an endpoint to its limit meanwhile")
    if changes:
        await session.run(
            query("endpoint_fold"),
            [change.endpoint for change in changes],
            [change.failure_count for change in changes],
            [change.status for change in changes],
            [change.reason for change in changes],
            [now if one else None for one in turned],
        )
    if any(turned):
        ids = [change.endpoint for change, one in zip(changes, turned, strict=True) if one]
        await session.run(query("note_endpoints"), ids)
    await keep_notices(session, notices)
    return changes


async def _may_change_status(session: PostgresSession, health: Sequence[EndpointHealth]) -> bool:
    """Return True if this window would change the status of an endpoint, without locking any."""
    deciding = {one.endpoint: one for one in health if one.status is not None or one.limit is not None}
    if not deciding:
        return False
    found = await session.rows(query("endpoints_as_they_are"), list(deciding))
    return any(
        after_window(deciding[endpoint], count, status, reason).status != status
        for endpoint, count, status, reason in found
    )


def _is_plain_success(health: EndpointHealth) -> bool:
    return health.succeeded and health.failures == 0 and health.status is None


async def _as_they_are(session: PostgresSession, health: Sequence[EndpointHealth]) -> list[RecordedEndpoint]:
    if not health:
        return []
    found = await session.rows(query("endpoints_as_they_are"), [one.endpoint for one in health])
    return [RecordedEndpoint(*row) for row in found]
