"""Sending receipts: lease what is due, send it outside of any transaction, and record the outcome.

One text for threads and for tasks (`core/effects.py`). A receipt is sent at least once: when a sender dies after the answer,
another one sends the same again, which changes nothing. When the sender of the events is away, its other batches are not tried
in this turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from surehook.client.base import SenderConnections
from surehook.client.calls import ServerUrl
from surehook.client.errors import Unreachable
from surehook.client.http1 import HttpAnswer
from surehook.client.sockets import Sockets
from surehook.client.streams import Streams
from surehook.core.effects import Script
from surehook.inbox.group_commit import AsyncRun, BlockingRun
from surehook.inbox.receipt_batches import ReceiptBatch, ReceiptBatches, token_of
from surehook.inbox.signals import Signal
from surehook.inbox.trouble import TELLING, Away, Trouble
from surehook.ports.inbox_receipts import UnsentReceipt

CONNECTIONS = 2  # to one sender: batches go one after another, and one may be left over


Connect = Callable[[ServerUrl, float], SenderConnections]
BLOCKING: Connect = Sockets
AWAITING: Connect = partial(Streams, connections=CONNECTIONS)


class _TurnOutcomes:
    """The outcomes of a turn."""

    def __init__(self, receipt_batches: ReceiptBatches) -> None:
        self._batches = receipt_batches
        self._away: set[str] = set()  # sources whose sender cannot be reached
        self.delivered: list[UnsentReceipt] = []
        self.later: list[UnsentReceipt] = []

    def to_send(self, owed: list[UnsentReceipt]) -> Iterator[ReceiptBatch]:
        for batch in self._batches.sorted(owed):
            if batch.source in self._away:
                self.later += self._batches.put_off(batch)
            else:
                yield batch

    def answered(self, batch: ReceiptBatch, later: list[UnsentReceipt]) -> None:
        again = {one.event for one in later}
        self.delivered += [one for one in batch.receipts if one.event not in again]
        self.later += later

    def unreachable(self, batch: ReceiptBatch, error: Unreachable) -> None:
        self._away.add(batch.source)
        self.later += self._batches.failed(batch, error.cause)


class ReceiptSender:
    """Sends receipts until it is stopped; `connect` is `BLOCKING` or `AWAITING`, as the store is."""

    def __init__(
        self,
        store: BlockingRun | AsyncRun,
        receipt_batches: ReceiptBatches,
        connect: Connect,
        stopping: Signal,
        idle_s: float,
        trouble: Trouble,
    ) -> None:
        self._store, self._batches, self._connect, self._stopping = store, receipt_batches, connect, stopping
        self._idle_s, self._away = idle_s, Away(trouble, TELLING)
        self._connections: dict[str, SenderConnections] = {}  # by source

    def stop(self) -> None:
        """Let it end after the batch that it is sending."""
        self._stopping.set()

    def until_stopped(self) -> Script[None]:
        try:
            while not self._stopping.is_set():
                wait_s = yield from self._guarded()
                yield self._stopping.wait(wait_s)
        finally:
            self.close()

    def until_done(self) -> Script[int]:
        """Send what is due, until nothing is; how many receipts were tried."""
        tried = 0
        try:
            while self._batches.are_wanted and (count := (yield from self.turn())):
                tried += count
        finally:
            self.close()
        return tried

    def close(self) -> None:
        for connections in self._connections.values():
            connections.close()

    def _guarded(self) -> Script[float]:
        try:
            wait_s = 0.0 if (yield from self.turn()) else self._idle_s
        except Exception as error:
            return self._away.wait_s(error)
        self._away.over()
        return wait_s

    def turn(self) -> Script[int]:
        """Send what is due; how many receipts were tried."""
        token = token_of(self._batches)
        owed: list[UnsentReceipt] = yield self._store.run(self._batches.claim_work(token))
        if not owed:
            return 0
        outcomes = _TurnOutcomes(self._batches)
        for batch in outcomes.to_send(owed):
            if self._stopping.is_set():
                outcomes.later += self._batches.given_back(batch)
                continue
            try:
                answer: HttpAnswer = yield self._to(batch.source).exchange(*self._batches.written(batch))
            except Unreachable as error:
                outcomes.unreachable(batch, error)
            else:
                outcomes.answered(batch, self._batches.answered(batch, answer))
        yield self._store.run(self._batches.settle_work(token, outcomes.delivered, outcomes.later))
        return len(owed)

    def _to(self, source: str) -> SenderConnections:
        if source not in self._connections:
            to = self._batches.to(source)
            self._connections[source] = self._connect(ServerUrl.of(to.url), to.timeout_s)
        return self._connections[source]
