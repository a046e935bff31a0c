"""The documents of one batch as they stand while it is processed: locked at first, decided on, written in the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from surehook.core import instants
from surehook.core.workflow import undo_attempts
from surehook.core.workflow.decide import (
    Arrival,
    Decision,
    Document,
    Table,
    WorkflowError,
    leave,
    wake_at,
)
from surehook.inbox.backoff import for_as_long
from surehook.inbox.document_rows import document_of, placed, text_of
from surehook.inbox.quoting import quoted
from surehook.inbox.safe_log import log
from surehook.ports.inbox import DocumentRow
from surehook.ports.inbox_runs import DocumentKey, Run


class DocumentMark(NamedTuple):
    """A document, and the instant at which it wakes if that is to be written."""

    document: Document | None
    wake: Mapping[DocumentKey, int | None]


class StandingDocuments:
    """Documents by key, with the instants at which they wake. `now` gives Unix milliseconds."""

    def __init__(self, rows: Mapping[DocumentKey, DocumentRow], now: Callable[[], int]) -> None:
        self._rows, self._now = rows, now
        self._standing = {key: document_of(row.body) for key, row in rows.items()}
        self._wake: dict[DocumentKey, int | None] = {}  # of those that were changed
        self._unchanged: set[DocumentKey] = set()  # but in that

    def __getitem__(self, key: DocumentKey) -> Document | None:
        return self._standing[key]

    def waits(self, key: DocumentKey, *, leased_until: int | None) -> bool:
        """Tell whether time still means something to a document, and whether it is leased until then, if it has to be: since a
        lease has ended, another process may have what came in time."""
        at = self._rows[key].wake_at
        is_ours = leased_until is None or self._now() < leased_until == at
        return at is not None and is_ours and self._standing[key] is not None

    def decided(self, key: DocumentKey, decision: Decision) -> None:
        """Put a document where a decision leads."""
        self._standing[key], self._wake[key] = decision.document, decision.wake_at
        self._unchanged.discard(key)

    def stays(self, key: DocumentKey, due_at: int | None) -> int | None:
        """Let a document that cannot be decided on here be looked at again: after as long as that has lasted, an hour at most;
        returns when. It is not changed by that. `due_at`: when it should go on, as far as is known here."""
        document, row, now = self._standing[key], self._rows[key], self._now()
        assert document is not None
        at = None
        if document.stopped is None or document.words:
            since = row.updated_at if due_at is None or due_at > now else max(due_at, row.updated_at)
            at = now + for_as_long(now - since)
        self._wake[key] = at
        self._unchanged.add(key)
        return at

    def tries_to_undo(self, key: DocumentKey) -> None:
        """Note that an attempt begins to undo something of a document. Where it ends its process, nobody notes its outcome: it is
        tried again after a lease, and after the wait of its attempts."""
        document, row, now = self._standing[key], self._rows[key], self._now()
        assert document is not None
        self._standing[key] = noted = undo_attempts.begun(document, now)
        self._wake[key] = max(row.wake_at or now, now + undo_attempts.wait_ms(noted))
        if (before := undo_attempts.without_outcome(document)) is not None:
            log.warning(
                "%s %s: what is to be undone is tried once more; the attempt of %s had no outcome: its process or its database"
                " went away", key[0], quoted(key[2]), instants.render(before),
            )  # fmt: skip

    def is_too_early_to_undo(self, key: DocumentKey) -> bool:
        """Tell whether nothing may be tried to undo yet; the document wakes when it may."""
        document = self._standing[key]
        assert document is not None
        now = self._now()
        at = undo_attempts.may_try_at(document, now)
        if at <= now:
            return False
        self._wake[key] = at
        return True

    def failed_to_undo(self, key: DocumentKey, at: int | None) -> None:
        """Let something be undone later that could not be."""
        document = self._standing[key]
        assert document is not None
        self._standing[key], self._wake[key] = undo_attempts.failed(document), at

    def leaves(
        self, table: Table, key: DocumentKey, run: Run, *, back_at: int | None, passed: int | None = None
    ) -> None:
        """Take the event of a run out of a document's queue. `passed`: as of `leave`."""
        document = self._standing[key]
        if document is not None:
            left = leave(
                table, document, run.event_id, run.source, self._now(), back_at=back_at, passed=passed
            )
            self._changed(table, key, left)

    def keeps_place(
        self,
        table: Table,
        key: DocumentKey,
        arrival: Arrival,
        run: Run,
        *,
        back_at: int | None,
        has_failed: bool = True,
    ) -> None:
        """Let what stands behind an event wait for it, as it is tried again by itself; no longer if it is not."""
        kept = placed(
            table, self._standing[key], arrival, run, self._now(), back_at=back_at, has_failed=has_failed
        )
        if kept is not None:
            self._changed(table, key, kept)

    def mark(self, key: DocumentKey) -> DocumentMark:
        """Note where a document stands, to put it back to that."""
        return DocumentMark(self._standing[key], {key: self._wake[key]} if key in self._wake else {})

    def restored(self, key: DocumentKey, mark: DocumentMark) -> None:
        """Put a document back to where it stood before some of its events left."""
        self._standing[key] = mark.document
        self._wake.pop(key, None)
        self._wake.update(mark.wake)

    def _changed(self, table: Table, key: DocumentKey, document: Document) -> None:
        if document == self._standing[key]:
            return
        self._standing[key] = document
        self._wake.setdefault(key, self._rows[key].wake_at)
        if not document.words:  # those may have been put off
            with suppress(WorkflowError):  # a table that lacks its state says nothing of it
                self._wake[key] = wake_at(table, document)

    def rows(self) -> list[DocumentRow]:
        """Make the rows of those that were changed."""
        now = self._now()
        return [
            DocumentRow(
                key=key,
                body=text_of(document),
                state=document.state,
                wake_at=self._wake[key],
                updated_at=self._rows[key].updated_at if key in self._unchanged else now,
            )
            for key, document in self.changed()
        ]

    def changed(self) -> list[tuple[DocumentKey, Document]]:
        """List those that were changed, as they stand."""
        return [(key, document) for key in self._wake if (document := self._standing[key]) is not None]
