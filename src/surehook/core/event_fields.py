"""Fields of an event beside its type and data, as every publisher in Python gives them."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict


class EventFields(TypedDict, total=False):
    """None of them has to be given.

    subject           what the event is about, such as a document's id: order and sequence are per tenant and subject
    sequence          its number within the subject, by which a receiver closes gaps
    schema_version    of the data
    workflow_version  of the workflow that the subject is in
    correlation_id    what several events of one business transaction have in common
    causation_id      id of the event or command that led to this one
    source            which part of the application it comes from
    occurred_at       when it happened, with an offset
    """

    subject: str | None
    sequence: int | None
    schema_version: str | None
    workflow_version: str | None
    correlation_id: str | None
    causation_id: str | None
    source: str | None
    occurred_at: datetime | str | None
