"""Rows as the version before writes them: an event with its key, and a dead letter of it."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from surehook.core import ids, limits
from surehook.ports.reading import DeliveryFilter, EventFilter

from .desk import Desk
from .making import NOW, TENANT, Maker

BEFORE = "0014"  # of the first of the columns that are new
EVENT = ids.uuid7(NOW, b"older-make")
DEAD = ids.delivery_id(EVENT, b"its id")
ENDPOINT = bytes(16)
KEY = "order-17"
KEPT_MS = limits.IDEMPOTENCY_KEPT_S * 1000


def statements(blob: str) -> list[str]:
    """`blob`: how the database writes bytes, with their digits at `{}`."""
    event, dead, endpoint, digest = (blob.format(part.hex()) for part in (EVENT, DEAD, ENDPOINT, bytes(32)))
    body = blob.format(b'{"data":{"n":1}}'.hex())
    return [
        "insert into event (id, tenant, type, schema_version, accepted_at, digest, fan_out, body) "
        f"values ({event}, '{TENANT}', 'document.signed', '1', {NOW}, {digest}, 1, {body})",
        'insert into attempt (delivery, seq, lane, started_at, outcome, status, "end", finished_at, tenant, endpoint, type, '
        f"event, headers, body) values ({dead}, 127, 0, {NOW}, 'refused', 500, 'dead', {NOW + 9}, "
        f"'{TENANT}', {endpoint}, 'document.signed', {event}, {blob.format('')}, {blob.format('')})",
        f"insert into dead_letter (delivery) values ({dead})",
        "insert into idempotency (tenant, key, event, digest, fan_out, expires_at) "
        f"values ('{TENANT}', '{KEY}', {event}, {digest}, 1, {NOW + KEPT_MS})",
    ]


async def upgraded(ledger: Any) -> None:
    """What this version makes of them, and beside them."""
    await ledger.open(now=NOW)
    (letter,) = (await ledger.dead_letters(DeliveryFilter(), limit=9, after=None)).data
    assert letter == await ledger.delivery(DEAD)
    assert (letter.id, letter.attempts, letter.request_headers) == (DEAD, 1, None)
    of_key = EventFilter(tenant=TENANT, idempotency_key=KEY)
    (event,) = (await ledger.events(of_key, limit=9, after=None)).data
    assert (event.id, event.idempotency_key) == (EVENT, None)
    desk = await Desk(ledger, Maker()).begin()
    (again,) = await desk.publish(desk.endpoint, now=NOW + KEPT_MS, key=KEY)
    assert [one.id for one in (await ledger.events(of_key, limit=9, after=None)).data] == [again.event]
    dead = desk.make.dead(await desk.hold_one())
    await desk.record(structs.replace(dead, request_headers=b"{}"))
    assert (await ledger.delivery(dead.delivery.id)).request_headers == b"{}"
    assert await ledger.dead_letter_count() == 2
    assert await ledger.dismiss(DEAD, note="settled", now=NOW)
    await ledger.close()
