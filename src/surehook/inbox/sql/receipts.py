"""Receipts that are owed: written with what they tell, leased to be told, kept for what is told later."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, bindparam, insert, select, update

from surehook.core.receipt import Word
from surehook.inbox.sql.tables import events, receipts, requests
from surehook.ports.inbox_receipts import EventOrigin, UnsentReceipt

_COLUMNS = (
    receipts.c.event, receipts.c.source, receipts.c.event_id, receipts.c.delivery, receipts.c.endpoint,
    receipts.c.word, receipts.c.due_at, receipts.c.attempts,
)  # fmt: skip
_word = msgspec.json.Decoder(Word)
_CHANGE = (
    update(receipts)
    .where(receipts.c.event == bindparam("key"))
    .values(lease=None, word=bindparam("new_word"), due_at=bindparam("new_due_at"), attempts=0)
)


class ReceiptStatements(ABC):
    """`ports.inbox_receipts.ReceiptTransaction` on a connection inside a transaction."""

    @property
    @abstractmethod
    def connection(self) -> Connection:
        """To say something with."""

    def receipts_of(self, events: Sequence[bytes]) -> dict[bytes, UnsentReceipt]:
        if not events:
            return {}
        wanted = select(*_COLUMNS).where(receipts.c.event.in_(events)).order_by(receipts.c.event)
        return {one.event: one for one in map(_read, self.connection.execute(wanted.with_for_update()))}

    def keep_receipts(self, new: Sequence[UnsentReceipt], changed: Sequence[UnsentReceipt]) -> None:
        if new:
            self.connection.execute(insert(receipts), [_row(one) for one in new])
        if changed:
            self.connection.execute(
                _CHANGE,
                [{"key": one.event, "new_word": _text(one), "new_due_at": one.due_at} for one in changed],
            )

    def origin(self, event: bytes) -> EventOrigin | None:
        found = self.connection.execute(
            select(events.c.source, events.c.event_id, events.c.received_at, requests.c.headers)
            .select_from(events.outerjoin(requests, requests.c.id == events.c.request))
            .where(events.c.id == event)
        ).first()
        if found is None:
            return None
        source, event_id, received_at, headers = found
        return EventOrigin(source=source, event_id=event_id, received_at=received_at, headers=headers)

    def claim_receipts(
        self, sources: Sequence[str], *, now: int, lease_ms: int, token: bytes, limit: int
    ) -> list[UnsentReceipt]:
        due = (
            select(*_COLUMNS)
            .where(receipts.c.due_at <= now, receipts.c.source.in_(sources))
            .order_by(receipts.c.due_at, receipts.c.event)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        found = [_read(row) for row in self.connection.execute(due)]
        if found:
            self.connection.execute(
                update(receipts)
                .where(receipts.c.event.in_([one.event for one in found]))
                .values(lease=token, due_at=now + lease_ms)
            )
        return found

    def receipts_sent(self, events: Sequence[bytes], token: bytes) -> None:
        if events:
            self.connection.execute(
                update(receipts)
                .where(receipts.c.event.in_(events), receipts.c.lease == token)
                .values(lease=None, due_at=None, attempts=0)
            )

    def postpone_receipts(self, given: Sequence[UnsentReceipt], token: bytes) -> None:
        for one in given:
            self.connection.execute(
                update(receipts)
                .where(receipts.c.event == one.event, receipts.c.lease == token)
                .values(lease=None, due_at=one.due_at, attempts=one.attempts)
            )


def _read(row: Any) -> UnsentReceipt:
    event, source, event_id, delivery, endpoint, word, due_at, attempts = row
    return UnsentReceipt(
        event=bytes(event),
        source=source,
        event_id=event_id,
        delivery=delivery,
        endpoint=endpoint,
        word=_word.decode(word),
        due_at=due_at,
        attempts=attempts,
    )


def _row(one: UnsentReceipt) -> dict[str, object]:
    return {
        "event": one.event,
        "source": one.source,
        "event_id": one.event_id,
        "delivery": one.delivery,
        "endpoint": one.endpoint,
        "word": _text(one),
        "due_at": one.due_at,
        "attempts": one.attempts,
    }


def _text(one: UnsentReceipt) -> str:
    return msgspec.json.encode(one.word).decode()
