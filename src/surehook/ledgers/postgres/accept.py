"""Accepting events.

Nearly always everything in a batch is new. Then one statement is the whole transaction: fence, version, events, deliveries,
keys. It is tried first, and fails as a whole if an id or a key exists or the server refuses a value. Then the batch runs
again with care, in a transaction that finds out which items are repeats, which are conflicts, and which cannot be stored.

A batch whose commit was lost runs again in the same way: all of its rows exist, and are recognized as its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from surehook.core.ids import floor, millis
from surehook.core.instants import DAY_MS
from surehook.core.model import Delivery, Event
from surehook.ledgers import changes as notes
from surehook.ledgers.common.errors import Unstorable
from surehook.ledgers.postgres import columns
from surehook.ledgers.postgres.nodes import check_fence
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query
from surehook.ports.ledger import AcceptResult, Incoming, Taken

# A repeat is recognized by its Idempotency-Key for so long (docs/design.md).
KEY_LIFE_MS = DAY_MS


class _First(NamedTuple):
    """The first event that came with an id or a key."""

    event: bytes
    tenant: str
    digest: bytes
    fan_out: int


class Accepting:
    """Accepts batches. `_lag_ms` is the latest lag that was read from the ledger (schema.configuration)."""

    def __init__(self) -> None:
        self._lag_ms = 0

    async def accept(
        self, session: PostgresSession, batch: Sequence[Incoming], *, node: bytes, version: int, now: int
    ) -> AcceptResult:
        if not batch or self._lags(batch, now):
            return await self._with_care(session, batch, node=node, version=version, now=now)
        try:
            return await self._at_once(session, batch, node=node, version=version, now=now)
        except Unstorable:
            return await self._with_care(session, batch, node=node, version=version, now=now)

    def _lags(self, batch: Sequence[Incoming], now: int) -> bool:
        late = floor(now - self._lag_ms)
        return min([item.event.id for item in batch]) < late

    # -- all new ----------------------------------------------------------------------------------------

    async def _at_once(
        self, session: PostgresSession, batch: Sequence[Incoming], *, node: bytes, version: int, now: int
    ) -> AcceptResult:
        deliveries = [delivery for item in batch for delivery in item.deliveries]
        name = "accept"
        parameters = columns.of_events([item.event for item in batch], now)
        parameters += await columns.of_deliveries(deliveries, now)
        keyed = sorted([item for item in batch if item.event.idempotency_key is not None], key=_key_of)
        more: tuple[object, ...] = ()
        if keyed:
            name, more = "accept_keyed", (*_of_keys(keyed), now + KEY_LIFE_MS)
        found = await session.change(query(name), node, version, now, *parameters, *more)
        check_fence(found, node)
        _, newest, self._lag_ms, is_stale = found[0]
        if is_stale:
            return AcceptResult(True, [], newest)
        return AcceptResult(False, [Taken(item.event.id, item.event.fan_out, True) for item in batch], newest)

    # -- with care --------------------------------------------------------------------------------------

    async def _with_care(
        self, session: PostgresSession, batch: Sequence[Incoming], *, node: bytes, version: int, now: int
    ) -> AcceptResult:
        async with session.writing():
            found = await session.rows(query("fence"), node)
            check_fence(found, node)
            number, newest, self._lag_ms = found[0]
            if version < newest and await _is_concerned(session, batch, version, newest):
                return AcceptResult(True, [], newest)
            taken = await self._take(session, batch, number, now)
        return AcceptResult(False, taken, newest)

    async def _take(
        self, session: PostgresSession, batch: Sequence[Incoming], number: int, now: int
    ) -> list[Taken]:
        """Take a batch. If it repeats itself or the server refuses it, take its halves, down to the single item refused."""
        if len(batch) > 1 and _repeats_itself(batch):
            return await self._take_halves(session, batch, number, now)
        await session.say("savepoint part")
        try:
            taken = await self._take_part(session, batch, number, now)
        except Unstorable:
            await session.say("rollback to part; release part")
            if len(batch) == 1:
                return [Taken(batch[0].event.id, 0, False, "unstorable")]
            return await self._take_halves(session, batch, number, now)
        await session.say("release part")
        return taken

    async def _take_halves(
        self, session: PostgresSession, batch: Sequence[Incoming], number: int, now: int
    ) -> list[Taken]:
        half = len(batch) // 2
        first = await self._take(session, batch[:half], number, now)
        return first + await self._take(session, batch[half:], number, now)

    async def _take_part(
        self, session: PostgresSession, batch: Sequence[Incoming], number: int, now: int
    ) -> list[Taken]:
        """Write the new items of a batch in which no key and no id comes twice, and answer for all.

        Keys are taken first and events second, each locked by the insert, so that of two requests with the same key or id one
        waits for the other. An item with a known id gives its key back.
        """
        known_keys = await _take_keys(session, batch, now)
        asking = [
            item for item in batch if item.event.idempotency_key is None or _key_of(item) not in known_keys
        ]
        known_events = await _take_events(session, asking, now)
        born = await _born(session, [item for item in batch if item.given])
        fresh = [item for item in asking if item.event.id not in known_events]
        await _write_deliveries(session, fresh, number, now)
        await _drop_keys(session, [item for item in asking if item.event.id in known_events])
        await self._note_lag(session, fresh)
        taken = []
        for item in batch:
            event = item.event
            key = known_keys.get(_key_of(item)) if item.event.idempotency_key is not None else None
            there = known_events.get(event.id)
            is_ours = not item.given or any(delivery.id in born for delivery in item.deliveries)
            if key is not None:
                taken.append(_same_key(key, event, is_ours=is_ours))
            elif there is not None:
                taken.append(_same_id(there, event, is_ours=is_ours))
            else:
                taken.append(Taken(event.id, event.fan_out, True))
        return taken

    async def _note_lag(self, session: PostgresSession, items: Sequence[Incoming]) -> None:
        """Store the greatest lag of an acceptance behind its id's instant, rounded up to a power of two."""
        greatest = max((item.event.accepted_at - millis(item.event.id) for item in items), default=0)
        if greatest > self._lag_ms:
            self._lag_ms = 1 << greatest.bit_length()
            await session.run(query("raise_lag"), self._lag_ms)


async def _is_concerned(session: PostgresSession, batch: Sequence[Incoming], since: int, newest: int) -> bool:
    if newest - since > notes.MEETINGS_MOST:
        return True
    found = await session.rows(query("noted_since"), since)
    return notes.concern([tuple(row) for row in found], batch, since=since, newest=newest)


def _key_of(item: Incoming) -> tuple[str, str]:
    assert item.event.idempotency_key is not None
    return item.event.tenant, item.event.idempotency_key


def _repeats_itself(batch: Sequence[Incoming]) -> bool:
    places = [_key_of(item) for item in batch if item.event.idempotency_key is not None]
    events = [item.event.id for item in batch]
    return len(set(places)) < len(places) or len(set(events)) < len(events)


def _same_key(first: _First, event: Event, *, is_ours: bool) -> Taken:
    if first.digest != event.digest:
        return Taken(first.event, first.fan_out, False, "idempotency_conflict")
    return Taken(first.event, first.fan_out, first.event == event.id and is_ours)


def _same_id(first: _First, event: Event, *, is_ours: bool) -> Taken:
    """Answer for an id that exists. Its rows may have been written by this very item, in a commit whose answer was lost.

    An id that we made belongs to nobody else. One that the publisher chose may come twice, but the ids of the deliveries
    are made anew for each item.
    """
    if first.tenant != event.tenant or first.digest != event.digest:
        return Taken(first.event, first.fan_out, False, "event_id_conflict")
    return Taken(first.event, first.fan_out, is_ours)


async def _take_keys(
    session: PostgresSession, batch: Sequence[Incoming], now: int
) -> dict[tuple[str, str], _First]:
    """Take the keys that nobody has, and return the first events of the others."""
    items = sorted([item for item in batch if item.event.idempotency_key is not None], key=_key_of)
    if not items:
        return {}
    taken = await session.rows(query("take_keys"), *_of_keys(items), now + KEY_LIFE_MS, now)
    ours = {(tenant, key) for tenant, key in taken}
    others = [item for item in items if _key_of(item) not in ours]
    if not others:
        return {}
    return {
        (tenant, key): _First(event, tenant, digest, fan_out)
        for tenant, key, event, digest, fan_out in await session.rows(query("known_keys"), *_of_names(others))
    }


async def _take_events(session: PostgresSession, items: Sequence[Incoming], now: int) -> dict[bytes, _First]:
    """Write the events that do not exist, and return those that do."""
    events = sorted([item.event for item in items], key=lambda event: event.id)
    if not events:
        return {}
    written = await session.rows(query("take_events"), now, *columns.of_events(events, now))
    if len(written) == len(events):
        return {}
    ours = {row[0] for row in written}
    others = [event.id for event in events if event.id not in ours]
    found = await session.rows(query("known_events"), others)
    return {row[0]: _First(*row) for row in found}


async def _born(session: PostgresSession, given: Sequence[Incoming]) -> set[bytes]:
    """Return the ids of the items' deliveries that exist, or existed."""
    asked = [delivery.id for item in given for delivery in item.deliveries]
    return {row[0] for row in await session.rows(query("born"), asked)} if asked else set()


async def _write_deliveries(
    session: PostgresSession, items: Sequence[Incoming], number: int, now: int
) -> None:
    deliveries: list[Delivery] = [delivery for item in items for delivery in item.deliveries]
    if deliveries:
        parameters = await columns.of_deliveries(deliveries, now)
        await session.run(query("take_deliveries"), now, number, *parameters)


async def _drop_keys(session: PostgresSession, items: Sequence[Incoming]) -> None:
    """Give back the keys of items that turned out to be known events."""
    keyed = [item for item in items if item.event.idempotency_key is not None]
    if keyed:
        await session.run(query("drop_keys"), *_of_names(keyed))


def _of_names(items: Sequence[Incoming]) -> tuple[list[str], list[str | None]]:
    return [item.event.tenant for item in items], [item.event.idempotency_key for item in items]


def _of_keys(items: Sequence[Incoming]) -> tuple[list[Any], ...]:
    events = [item.event for item in items]
    return (
        *_of_names(items),
        [event.id for event in events],
        [event.digest for event in events],
        [event.fan_out for event in events],
    )
