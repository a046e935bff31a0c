"""What one window of results means, in one transaction.

A window of nothing but deliveries, the usual one, is one statement: the rows that are in this node's hand leave
the table and become the last lines of their histories, and a count tells whether every one was. A window that
tells of endpoints, breakers, notices or awaited receipts too is a transaction around the same statement.

A window whose commit was lost is run again. Its rows are not in hand any more, but their lines are there, word for
word; and since the window was one transaction, one line that is there means that all of it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from surehook.core.endpoint_health import concerns, disabled_notice, folded
from surehook.core.model import (
    BreakerRow,
    EndpointChange,
    EndpointHealth,
    Notice,
    Settled,
)
from surehook.ledgers import history
from surehook.ledgers.common.lines import attempt
from surehook.ledgers.postgres import columns
from surehook.ledgers.postgres.breakers import keep_breakers
from surehook.ledgers.postgres.errors import Again
from surehook.ledgers.postgres.nodes import check_fence
from surehook.ledgers.postgres.notices import keep_notices
from surehook.ledgers.postgres.receipts import wait
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query
from surehook.ports.ledger import Recorded


async def record(
    session: Session,
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
    session: Session,
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
        return Recorded(lost + repeated, await _fold_all(session, health, now))


def _are_plain(settled: Sequence[Settled]) -> bool:
    return all(one.end == "delivered" and not one.notices and one.finalize_by is None for one in settled)


def _each_once(settled: Sequence[Settled]) -> tuple[Sequence[Settled], list[bytes]]:
    """The first result of each delivery, and the ids of those that came again: their rows are not in hand any more."""
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
    session: Session, settled: Sequence[Settled], done: list[bytes] | None
) -> tuple[list[bytes], bool]:
    """Rows that were lost, and whether the window was committed before. `done`: None where every row was in hand."""
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


async def _fold_all(session: Session, health: Sequence[EndpointHealth], now: int) -> list[EndpointChange]:
    """Fold the windows; most are successes of endpoints that had no failures, and change nothing."""
    if not health:
        return []
    # Management locks the configuration first and then its endpoint, so whoever may switch one off does as well.
    may_turn = await _may_turn(session, health)
    if may_turn:
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
        if not concerns(one, url):
            continue
        change = folded(one, count, status, reason)
        if (change.failure_count, change.status, change.reason) == (count, status, reason):
            continue
        changes.append(change)
        turned.append(change.status != status)
        if change.status != status and one.status is None:
            notices.append(disabled_notice(change, tenant=tenant, now=now))
    if any(turned) and not may_turn:
        # The look of the next run sees it.
        raise Again("other windows brought an endpoint to its limit meanwhile")
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


async def _may_turn(session: Session, health: Sequence[EndpointHealth]) -> bool:
    """Whether an endpoint would leave its status by this window, without locking any."""
    deciding = {one.endpoint: one for one in health if one.status is not None or one.limit is not None}
    if not deciding:
        return False
    found = await session.rows(query("endpoints_as_they_are"), list(deciding))
    return any(
        folded(deciding[endpoint], count, status, reason).status != status
        for endpoint, count, status, reason in found
    )


def _is_plain_success(health: EndpointHealth) -> bool:
    return health.succeeded and health.failures == 0 and health.status is None


async def _as_they_are(session: Session, health: Sequence[EndpointHealth]) -> list[EndpointChange]:
    if not health:
        return []
    found = await session.rows(query("endpoints_as_they_are"), [one.endpoint for one in health])
    return [EndpointChange(*row) for row in found]
