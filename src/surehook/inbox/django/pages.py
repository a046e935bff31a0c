"""The content of the admin's pages, each bounded: a list by its rows, a body by its characters, a history by its lines."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

import msgspec
from django import forms
from django.http import QueryDict
from msgspec import Struct

from surehook.core import ids, instants, redact
from surehook.inbox.django.models import Steps
from surehook.inbox.event import PREFIX
from surehook.inbox.operations import ROWS, EventRow, FailedTry
from surehook.inbox.sql.tables import ID_CHARS, TENANT_CHARS
from surehook.ports.inbox_runs import State

if TYPE_CHECKING:
    from surehook.inbox.django.facade import Inbox

PAGE = 100  # rows of a list
BODY_BYTES = 65_536  # of a body that is read at all: a page is for people
BODY_CHARS = 200_000  # of it as written on the page: indenting makes more of what is nested deeply
LINES = 200  # of a document's history, the newest
OTHERS = 5  # conflicting bodies on the page of their event
SKIP_MAX = ROWS - PAGE - 1  # the inbox lists no more than that at once


class EventFilterForm(forms.Form):
    """The filter of a list of events, and the place where its page begins."""

    source = forms.ChoiceField(required=False)
    state = forms.ChoiceField(
        required=False, choices=[("", "any state"), *((one, one) for one in get_args(State))]
    )
    type = forms.CharField(
        required=False,
        max_length=ID_CHARS,
        widget=forms.TextInput({"placeholder": "type, or document.*"}),
    )
    tenant = forms.CharField(
        required=False, max_length=TENANT_CHARS, widget=forms.TextInput({"placeholder": "tenant"})
    )
    id = forms.CharField(
        required=False, max_length=ID_CHARS, widget=forms.TextInput({"placeholder": "event id"})
    )
    # Unix milliseconds
    before = forms.IntegerField(required=False, min_value=0, max_value=2**53, widget=forms.HiddenInput)
    skip = forms.IntegerField(required=False, min_value=0, max_value=SKIP_MAX, widget=forms.HiddenInput)

    def __init__(self, data: QueryDict, *, sources: Iterable[str]) -> None:
        super().__init__(data)
        choice: Any = self.fields["source"]
        choice.choices = [("", "any source"), *((one, one) for one in sources)]

    def filters(self) -> list[Any]:
        """The fields that people see."""
        return self.visible_fields()


class EventRows(Struct, frozen=True):
    """A page of events, newest first.

    older   where the next one begins, as its query has it; None: nowhere
    looked  until when enough was looked at, before the page was full, RFC 3339; None: it is full, or nothing older fits
    """

    rows: list[EventRow]
    older: dict[str, int] | None = None
    looked: str | None = None


def page(inbox: Inbox, look: EventFilterForm) -> EventRows:
    """Return the rows of a list.

    Pages begin at an instant and not at a count of rows, so that the last one costs what the first one does. What came in the
    same millisecond as the last row of a page (many events in one request) is counted, and passed over on the next page.
    """
    if not look.is_valid():
        return EventRows([])
    given = look.cleaned_data
    wanted = {name: given[name] for name in ("source", "state", "type", "tenant", "id") if given[name]}
    if given["before"] is not None:
        wanted["until"] = given["before"]
    skip = given["skip"] or 0
    page = inbox.page(limit=skip + PAGE + 1, **wanted)
    found = page.events
    there = found[: skip + PAGE]
    if page.until is not None:
        return EventRows(there[skip:], {"before": instants.parse(page.until), "skip": 0}, page.until)
    if len(found) == len(there):
        return EventRows(there[skip:])
    last = there[-1].received_at
    passed = sum(one.received_at == last for one in there)
    at = instants.parse(last)
    if passed > SKIP_MAX:
        return EventRows(there[skip:], {"before": at, "skip": 0})
    return EventRows(there[skip:], {"before": at + 1, "skip": passed})


def address(query: QueryDict, changes: dict[str, int]) -> str:
    """The query of this page, changed."""
    changed = query.copy()
    for name, value in changes.items():
        changed[name] = str(value)
    return f"?{changed.urlencode()}"


class DocumentHistory(Struct, frozen=True):
    """A document that an event was decided on for, with its history as lines."""

    type: str
    tenant: str
    id: str
    history: list[str]
    left_out: int  # older lines


class ConflictView(Struct, frozen=True):
    """Another body under the event's id."""

    received_at: str
    sha256: str
    body: str | None


class ShownEvent(Struct, frozen=True):
    """One event as its page shows it; url, headers and body are None after their retention."""

    event: EventRow
    facts: list[tuple[str, Any]]
    url: str | None
    headers: list[tuple[str, str]] | None
    body: str | None
    tries: list[FailedTry]
    document: DocumentHistory | None
    conflicts: list[ConflictView]


def event(inbox: Inbox, event_id: bytes) -> ShownEvent | None:
    """None: there is no event of this id."""
    found = inbox.show(ids.text(PREFIX, event_id))
    if found is None:
        return None
    facts = [
        (name.replace("_", " "), value)
        for name in EventRow.__struct_fields__
        if name != "error" and (value := getattr(found.event, name)) not in (None, "")
    ]
    return ShownEvent(
        event=found.event,
        facts=facts,
        url=None if found.url is None else redact.url(found.url),
        headers=None if found.headers is None else [_header(*one) for one in found.headers],
        body=None if found.body is None else readable(found.body),
        tries=found.tries,
        document=_followed(inbox, event_id),
        conflicts=[
            ConflictView(one.received_at, one.body_sha256, None if one.body is None else readable(one.body))
            for one in found.others[-OTHERS:]
        ],
    )


def readable(body: bytes) -> str:
    """A body for people: JSON indented, its numbers as they were written; of one that is long the beginning as it came."""
    text = body[:BODY_BYTES].decode("utf-8", "backslashreplace")
    if len(body) <= BODY_BYTES:
        # What is no JSON, or nested too deeply, stays as it came.
        with suppress(msgspec.DecodeError, ValueError, RecursionError):
            text = msgspec.json.format(body, indent=2).decode()
    shown = "".join(
        one if one.isprintable() or one in "\n\t" else f"\\u{ord(one):04x}" for one in text[:BODY_CHARS]
    )
    if len(body) > BODY_BYTES or len(text) > BODY_CHARS:
        return f"{shown}\n… cut: the body has {len(body)} bytes"
    return shown


def _header(name: str, value: str) -> tuple[str, str]:
    """Hide values that are named like secrets: credentials were never kept, but this page is seen by more people."""
    return redact.printable(name), redact.HIDDEN if redact.is_secret(name) else redact.printable(value)


def _followed(inbox: Inbox, event_id: bytes) -> DocumentHistory | None:
    steps: Any = Steps
    keys = steps.objects.using(inbox.alias).filter(event=event_id).order_by("-id")
    key = keys.values_list("document_type", "tenant", "document").first()
    if key is None:
        return None
    document_type, tenant, document = key
    lines = inbox.explain(document, document_type=document_type, tenant=tenant)
    return DocumentHistory(document_type, tenant, document, lines[-LINES:], max(len(lines) - LINES, 0))
