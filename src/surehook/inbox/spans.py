"""A span of OpenTelemetry for each committed change of state: `inbox.observe(spans.to(tracer))`.

    process SOURCE        an event ended, or was put off: from its arrival to the commit, so its length is what people waited
    settle SOURCE         somebody said `finalize` or `reject`
    move DOCUMENT_TYPE    a decision about a document, from the arrival of its event

Names and attributes are those of the semantic conventions for messaging, with `surehook` as the system and the source as the
destination; what is the inbox's own is `surehook.…`. A span begins a trace of its own, with a link to the sender's, if the event
came with a `traceparent`: a child would make the sender's trace as long as the longest retry, and let whoever sends decide what
is sampled here. A replay may come a year later, so the span of one has no length.

This needs the `opentelemetry-api` package (`pip install 'surehook[inbox,tracing]'`). Without an SDK its spans go nowhere.
"""

from __future__ import annotations

from surehook.core.errors import SettingsError
from surehook.inbox.transitions import Observer, Transition

try:
    from opentelemetry.context import Context
    from opentelemetry.trace import (
        Link,
        SpanContext,
        SpanKind,
        Status,
        StatusCode,
        TraceFlags,
        Tracer,
    )
except ImportError:
    raise SettingsError(
        "spans", "the opentelemetry-api package is needed", hint="pip install 'surehook[inbox,tracing]'"
    ) from None

NS_IN_MS = 1_000_000
# Attempts that are tried again, and were failures all the same.
FAILED = ("handler_failed", "handler_timeout", "commit_failed", "unreadable", "workflow_error")
_OPERATIONS = {
    "event.ended": ("process", SpanKind.CONSUMER),
    "event.decided": ("settle", SpanKind.CLIENT),
    "document.moved": ("move", SpanKind.INTERNAL),
}
_MESSAGING = {
    "messaging.destination.name": "source",
    "messaging.message.id": "event_id",
    "messaging.message.conversation_id": "correlation_id",
}
_OWN = (
    "ref", "tenant", "event_type", "before", "after", "document_type", "document", "party", "verdict", "rule", "attempt",
    "replay", "handler", "handler_version", "code",
)  # fmt: skip


def to(tracer: Tracer) -> Observer:
    """Make an observer that makes a span of each change."""

    def observe(change: Transition) -> None:
        operation, kind = _OPERATIONS[change.kind]
        about = change.document_type if change.kind == "document.moved" else change.source
        span = tracer.start_span(
            f"{operation} {about}",
            context=Context(),
            kind=kind,
            attributes=_attributes(change, operation),
            links=_links(change.traceparent),
            start_time=_begin(change) * NS_IN_MS,
        )
        if change.after == "dead" or change.code in FAILED:
            span.set_attribute("error.type", change.code or "dead")
            span.set_status(Status(StatusCode.ERROR))
        span.end(end_time=change.at * NS_IN_MS)

    return observe


def _begin(change: Transition) -> int:
    if change.kind == "event.decided" or change.received_at is None or change.replay != 0:
        return change.at
    return min(change.received_at, change.at)  # clocks of several machines may differ


def _attributes(change: Transition, operation: str) -> dict[str, str | int]:
    found: dict[str, str | int] = {"messaging.system": "surehook", "messaging.operation.name": operation}
    if operation != "move":  # the list of types is closed, and has none for that
        found["messaging.operation.type"] = operation
    named = {**_MESSAGING, **{f"surehook.{name}": name for name in _OWN}}
    for name, field in named.items():
        value = getattr(change, field)
        if value is not None and value != "":
            found[name] = value
    return found


def _links(traceparent: str | None) -> list[Link]:
    if traceparent is None:
        return []
    _, trace, span, flags = traceparent.split("-")
    context = SpanContext(
        int(trace, 16), int(span, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16))
    )
    return [Link(context)]  # one of zeros is no link: the SDK leaves it out
