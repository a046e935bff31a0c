"""Whatever becomes ready out of order on one file is claimed at once beside somebody who is passed over, however late it was
written: a look goes on from where the last one ended, and is told of rows that came to lie behind that."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from surehook.ledgers.sqlite import others
from surehook.ports.ledger import Skip
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW

LATE = NOW - 20_000  # the instant by the clock of a call that waited for its turn since then
CROWD = 60  # rows of who is passed over: a pass takes nine looks for them


async def _due_now(desk: Desk) -> bytes:
    waiting = await desk.publish_one(due_at=NOW + 3_600_000)
    await _catch_up(desk)
    assert await desk.ledger.due_now(waiting.id, now=LATE)
    return waiting.id


async def _resend(desk: Desk) -> bytes:
    done = await desk.finish_one()
    event = await desk.ledger.event(done.event)
    again = desk.make.delivery(event, done.endpoint, replay_of=done.id, born_at=LATE, due_at=LATE)
    await _catch_up(desk)
    assert await desk.ledger.resend([done.id], [again], now=LATE) == [done.id]
    return again.id


async def _catch_up(desk: Desk) -> None:
    """Look until everything that is due has been looked at, and the pass for what nobody tells of has begun anew."""
    for _ in range(12):
        assert await _claimed(desk) == []


async def _claimed(desk: Desk) -> list[bytes]:
    rows = await desk.ledger.claim_others(
        0, node=desk.node, limit=100, due_by=NOW, now=NOW, skip=Skip(tenants=("crowd",))
    )
    return [row.id for row in rows]


async def _crowd(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(others, "LOOK_ROWS", 7)
    await desk.ledger.add_tenant(desk.make.tenant("crowd"))
    crowd = await desk.new_endpoint(tenant="crowd")
    for number in range(CROWD):
        await desk.publish_one(crowd, due_at=NOW - 40_000 + number * 300, event={"tenant": "crowd"})


@pytest.mark.parametrize("made", [_due_now, _resend])
async def test_what_was_made_ready_late_is_claimed_by_the_next_look(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, made: Callable[[Desk], Awaitable[bytes]]
) -> None:
    await _crowd(desk, monkeypatch)
    ready = await made(desk)
    assert await _claimed(desk) == [ready]


async def test_a_row_is_found_again_where_work_beside_its_claim_fails(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction that is shared is taken back as a whole, with what the claim had leased, but not with its positions."""
    await _crowd(desk, monkeypatch)
    ready = await _due_now(desk)

    def fails(session: object) -> None:
        raise ArithmeticError

    gate = threading.Event()
    first = asyncio.create_task(desk.ledger._join(lambda session: gate.wait(10)))
    claim, failure = (asyncio.create_task(work) for work in (_claimed(desk), desk.ledger._join(fails)))
    for _ in range(3):
        await asyncio.sleep(0)  # both wait for the writer now
    gate.set()
    assert await claim == [ready]
    with pytest.raises(ArithmeticError):
        await failure
    await first
