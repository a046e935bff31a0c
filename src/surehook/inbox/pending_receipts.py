"""Pending receipts: the meaning of each change of state for the sender that asked to be told.

Called inside the transaction that changes the state, so that a receipt is owed if and only if the state changed. Whether
anybody asked stands in the request's own headers, which were stored with it; where to tell is the source's setting alone,
and nothing of a request is looked at for that.

    accepted, held   accepted, with the code: it is stored, and not done yet
    parked           likewise: nobody can do it yet
    processed        processed
    finalized        finalized
    ignored          finalized, with the code: nothing more will come
    rejected         rejected, with code and note
    dead             rejected, with the code: without a person nothing more will come

For an event that is done at its first processing there is one receipt, with the time of its acceptance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from msgspec import structs

from surehook.core import ids
from surehook.core.receipt import HEADER, Stage, Word, join, word
from surehook.inbox.sources.source import Source
from surehook.ports.inbox import Settlement, Transaction, pairs
from surehook.ports.inbox_receipts import UnsentReceipt
from surehook.ports.inbox_runs import Run, State

DELIVERY = "webhook-delivery-id"
_STAGES: dict[State, Stage] = {
    "accepted": "accepted",
    "held": "accepted",
    "parked": "accepted",
    "processed": "processed",
    "finalized": "finalized",
    "ignored": "finalized",
    "rejected": "rejected",
    "dead": "rejected",
}


class _Change(NamedTuple):
    """A change of an event's state; `asker` is who asked, as far as the request is still there."""

    event: bytes
    source: str
    event_id: str
    asker: tuple[str, str] | None
    word: Word


class PendingReceipts:
    """Keeps receipts, as the sources of an inbox want them."""

    def __init__(self, sources: Mapping[str, Source], now: Callable[[], int]) -> None:
        self._sources = sources
        self._now = now

    def sources_with_receipts(self) -> list[str]:
        """Name the sources whose senders get receipts."""
        return sorted(name for name, source in self._sources.items() if source.receipts is not None)

    def settled(self, transaction: Transaction, ended: Iterable[tuple[Run, Settlement]]) -> None:
        """Keep receipts for runs that ended, or are tried again later. Costs nothing where no source has receipts."""
        telling = set(self.sources_with_receipts())
        if not telling:
            return
        changes = []
        for run, settlement in ended:
            if run.source not in telling or run.item is not None:
                continue
            asker = None if run.headers is None else _asker(run.headers, run.event_id)
            if asker is None and run.headers is not None:
                continue
            changes.append(
                _Change(run.event, run.source, run.event_id, asker, self._word_of(run, settlement))
            )
        self._add(transaction, changes)

    def decided(
        self, transaction: Transaction, event: bytes, state: State, code: str | None, note: str | None
    ) -> None:
        """Keep a receipt for an event that somebody finalized or rejected, perhaps in a process that knows no sources."""
        how = transaction.origin(event)
        assert how is not None, "it was decided on"
        source = self._sources.get(how.source)
        asker = None
        if source is not None and source.receipts is not None and how.headers is not None:
            asker = _asker(how.headers, how.event_id)
        told = word(_STAGES[state], self._now(), accepted_at=how.received_at, code=code, note=note)
        self._add(transaction, [_Change(event, how.source, how.event_id, asker, told)])

    def _word_of(self, run: Run, ended: Settlement) -> Word:
        stage = _STAGES[ended.state]
        at = {"accepted": run.received_at, "processed": ended.processed_at, "finalized": ended.finalized_at}
        told = word(
            stage,
            at.get(stage) or self._now(),
            accepted_at=run.received_at,
            code=ended.error_code,
            note=ended.error if ended.state == "rejected" else None,
        )
        return structs.replace(told, processed_at=told.processed_at or ended.processed_at)

    def _add(self, transaction: Transaction, changes: list[_Change]) -> None:
        there = transaction.receipts_of(sorted({one.event for one in changes}))
        new: dict[bytes, UnsentReceipt] = {}
        changed: dict[bytes, UnsentReceipt] = {}
        for one in changes:
            before = new.get(one.event) or changed.get(one.event) or there.get(one.event)
            if before is None and one.asker is not None:
                endpoint, delivery = one.asker
                new[one.event] = UnsentReceipt(
                    event=one.event,
                    source=one.source,
                    event_id=one.event_id,
                    delivery=delivery,
                    endpoint=endpoint,
                    word=one.word,
                    due_at=self._now(),
                )
            elif before is not None and (joined := join(before.word, one.word)) != before.word:
                kept = new if one.event in new else changed
                kept[one.event] = structs.replace(before, word=joined, due_at=self._now(), attempts=0)
        transaction.keep_receipts(list(new.values()), [changed[event] for event in sorted(changed)])


def _asker(headers: str, event_id: str) -> tuple[str, str] | None:
    """Find the endpoint that asks for receipts and the delivery that brought the event; None: nobody asks."""
    if HEADER not in headers.lower():
        return None
    found = {name.lower(): value for name, value in pairs(headers)}
    endpoint, delivery = found.get(HEADER, ""), found.get(DELIVERY, "")
    given = ((ids.ENDPOINT, endpoint), (ids.DELIVERY, delivery), (ids.EVENT, event_id))
    # One that the sender cannot read would be refused together with its neighbours in a batch.
    return None if any(ids.try_parse(*one) is None for one in given) else (endpoint, delivery)
