"""Operators' commands for a document: let it go on, grant a token, take back what a rejected event did.

A release and a taking back are written into the document, and the worker that has it next carries them out, with its
handlers: so they can be said from any process. A grant holds at once. Who said it, and why, is in the journal.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import structs

from surehook.core.errors import SettingsError
from surehook.core.workflow.decide import Document, OperatorCommand, Step, asked, granted, is_undone
from surehook.inbox.document_rows import document_of, steps_of, text_of
from surehook.inbox.following import Following
from surehook.inbox.given_texts import LATER, checked_document, checked_text
from surehook.inbox.quoting import quoted
from surehook.inbox.safe_log import log
from surehook.inbox.workflow import Workflow
from surehook.ports.inbox import DocumentRow, StepRow, Transaction
from surehook.ports.inbox_runs import DocumentKey

BY_CHARS = 255
WHY_CHARS = 1_000
TOKEN_CHARS = 255  # as much as is read of an event's


class UnknownDocument(SettingsError):
    """A document of which the inbox has no history."""


def release_work(
    document: str,
    document_type: str | None,
    tenant: str,
    *,
    by: str,
    reason: str,
    now: int,
    following: Following,
) -> Callable[[Transaction], bool]:
    """Let a document go on; False: nothing is held for it. Warns where nobody here follows it: somebody else has to."""
    _check(document, tenant, by, reason)
    word = OperatorCommand(what="release", at=now, by=by[:BY_CHARS], why=reason[:WHY_CHARS])

    def work(transaction: Transaction) -> bool:
        key = _key(transaction, document, document_type, tenant)
        held = None if key is None else _locked(transaction, key)
        if held is None or not (held[1].waiting or held[1].stopped):
            return False
        _say(transaction, *held, word)
        if key is not None and following.by_type(key[0]) is None:
            log.warning(
                "%s is released, and no workflow here follows documents of type %s: it goes on where one does",
                quoted(key[2]), key[0],
            )  # fmt: skip
        return True

    return work


def grant_work(
    document: str,
    document_type: str | None,
    tenant: str,
    *,
    token: str,
    by: str,
    reason: str,
    now: int,
    following: Following,
) -> Callable[[Transaction], str]:
    """Grant a token to a document; returns the token. Raises UnknownDocument."""
    _check(document, tenant, by, reason)
    if not isinstance(token, str) or not 0 < len(token) <= TOKEN_CHARS or not token.isprintable():
        raise SettingsError("token", f"1 to {TOKEN_CHARS} visible characters")

    def work(transaction: Transaction) -> str:
        key = _key(transaction, document, document_type, tenant)
        held = None if key is None else _locked(transaction, key)
        if key is None or held is None:
            raise UnknownDocument("document", f"the inbox knows no document {document!r}", hint="tenant=")
        table = _workflow(following, key[0]).table
        row, stands = held
        kept, step = granted(table, stands, token, now, by=by[:BY_CHARS], why=reason[:WHY_CHARS])
        if step is not None:
            is_held = any(one.event.token == token for one in kept.waiting)
            wake_at = now if is_held else row.wake_at
            transaction.keep_documents(
                [structs.replace(row, body=text_of(kept), wake_at=wake_at, updated_at=now)]
            )
            transaction.journal([_group_commit(following.identify(), key, step)])
        return token

    return work


def take_back(transaction: Transaction, event: bytes, *, code: str | None, now: int) -> None:
    """Have the document's next decision take back what an event did that was rejected after it had taken effect."""
    found = transaction.effective_step(event)
    if found is None:
        return
    key, (step,) = found[0], steps_of([found[1]])
    held = _locked(transaction, key) if step.is_move else None
    if held is not None and not is_undone(held[1], step.event, step.source):
        _say(transaction, *held, OperatorCommand(what="undo", at=now, why=code or "", step=step))


def _check(document: str, tenant: str, by: str, reason: str) -> None:
    checked_document(document, tenant)
    checked_text("by", by, LATER)
    checked_text("reason", reason, LATER)


def _key(
    transaction: Transaction, document: str, document_type: str | None, tenant: str
) -> DocumentKey | None:
    keys = [row.key for row, _ in transaction.history(document, document_type=document_type, tenant=tenant)]
    if len(keys) > 1:
        raise SettingsError(
            "document_type",
            f"{document!r} is a document of several types",
            hint=", ".join(key[0] for key in keys),
        )
    return keys[0] if keys else None


def _locked(transaction: Transaction, key: DocumentKey) -> tuple[DocumentRow, Document] | None:
    row = transaction.documents([key])[key]
    found = document_of(row.body)
    return None if found is None else (row, found)


def _say(transaction: Transaction, row: DocumentRow, document: Document, word: OperatorCommand) -> None:
    body = text_of(asked(document, word))
    transaction.keep_documents([structs.replace(row, body=body, wake_at=word.at, updated_at=word.at)])


def _workflow(following: Following, document_type: str) -> Workflow:
    found = following.by_type(document_type)
    if found is None:
        raise SettingsError(
            "document_type",
            f"no workflow here follows documents of type {document_type!r}",
            hint="say it to the inbox that has `follow`",
        )
    return found


def _group_commit(id: bytes, key: DocumentKey, step: Step) -> StepRow:
    return StepRow(
        id=id,
        key=key,
        event=None,
        event_id=step.event,
        verdict=step.verdict,
        at=step.at,
        body=msgspec.json.encode(step).decode(),
    )
