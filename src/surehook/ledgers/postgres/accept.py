"""The way in.

Nearly always everything in a batch is new, and then one statement is the whole transaction: fence, version,
events, deliveries, keys. It is tried first, and fails as a whole where an id or a key was there before, or where
the server refuses a value. Then the batch is run again with care: in a transaction that finds out, item by item
where it must, which ones are repeats, which are conflicts, and which one cannot be stored.

That is also how a batch whose commit was lost is run again: all of it is there, and known as its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from surehook.core.ids import floor, millis
from surehook.core.instants import DAY_MS
from surehook.core.model import Delivery, Event
from surehook.ledgers import changes as notes
from surehook.ledgers.postgres import columns
from surehook.ledgers.postgres.errors import Unstorable
from surehook.ledgers.postgres.nodes import check_fence
from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query
from surehook.ports.ledger import AcceptResult, Incoming, Taken

KEY_LIFE_MS = DAY_MS  # how long a repeat is recognised by its Idempotency-Key (DESIGN section 12)


class _First(NamedTuple):
    """What an id or a key stands for: the first event that came with it."""

    event: bytes
    tenant: str
    digest: bytes
    fan_out: int


class Accepting:
    """`lag_ms`: the least that the book is known to have noted (schema.configuration)."""

    def __init__(self) -> None:
        self._lag_ms = 0

    async def accept(
        self, session: Session, batch: Sequence[Incoming], *, node: bytes, version: int, now: int
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
        self, session: Session, batch: Sequence[Incoming], *, node: bytes, version: int, now: int
    ) -> AcceptResult:
        deliveries = [delivery for item in batch for delivery in item.deliveries]
        name = "accept"
        parameters = columns.of_events([item.event for item in batch], now)
        parameters += await columns.of_deliveries(deliveries, now)
        keyed = sorted([item for item in batch if item.event.idempotency_key is not None], key=_place)
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
        self, session: Session, batch: Sequence[Incoming], *, node: bytes, version: int, now: int
    ) -> AcceptResult:
        async with session.writing():
            found = await session.rows(query("fence"), node)
            check_fence(found, node)
            number, newest, self._lag_ms = found[0]
            if version < newest and await _is_concerned(session, batch, version, newest):
                return AcceptResult(True, [], newest)
            taken = await self._take(session, batch, number, now)
        return AcceptResult(False, taken, newest)

    async def _take(self, session: Session, batch: Sequence[Incoming], number: int, now: int) -> list[Taken]:
        """Take a batch; where it repeats itself or the server refuses it, its halves, down to the one item refused."""
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
        self, session: Session, batch: Sequence[Incoming], number: int, now: int
    ) -> list[Taken]:
        half = len(batch) // 2
        first = await self._take(session, batch[:half], number, now)
        return first + await self._take(session, batch[half:], number, now)

    async def _take_part(
        self, session: Session, batch: Sequence[Incoming], number: int, now: int
    ) -> list[Taken]:
        known_keys = await _take_keys(session, batch, now)
        asking = [
            item for item in batch if item.event.idempotency_key is None or _place(item) not in known_keys
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
            key = known_keys.get(_place(item)) if item.event.idempotency_key is not None else None
            there = known_events.get(event.id)
            is_ours = not item.given or any(delivery.id in born for delivery in item.deliveries)
            if key is not None:
                taken.append(_same_key(key, event, is_ours=is_ours))
            elif there is not None:
                taken.append(_same_id(there, event, is_ours=is_ours))
            else:
                taken.append(Taken(event.id, event.fan_out, True))
        return taken

    async def _note_lag(self, session: Session, items: Sequence[Incoming]) -> None:
        """Remember the greatest distance between an id's instant and its acceptance, as the next power of two."""
        greatest = max((item.event.accepted_at - millis(item.event.id) for item in items), default=0)
        if greatest > self._lag_ms:
            self._lag_ms = 1 << greatest.bit_length()
            await session.run(query("raise_lag"), self._lag_ms)


async def _is_concerned(session: Session, batch: Sequence[Incoming], since: int, newest: int) -> bool:
    if newest - since > notes.MEETINGS_MOST:
        return True
    found = await session.rows(query("noted_since"), since)
    return notes.concern([tuple(row) for row in found], batch, since=since, newest=newest)


def _place(item: Incoming) -> tuple[str, str]:
    assert item.event.idempotency_key is not None
    return item.event.tenant, item.event.idempotency_key


def _repeats_itself(batch: Sequence[Incoming]) -> bool:
    places = [_place(item) for item in batch if item.event.idempotency_key is not None]
    events = [item.event.id for item in batch]
    return len(set(places)) < len(places) or len(set(events)) < len(events)


def _same_key(first: _First, event: Event, *, is_ours: bool) -> Taken:
    if first.digest != event.digest:
        return Taken(first.event, first.fan_out, False, "idempotency_conflict")
    return Taken(first.event, first.fan_out, first.event == event.id and is_ours)


def _same_id(first: _First, event: Event, *, is_ours: bool) -> Taken:
    """Rows that are there may have been written by this very item, in a commit whose answer was lost.

    An id that we made can be nobody else's. One that the publisher chose may come twice, but the
    deliveries' ids are made new for each item.
    """
    if first.tenant != event.tenant or first.digest != event.digest:
        return Taken(first.event, first.fan_out, False, "event_id_conflict")
    return Taken(first.event, first.fan_out, is_ours)


async def _take_keys(session: Session, batch: Sequence[Incoming], now: int) -> dict[tuple[str, str], _First]:
    """Take the keys that nobody has, and say what the others stand for."""
    items = sorted([item for item in batch if item.event.idempotency_key is not None], key=_place)
    if not items:
        return {}
    taken = await session.rows(query("take_keys"), *_of_keys(items), now + KEY_LIFE_MS, now)
    ours = {(tenant, key) for tenant, key in taken}
    others = [item for item in items if _place(item) not in ours]
    if not others:
        return {}
    return {
        (tenant, key): _First(event, tenant, digest, fan_out)
        for tenant, key, event, digest, fan_out in await session.rows(query("known_keys"), *_of_names(others))
    }


async def _take_events(session: Session, items: Sequence[Incoming], now: int) -> dict[bytes, _First]:
    """Write the events that are not there, and say what those are that are."""
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


async def _born(session: Session, given: Sequence[Incoming]) -> set[bytes]:
    """Which of the items' deliveries were born before."""
    asked = [delivery.id for item in given for delivery in item.deliveries]
    return {row[0] for row in await session.rows(query("born"), asked)} if asked else set()


async def _write_deliveries(session: Session, items: Sequence[Incoming], number: int, now: int) -> None:
    deliveries: list[Delivery] = [delivery for item in items for delivery in item.deliveries]
    if deliveries:
        parameters = await columns.of_deliveries(deliveries, now)
        await session.run(query("take_deliveries"), now, number, *parameters)


async def _drop_keys(session: Session, items: Sequence[Incoming]) -> None:
    """Keys of items that turned out to be no new events."""
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
