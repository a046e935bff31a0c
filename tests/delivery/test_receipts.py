"""Receipts at the sender: asked for by a header, waited for by a clock, told of once."""

from __future__ import annotations

from msgspec import structs

from surehook.core import ids, receipt_message
from surehook.core.receipt import Wanted, word
from surehook.delivery import receipts
from surehook.delivery.settings import EngineSettings
from tests.delivery.house import REFUSES, House, answers, in_house

URL = "https://a.example/hook"
LOOK_S = 10.0
WITHIN_S = 60
SETTINGS = EngineSettings(look_s=LOOK_S)


async def _say(house: House, stage: str, *, delivery: int = 0, secret: bytes = b"k" * 32) -> None:
    """What a receiver sends, as it sends it."""
    call = house.receivers.calls[delivery]
    now = house.clock.now()
    item = receipt_message.item(
        call.headers["webhook-id"],
        call.headers["webhook-delivery-id"],
        word(stage, now),  # type: ignore[arg-type]
    )
    body = receipt_message.write([item])
    asked = call.headers["webhook-receipts"]
    headers = receipt_message.headers(asked, [secret], body, now_ms=now, random=b"c" * 10)
    await receipts.take(house.engine, list(headers.items()), body)


async def _unfinalized(house: House) -> int:
    kinds = await house.notices()
    assert kinds.count("delivery.unfinalized") == house.engine.watch.notices.get("delivery.unfinalized", 0)
    return kinds.count("delivery.unfinalized")


async def _asking(house: House, within_s: int | None = WITHIN_S) -> bytes:
    endpoint = await house.endpoint(URL)
    await house.set(endpoint, receipts=Wanted(within_s))
    return endpoint


def test_receipts_are_asked_for_by_the_endpoints_own_id_and_nothing_else() -> None:
    async def story(house: House) -> None:
        asking = await _asking(house)
        await house.publish()
        await house.wait(1)
        await house.set(asking, receipts=None)
        await house.publish()
        await house.wait(1)
        asked, silent = house.receivers.calls
        assert asked.headers["webhook-receipts"] == ids.text(ids.ENDPOINT, asking)
        assert not any("://" in value for value in asked.headers.values())
        assert "webhook-receipts" not in silent.headers
        assert asked.request.headers.decode().replace(
            f"webhook-receipts: {ids.text(ids.ENDPOINT, asking)}\r\n", ""
        ).count("\r\n") == silent.request.headers.decode().count("\r\n")

    in_house(story, settings=SETTINGS)


def test_silence_after_a_delivery_is_told_of_once_and_in_time() -> None:
    async def story(house: House) -> None:
        await _asking(house)
        await house.publish(2)
        await house.wait(1)
        await _say(house, "finalized", delivery=1)
        await house.wait(WITHIN_S - 2)
        assert await _unfinalized(house) == 0
        await house.wait(LOOK_S + 2)
        assert await _unfinalized(house) == 1
        await house.wait(10 * WITHIN_S)
        assert await _unfinalized(house) == 1

    in_house(story, settings=SETTINGS)


def test_processed_is_no_end_and_rejected_is_one() -> None:
    async def story(house: House) -> None:
        await _asking(house)
        await house.publish(2)
        await house.wait(1)
        await _say(house, "processed", delivery=0)
        await _say(house, "rejected", delivery=1)
        await house.wait(WITHIN_S + LOOK_S)
        assert await _unfinalized(house) == 1
        shown = {view.receipt.stage for view in await house.deliveries() if view.receipt}
        assert shown == {"processed", "rejected"}

    in_house(story, settings=SETTINGS)


def test_what_was_not_delivered_is_not_waited_for() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[URL] = REFUSES
        await _asking(house)
        await house.publish()
        await house.wait(2 * WITHIN_S)
        assert await _unfinalized(house) == 0
        house.receivers.scripts[URL] = answers(200)
        await house.wait(400)  # the second retry of `standard` comes after five minutes
        assert await house.states() == {"delivered": 1}
        assert await _unfinalized(house) == 1

    in_house(story, settings=SETTINGS)


def test_nobody_waits_where_the_endpoint_names_no_time() -> None:
    async def story(house: House) -> None:
        await _asking(house, None)
        await house.publish()
        await house.wait(10 * WITHIN_S)
        assert await _unfinalized(house) == 0
        assert house.ledger.book.receipts == {}

    in_house(story, settings=SETTINGS)


def test_a_receipt_that_is_quicker_than_the_record_is_not_lost() -> None:
    """The receiver speaks while its answer is on the way."""

    async def story(house: House) -> None:
        house.receivers.scripts[URL] = answers(200, after=0.5)
        await _asking(house)
        await house.publish()
        await house.wait(0.3)
        assert await house.states() == {"sending": 1}
        await _say(house, "finalized")
        await house.wait(WITHIN_S + LOOK_S)
        assert await _unfinalized(house) == 0
        (view,) = await house.deliveries()
        assert (view.state, view.receipt and view.receipt.stage) == ("delivered", "finalized")

    in_house(story, settings=SETTINGS)


def test_a_secret_that_this_process_has_not_heard_of_is_believed() -> None:
    """Another process rotated it a moment ago."""

    async def story(house: House) -> None:
        endpoint = await _asking(house)
        await house.publish()
        await house.wait(1)
        (secret,) = house.route(endpoint).secrets
        now = house.clock.now()
        fresh = structs.replace(
            secret, id=ids.uuid7(now, house.entropy.bits(10)), material=b"n" * 32, created_at=now
        )
        await house.ledger.rotate_secret(fresh, old_expires_at=now + 1000)
        await _say(house, "processed", secret=b"n" * 32)
        await _say(house, "finalized", secret=b"k" * 32)
        assert house.engine.watch.receipts == {"processed": 1, "finalized": 1}

    in_house(story, settings=SETTINGS)
