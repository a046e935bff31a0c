"""The actions of the admin on events and their outcomes: the inbox's own operations, with a reason each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from msgspec import Struct

from surehook.inbox.django.pages import DocumentHistory
from surehook.inbox.sql.tables import CODE_CHARS, TEXT_CHARS

if TYPE_CHECKING:
    from surehook.inbox.django.facade import Inbox

EVENTS = [
    ("replay", "process again (retry, replay)"),
    ("finalize", "finalize what is processed"),
    ("reject", "reject what is processed"),
]
DOCUMENTS = [
    ("release", "release the document: let it go on without what is missing"),
    ("grant", "grant the document a remediation token"),
]
_ENDED = {
    "replay": "will be processed again; events that are not finished were left alone",
    "finalize": "finalized; only processed ones wait for that",
    "reject": "rejected; only processed ones wait for that",
}


class Action(forms.Form):
    """One action, with who asks later in mind."""

    action = forms.ChoiceField(choices=EVENTS)
    reason = forms.CharField(max_length=TEXT_CHARS, widget=forms.TextInput({"placeholder": "reason"}))
    code = forms.CharField(
        max_length=CODE_CHARS,
        required=False,
        widget=forms.TextInput({"placeholder": "code, to reject: a word for machines"}),
    )

    def __init__(self, data: Mapping[str, object] | None = None, *, has_document: bool = False) -> None:
        super().__init__(data)
        choice: Any = self.fields["action"]
        choice.choices = EVENTS + DOCUMENTS if has_document else EVENTS

    def clean(self) -> dict[str, object]:
        given = super().clean() or {}
        if given.get("action") == "reject" and not given.get("code"):
            self.add_error("code", "A rejection needs a code, which handlers and senders may read.")
        return given


class ActionResult(Struct, frozen=True):
    """The outcome of an action: the events that it changed, and a sentence."""

    refs: list[str]
    sentence: str


def carried_out(
    inbox: Inbox, word: Action, refs: list[str], document: DocumentHistory | None, *, by: str
) -> ActionResult:
    """Do what a valid word asks. Raises SurehookError for what is no reference, and for what a document cannot do."""
    action, reason = word.cleaned_data["action"], word.cleaned_data["reason"]
    if action in dict(DOCUMENTS):
        assert document is not None, "the form offers it only where there is one"
        return _document(inbox, action, refs, document, by=by, reason=reason)
    changed = [one for one in refs if _event(inbox, action, one, reason, word.cleaned_data["code"])]
    return ActionResult(changed, f"{len(changed)} of {len(refs)}: {_ENDED[action]}.")


def _event(inbox: Inbox, action: str, ref: str, reason: str, code: str) -> bool:
    if action == "replay":
        return bool(inbox.replay(reason=reason, ref=ref))
    if action == "finalize":
        return inbox.finalize(ref, note=reason)
    return inbox.reject(ref, code, note=reason)


def _document(
    inbox: Inbox, action: str, refs: list[str], document: DocumentHistory, *, by: str, reason: str
) -> ActionResult:
    which: dict[str, Any] = {"document_type": document.type, "tenant": document.tenant}
    if action == "grant":
        token = inbox.grant(document.id, by=by, reason=reason, **which)
        return ActionResult(refs, f"Granted to {document.id}; the sender puts it into one event: {token}")
    if inbox.release(document.id, by=by, reason=reason, **which):
        return ActionResult(refs, f"The next worker lets {document.id} go on.")
    return ActionResult([], f"Nothing is held for {document.id}.")
