"""/v1/events: accepted events. Publishing is answered in front of the application (`ingest.py`); it is described here
so that the document is complete."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from msgspec import Meta, Struct

from surehook.api import query, show
from surehook.api.deliveries import DELIVERY_FILTERS, shown
from surehook.api.operations import ApiAnswer, ApiRequest, Operation
from surehook.core import ids, limits
from surehook.core.answers import AcceptedOut, DeliveryOut, EventOut
from surehook.core.errors import Problem
from surehook.core.model import Event
from surehook.ports.reading import DeliveryFilter, EventFilter
from surehook.ports.registry import Page

PIECE_ROWS = 20  # events read at once: their bodies are held in memory
PAGE_BYTES = 4 * 1024 * 1024  # bodies of one page; a page that reaches it comes back short, with a cursor

Text = Annotated[str, Meta(max_length=limits.TEXT_CHARS)]
Version = Annotated[str, Meta(max_length=limits.VERSION_CHARS)]


class NewEvent(Struct, forbid_unknown_fields=True):
    """An event to publish."""

    tenant: Annotated[str, Meta(max_length=limits.TENANT_CHARS)]
    type: Annotated[str, Meta(max_length=limits.EVENT_TYPE_CHARS)]
    data: Annotated[Any, Meta(description="Any JSON value. Its bytes are delivered as they are.")]
    id: (
        Annotated[str, Meta(description="`evt_…`, made by the publisher, as the client library does.")] | None
    ) = None
    subject: Text | None = None
    sequence: Annotated[int, Meta(ge=0)] | None = None
    schema_version: Version | None = None
    workflow_version: Version | None = None
    correlation_id: Text | None = None
    causation_id: Text | None = None
    source: Text | None = None
    occurred_at: Annotated[str, Meta(extra_json_schema={"format": "date-time"})] | None = None


class NewBatchEvent(NewEvent, forbid_unknown_fields=True):
    idempotency_key: Annotated[str, Meta(max_length=limits.IDEMPOTENCY_KEY_CHARS)] | None = None


async def get(asked: ApiRequest) -> ApiAnswer:
    return ApiAnswer(show.event(await _find(asked)))


async def list_all(asked: ApiRequest) -> ApiAnswer:
    where = EventFilter(**asked.query_filters())
    if where.idempotency_key is not None and where.tenant is None:
        raise Problem("bad_parameter", "a key is a tenant's: name the tenant too", field="tenant")
    return asked.page(await _page(asked, where), show.event)


async def list_deliveries(asked: ApiRequest) -> ApiAnswer:
    event = await _find(asked)
    where = DeliveryFilter(event=event.id, **asked.query_filters())
    page = await asked.services.engine.ledger.deliveries(where, limit=asked.limit, after=asked.after)
    return asked.page(page, partial(shown, asked))


async def _find(asked: ApiRequest) -> Event:
    event = await asked.services.engine.ledger.event(asked.id(ids.EVENT, "event"))
    if event is None:
        raise Problem("not_found", "there is no event with this id", status=404)
    return event


async def _page(asked: ApiRequest, where: EventFilter) -> Page:
    """One page, read in pieces so that large events do not fill memory."""
    found: list[Event] = []
    after, size = asked.after, 0
    while len(found) < asked.limit and size < PAGE_BYTES:
        rows = min(PIECE_ROWS, asked.limit - len(found))
        piece = await asked.services.engine.ledger.events(where, limit=rows, after=after)
        found += piece.data
        size += sum(len(event.body) for event in piece.data)
        after = piece.next
        if after is None or len(piece.data) < rows:
            break  # the end, or a long stretch without matches: the ledger's own bound
    return Page(data=found, next=after)


EVENT_FILTERS = (
    query.tenant(),
    query.event_type(),
    query.text("subject", "Subject, exactly."),
    query.text("correlation_id", "Correlation id, exactly."),
    query.text(
        "idempotency_key",
        "`Idempotency-Key` of this `tenant`, exactly.",
        chars=limits.IDEMPOTENCY_KEY_CHARS,
    ),
    query.instant("since", "Accepted at this instant or later."),
    query.instant("until", "Accepted before this instant."),
)
# Reasons to refuse one event, on its own or as an item of a batch.
EVENT_PROBLEMS = (
    "unknown_tenant", "unknown_event_type", "invalid_event_type", "schema_mismatch", "schema_too_costly", "invalid_schema",
    "unknown_schema_version", "bad_id", "bad_time", "too_long", "event_id_ahead", "event_id_too_old", "event_id_conflict",
    "invalid_idempotency_key", "idempotency_conflict", "unstorable",
)  # fmt: skip

OPERATIONS = (
    Operation(
        method="POST", path="/v1/events", name="publish", body=NewEvent, about="Publish an event.",
        detail="202 means that the event and its deliveries are on disk. `Idempotency-Key` makes a repeat safe: "
        "the same again is answered the same, another body is a 409.",
        answers={202: AcceptedOut}, problems=(*EVENT_PROBLEMS, "overloaded", "tenant_overloaded", "disk_full"),
    ),
    Operation(
        method="POST", path="/v1/events/batch", name="publish_batch", body=NewBatchEvent,
        about="Publish up to 1,000 events.",
        detail="The body is a JSON array. The answer has one entry per event, in order: what was accepted, or its problem.",
        answers={202: AcceptedOut}, problems=(
            "too_many_events", "idempotency_key_not_here", "overloaded", "tenant_overloaded", "disk_full",
        ),
    ),
    Operation(
        method="GET", path="/v1/events", name="list_events", handle=list_all, about="Events, newest first.",
        answers={200: EventOut}, is_list=True, query=EVENT_FILTERS,
    ),
    Operation(
        method="GET", path="/v1/events/{id}", name="get_event", handle=get,
        about="One event. `data` has the bytes that were published.", answers={200: EventOut},
        problems=("not_found",),
    ),
    Operation(
        method="GET", path="/v1/events/{id}/deliveries", name="list_event_deliveries", handle=list_deliveries,
        about="The deliveries of an event, replays included.", answers={200: DeliveryOut}, is_list=True,
        query=DELIVERY_FILTERS[1:], problems=("not_found",),
    ),
)  # fmt: skip
