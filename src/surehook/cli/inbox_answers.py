"""Answers of `surehook inbox` to decisions of people: what came of one, or that there is nothing to decide about."""

from __future__ import annotations

from surehook.cli.errors import NOT_FOUND, NOT_MET, OK
from surehook.cli.named_inbox import ask
from surehook.cli.output import note

REJECTED = (
    "rejected; if it moved a document, the next worker decides about that: `surehook inbox explain` says how"
)


def decided(place: str, ref: str, done: bool, what: str) -> int:
    """Say what came of a decision about an event; the exit code."""
    if done:
        note(what)
        return OK
    found = ask(place, lambda inbox: inbox.events(ref=ref, limit=1))
    if not found:
        return no_event(ref)
    note(f"{ref} is {found[0].state}: only an event that is `processed` waits for that (on(…, final=False))")
    return NOT_MET


def no_event(ref: str) -> int:
    """Say that an event is not there; the exit code."""
    note(f"the inbox has no event {ref}")
    return NOT_FOUND


def no_document(document_id: str, document_type: str | None, tenant: str) -> int:
    """Say that a document is not known; the exit code."""
    typed = f" of type {document_type}" if document_type else ""
    note(
        f"the inbox knows no document {document_id}{typed}"
        + (f" of tenant {tenant}" if tenant else " (without a tenant)")
    )
    return NOT_FOUND
