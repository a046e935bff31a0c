"""A verified message, the same shape for every provider."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct, structs

from surehook.core.sources.provider import Reply


class Item(Struct, frozen=True):
    """One event of a batch: the fields in which it differs from the others."""

    id: str
    type: str | None
    occurred_at: datetime | None
    data: Any


class Message(Struct, frozen=True, kw_only=True):
    """A verified message; `proven` says how far it may be believed.

    provider      the one whose scheme it was verified by
    id            identifies repeats; 1 to 255 visible characters
    type          event type, or None where the provider gives none
    occurred_at   when the event happened, UTC, or None. Never order by it
    sent_at       when the request was signed or sent, UTC, or None
    data          the business data: a part of `body`, or all of it
    body          the whole parsed body
    raw           the bytes as received
    proven        those of `body`, `time` (that is `occurred_at`), `id`, `type` that the signature covers
    fresh         `sent_at` is covered and was within the tolerance: an old copy would have been refused
    must_refetch  fetch the object from the provider before acting on it
    handshake     the answer to give instead of treating this as an event, or None
    key_id        the id of the key that signed it, or None where the key has none
    items         of a batch: its events; `each()` makes messages of them
    """

    provider: str
    id: str
    type: str | None
    occurred_at: datetime | None
    sent_at: datetime | None
    data: Any
    body: Any
    raw: bytes
    proven: frozenset[str]
    fresh: bool
    must_refetch: bool
    key_id: str | None
    handshake: Reply | None = None
    items: tuple[Item, ...] | None = None

    def each(self) -> tuple[Message, ...]:
        """The events of this message, one or many, each as a message with the same `raw`."""
        if self.items is None:
            return (self,)
        return tuple(
            structs.replace(
                self,
                id=one.id,
                type=one.type,
                occurred_at=one.occurred_at,
                data=one.data,
                body=one.data,
                items=None,
            )
            for one in self.items
        )
