"""Waits of documents, and the events that are tried again just now: they had failed, or there was no room in a document's line.

Such an event came in time, so it holds up a wait that would give it up: of its own document, where it could have its turn before
one that waits. Thousands of others may be tried again all the time, and none of them may keep time from passing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from surehook.core.workflow.decide import Arrival, Table, WorkflowError, may_come_first
from surehook.inbox.document_rows import document_of
from surehook.inbox.process import Processor
from surehook.ports.inbox import Transaction
from surehook.ports.inbox_runs import DocumentKey, Run
from surehook.ports.inbox_waking import DueDocuments

READ_AT_ONCE = 64  # runs, with their bodies


class TriedEvent(NamedTuple):
    """An event that is tried again: its document, and what the table of that looks at."""

    table: Table
    key: DocumentKey
    arrival: Arrival


class TriedAgain:
    """Tells which documents wait for events that somebody tries again. Threads may call. `now` gives Unix milliseconds."""

    def __init__(self, processor: Processor, now: Callable[[], int]) -> None:
        self._processor, self._now = processor, now
        # Of the last look: the next one is likely to find the same.
        self._known: Mapping[bytes, TriedEvent | None] = {}

    def held_up(self, transaction: Transaction, due: DueDocuments) -> list[DocumentKey]:
        """List the documents, of those that are due, that wait for such an event."""
        if not due.tried:
            return []
        in_time: dict[DocumentKey, list[TriedEvent]] = {}
        for run, one in self._read(transaction, list(due.tried)).items():
            if one is not None and due.tried[run] < due.instants.get(one.key, 0):
                in_time.setdefault(one.key, []).append(one)
        rows = transaction.documents(list(in_time)) if in_time else {}
        return [
            key
            for key, events in in_time.items()
            if any(self._holds_up(rows[key].body, one) for one in events)
        ]

    def _read(self, transaction: Transaction, runs: Sequence[bytes]) -> Mapping[bytes, TriedEvent | None]:
        known = self._known
        found = {run: known[run] for run in runs if run in known}
        unknown = [run for run in runs if run not in known]
        for at in range(0, len(unknown), READ_AT_ONCE):
            for run in transaction.runs(unknown[at : at + READ_AT_ONCE]):
                found[run.id] = self._locate(run)
        self._known = found
        return found

    def _holds_up(self, body: str | None, one: TriedEvent) -> bool:
        document = document_of(body)
        if document is None:
            return False
        try:
            return may_come_first(one.table, document, one.arrival, self._now())
        except WorkflowError:  # its state is none of the table: whoever lets time pass for it will say so
            return False

    def _locate(self, run: Run) -> TriedEvent | None:
        """Find the document of a run. Nobody outside is asked, as this is within a claim: that would fail with it."""
        try:
            prepared = self._processor.located(run, asks=False)
        except Exception:  # it will fail where it is handled, and be told
            return None
        if prepared.workflow is None or prepared.key is None or prepared.arrival is None:
            return None
        return TriedEvent(prepared.workflow.table, prepared.key, prepared.arrival)
