"""An event as bytes: the body for receivers, and the digest that tells repeats.

`data` is never re-serialised: the bytes that were published are the bytes that are sent, on every attempt and
every replay. Reading what a publisher sent is `published.py`; callers find both here.
"""

from __future__ import annotations

import hashlib

import msgspec
from msgspec import Raw, Struct

from surehook.core.published import (
    EventIn,
    decode_batch,
    decode_event,
    decode_event_in_steps,
    decode_item,
    decode_item_in_steps,
    split_batch,
    split_in_steps,
)

__all__ = [
    "EventIn",
    "Frame",
    "decode_batch",
    "decode_event",
    "decode_event_in_steps",
    "decode_item",
    "decode_item_in_steps",
    "digest",
    "digest_of",
    "render_body",
    "split_batch",
    "split_data",
    "split_in_steps",
]


class _Body(Struct, kw_only=True, omit_defaults=True, gc=False):
    """The outgoing body. The order of the fields is the order of its keys, and part of the contract."""

    id: str
    type: str
    timestamp: str
    tenant: str
    schema_version: str
    subject: str | None = None
    sequence: int | None = None
    workflow_version: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    source: str | None = None
    data: Raw


class _Data(Struct, gc=False):
    data: Raw


_encode = msgspec.json.Encoder().encode
_decode_data = msgspec.json.Decoder(_Data).decode
_pack = msgspec.msgpack.Encoder().encode
_BEGIN, _TIMESTAMP = b'{"id":"', b',"timestamp":"'


def render_body(
    *,
    id: str,
    type: str,
    timestamp: str,
    tenant: str,
    schema_version: str,
    data: bytes,
    subject: str | None = None,
    sequence: int | None = None,
    workflow_version: str | None = None,
    correlation_id: str | None = None,
    causation_id: str | None = None,
    source: str | None = None,
) -> bytes:
    """The exact bytes every attempt of an event sends. `data` goes in byte for byte; absent fields are left out."""
    return _encode(
        _Body(
            id=id,
            type=type,
            timestamp=timestamp,
            tenant=tenant,
            schema_version=schema_version,
            subject=subject,
            sequence=sequence,
            workflow_version=workflow_version,
            correlation_id=correlation_id,
            causation_id=causation_id,
            source=source,
            data=Raw(data),
        )
    )


class Frame:
    """The bodies of plain events (tenant, type and data are all that was given) of one tenant and type: what they have
    in common is rendered once."""

    __slots__ = ("_after", "_between", "_head")

    def __init__(self, *, type: str, tenant: str, schema_version: str) -> None:
        # The type is checked, so neither mark is part of it.
        whole = render_body(
            id="", type=type, timestamp="", tenant=tenant, schema_version=schema_version, data=b""
        )
        between, after = whole.removeprefix(_BEGIN).split(_TIMESTAMP, 1)
        self._between = between + _TIMESTAMP
        self._after = after.removesuffix(b"}")
        self._head = _pack((tenant, type, *[None] * 8))

    def body(self, *, id: str, timestamp: str, data: bytes) -> bytes:
        """Same bytes as `render_body` for the event."""
        return b"".join((_BEGIN, id.encode(), self._between, timestamp.encode(), self._after, data, b"}"))

    def digest(self, data: bytes) -> bytes:
        """Same bytes as `digest` for the event."""
        return hashlib.sha256(self._head + data).digest()


def split_data(body: bytes) -> bytes:
    """The published `data` out of a rendered body, byte for byte."""
    return bytes(_decode_data(body).data)


def digest(
    tenant: str,
    type: str,
    subject: str | None,
    sequence: int | None,
    schema_version: str | None,
    workflow_version: str | None,
    correlation_id: str | None,
    causation_id: str | None,
    occurred_at: int | None,
    source: str | None,
    data: bytes,
) -> bytes:
    """SHA-256 of what the publisher sent, 32 bytes: equal digests are the same event sent again.

    The fields are framed as one MessagePack array, which knows its own end, so no two events share their bytes.
    """
    head = (
        tenant,
        type,
        subject,
        sequence,
        schema_version,
        workflow_version,
        correlation_id,
        causation_id,
        occurred_at,
        source,
    )
    return hashlib.sha256(_pack(head) + data).digest()


def digest_of(event: EventIn) -> bytes:
    """`digest` of a checked event. Neither the id nor the idempotency key is part of it: it is stored under them."""
    return digest(
        event.tenant,
        event.type,
        event.subject,
        event.sequence,
        event.schema_version,
        event.workflow_version,
        event.correlation_id,
        event.causation_id,
        event.occurred_at,
        event.source,
        event.data,
    )
