"""A delivery as people see it (states: docs/architecture.md)."""

from __future__ import annotations

from lab.ledger.book import Book
from lab.ledger.rows import Row, Story
from surehook.core.ids import millis
from surehook.core.model import Attempt
from surehook.core.receipt import Word
from surehook.ports.reading import DeliveryFilter, DeliveryView, EventFilter


def view(book: Book, delivery: bytes) -> DeliveryView | None:
    row = book.rows.get(delivery)
    if row is not None:
        return _open(book, row, _counted(book, delivery), _said(book, row))
    story = book.stories.get(delivery)
    return None if story is None else _finished(book, story, _counted(book, delivery), _said(book, story))


def _said(book: Book, of: Row | Story) -> Word | None:
    receipt = book.receipts.get((of.event, of.endpoint))
    return None if receipt is None else receipt.row.state


def _counted(book: Book, delivery: bytes) -> int:
    """Count the requests made: history rows of kind `attempt`."""
    return sum(entry.kind == "attempt" for entry in book.history[delivery])


def _open(book: Book, row: Row, attempts: int, receipt: Word | None) -> DeliveryView:
    if row.holder is not None:
        state = "sending"
    elif row.parked is not None:
        state = "parked"
    else:
        state = "retrying" if attempts else "scheduled"
    return DeliveryView(
        id=row.id,
        event=row.event,
        endpoint=row.endpoint,
        tenant=row.tenant,
        type=row.type,
        state=state,
        reason=row.parked,
        lane=row.lane,
        attempts=attempts,
        outcome=row.outcome,
        unknown=row.unknown,
        due_at=row.due_at,
        finished_at=None,
        replay_of=row.replay_of,
        replayed_by=None,
        receipt=receipt,
        subject=_subject(book, row.event),
        correlation_id=_correlation(book, row.event),
    )


def _finished(book: Book, story: Story, attempts: int, receipt: Word | None) -> DeliveryView:
    return DeliveryView(
        id=story.id,
        event=story.event,
        endpoint=story.endpoint,
        tenant=story.tenant,
        type=story.type,
        state=story.state,
        reason=story.reason,
        lane=story.lane,
        attempts=attempts,
        outcome=story.outcome,
        unknown=story.unknown,
        due_at=None,
        finished_at=story.finished_at,
        replay_of=story.replay_of,
        replayed_by=story.replayed_by,
        receipt=receipt,
        dismissal=story.dismissal,
        subject=_subject(book, story.event),
        correlation_id=_correlation(book, story.event),
        request_headers=story.request_headers,
    )


def _subject(book: Book, id: bytes) -> str | None:
    event = book.events.get(id)
    return None if event is None else event.subject


def _correlation(book: Book, id: bytes) -> str | None:
    event = book.events.get(id)
    return None if event is None else event.correlation_id


def fits(book: Book, seen: DeliveryView, where: DeliveryFilter) -> bool:
    """Return True if a delivery passes the filter. Its instant is that of its id."""
    made_at = millis(seen.id)
    last = _last_request(book, seen.id)
    return (
        where.tenant in (None, seen.tenant)
        and where.endpoint in (None, seen.endpoint)
        and where.state in (None, seen.state)
        and where.type in (None, seen.type)
        and where.outcome in (None, seen.outcome)
        and where.event in (None, seen.event)
        and where.subject in (None, seen.subject)
        and where.correlation_id in (None, seen.correlation_id)
        and where.receipt in (None, seen.receipt and seen.receipt.stage)
        and where.code in (None, seen.receipt and seen.receipt.code)
        and where.status in (None, last and last.status)
        and where.error in (None, last and last.error)
        and (where.since is None or made_at >= where.since)
        and (where.until is None or made_at < where.until)
    )


def _last_request(book: Book, delivery: bytes) -> Attempt | None:
    made = (entry for entry in reversed(book.history[delivery]) if entry.kind == "attempt")
    return next(made, None)


def event_fits(book: Book, event: bytes, where: EventFilter) -> bool:
    seen = book.events[event]
    return (
        where.tenant in (None, seen.tenant)
        and where.type in (None, seen.type)
        and where.subject in (None, seen.subject)
        and where.correlation_id in (None, seen.correlation_id)
        and where.idempotency_key in (None, seen.idempotency_key)
        and (where.since is None or seen.accepted_at >= where.since)
        and (where.until is None or seen.accepted_at < where.until)
    )
