"""An event as a handler sees it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

from surehook.core import ids
from surehook.core.sources import payload
from surehook.core.sources.request import ReceivedRequest as Read
from surehook.core.workflow.decide import Step
from surehook.inbox.sources.source import Source
from surehook.ports.inbox import pairs
from surehook.ports.inbox_runs import Run

PREFIX = "inb"  # of an event's reference: `inb_06f…`
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Event(Struct, frozen=True, kw_only=True):
    """An event, with how it came and what proves it.

    ref             `inb_…`: its name in this inbox, for `finalize`, `reject`, `replay`
    id              the sender's event id
    data, body      the business data; the whole parsed body (of a batch: this item)
    raw, headers    the bytes and headers as received
    proven          which of `body`, `id`, `time`, `type` the sender's signature covers
    must_refetch    fetch the object from the provider before acting on it
    occurred_at     by the sender's word, or None. Never order by it
    attempt         1, 2, …: how often this run was begun
    replay          0 for the event's own arrival; the number of the replay otherwise
    change          where a workflow follows it: what it moved, from `before` to `after`
    """

    ref: str
    id: str
    source: str
    tenant: str
    type: str | None
    data: Any
    body: Any
    raw: bytes
    headers: Sequence[tuple[str, str]]
    proven: frozenset[str]
    must_refetch: bool
    received_at: datetime
    occurred_at: datetime | None
    schema_version: str | None
    correlation_id: str | None
    attempt: int
    replay: int
    change: Step | None = None


def read(run: Run, source: Source) -> Event:
    """Parse the event of a claimed run from the stored bytes. `run.body` must be there."""
    assert run.body is not None
    assert run.headers is not None
    headers = pairs(run.headers)
    provider = source.provider
    value = Read(provider, headers, run.body, run.url, source.known, was_read=True).parsed()
    data = None
    if run.item is not None:
        value = value[run.item]
    elif provider.data:
        data = payload.at(value, provider.data)
    return Event(
        ref=ids.text(PREFIX, run.event),
        id=run.event_id,
        source=run.source,
        tenant=run.tenant,
        type=run.type,
        data=value if data is None else data,
        body=value,
        raw=run.body,
        headers=headers,
        proven=frozenset(run.proven.split(",")) - {""},
        must_refetch=provider.must_refetch,
        received_at=_at(run.received_at),
        occurred_at=None if run.occurred_at is None else _at(run.occurred_at),
        schema_version=run.schema_version,
        correlation_id=run.correlation_id,
        attempt=run.attempts,
        replay=run.number,
    )


def _at(at_ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=at_ms)
