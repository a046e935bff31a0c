"""What a dead letter keeps of its last request, as long as it is one."""

from __future__ import annotations

from msgspec import structs

from surehook.core.model import Delivery
from surehook.ports.reading import DeliveryFilter, DeliveryView

from .desk import Desk
from .making import NOW

HEADERS = b'{"webhook-id":"evt_1","authorization":"\xe2\x80\xa2"}'


async def seen(desk: Desk, delivery: Delivery) -> DeliveryView:
    """As it is shown by itself, which is as the lists show it."""
    view: DeliveryView = await desk.ledger.delivery(delivery.id)
    for listing in (desk.ledger.deliveries, desk.ledger.dead_letters):
        listed = await desk.everything(listing, DeliveryFilter(event=delivery.event))
        assert [one for one in listed if one.id == delivery.id] in ([view], [])
    return view


async def dies(desk: Desk, headers: bytes | None = HEADERS) -> Delivery:
    held = await desk.hold_one()
    await desk.record(structs.replace(desk.make.dead(held), request_headers=headers))
    return held


async def test_it_keeps_the_headers(desk: Desk) -> None:
    view = await seen(desk, await dies(desk))
    assert (view.state, view.request_headers) == ("dead", HEADERS)


async def test_those_that_die_beside_it_have_their_own(desk: Desk) -> None:
    """In one window: deaths with headers and without, a delivery, and one that goes on."""
    held = [await desk.hold_one() for _ in range(5)]
    settled = [
        structs.replace(desk.make.dead(held[0]), request_headers=b'{"n":"0"}'), desk.make.dead(held[1]),
        structs.replace(desk.make.dead(held[2]), request_headers=b'{"n":"2"}'), desk.make.delivered(held[3]),
        desk.make.failed(held[4], due_at=NOW + 5),
    ]  # fmt: skip
    await desk.record(*settled)
    kept = [(await seen(desk, one)).request_headers for one in held]
    assert kept == [b'{"n":"0"}', None, b'{"n":"2"}', None, None]


async def test_one_that_dies_later_keeps_those_of_the_request_before(desk: Desk) -> None:
    """By age while it waits, or in hand and without another call."""
    waiting, in_hand, untried = [await desk.hold_one() for _ in range(3)]
    for one in (waiting, in_hand):
        await desk.record(desk.make.failed(one, due_at=NOW + 5))
    aged, _ = await desk.row(waiting)
    await desk.ledger.release([untried], node=desk.node, now=NOW)
    await desk.ledger.end(
        [aged, untried],
        state="dead",
        reason=None,
        notices=[],
        now=NOW + 9,
        request_headers={aged.id: HEADERS},
    )
    (again,) = await desk.claim(1, due_by=NOW + 5)
    ended = desk.make.ended(again, "dead", kind="ended", outcome=None, status=None, started_at=NOW + 8)
    await desk.record(structs.replace(ended, request_headers=HEADERS))
    kept = [(await seen(desk, one)).request_headers for one in (waiting, in_hand, untried)]
    assert kept == [HEADERS, HEADERS, None]
    assert await desk.state(untried) == "dead"


async def test_they_go_with_the_dead_letter(desk: Desk) -> None:
    put_away, replayed = await dies(desk), await dies(desk)
    await desk.ledger.dismiss(put_away.id, note="settled by telephone", now=NOW)
    event = desk.make.event(id=replayed.event)
    again = desk.make.delivery(event, desk.endpoint, replay_of=replayed.id)
    assert await desk.ledger.resend([replayed.id], [again], now=NOW) == [replayed.id]
    for one in (put_away, replayed):
        view = await seen(desk, one)
        assert (view.state, view.request_headers) == ("dead", None)
