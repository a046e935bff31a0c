"""Pending receipts as requests, and the meaning of their answers. No socket here.

A receipt is never given up for a failure: one that cannot be sent waits longer and longer, up to an hour, for as long as its
event is kept. The one answer that ends it is that the sender does not know the delivery (any more).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct, structs

from surehook.client.calls import ApiCall, ServerUrl, headers_of, retry_after_s
from surehook.client.http1 import HttpAnswer
from surehook.core import ids, receipt_message
from surehook.inbox.pending_receipts import PendingReceipts
from surehook.inbox.receipt_trouble import ReceiptTrouble
from surehook.inbox.sources.receipts_to import ReceiptsTo
from surehook.inbox.sources.source import Source
from surehook.ports.inbox import Transaction
from surehook.ports.inbox_receipts import UnsentReceipt

CLAIMED = 500  # in one turn: five full batches
LEASE_MS = 120_000  # a receipt sender that died is followed by another after that
FIRST_S, FACTOR, MOST_S = 1.0, 4.0, 3600.0
JITTER = 0.2


class ReceiptBatch(Struct, frozen=True):
    """Receipts for one endpoint of one source, at most `receipt_message.ITEMS`."""

    source: str
    endpoint: str
    receipts: tuple[UnsentReceipt, ...]


class _Problem(Struct):
    code: str = ""


class ReceiptBatches:
    """`now()` in Unix milliseconds, `bits(n)` n random bytes, `fraction()` chance in [0, 1) for waits, `boot` counts seconds."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        pending_receipts: PendingReceipts,
        now: Callable[[], int],
        bits: Callable[[int], bytes],
        fraction: Callable[[], float],
        boot: Callable[[], float],
    ) -> None:
        self._sources = sources
        self._pending_receipts = pending_receipts
        self.now = now
        self.bits = bits
        self._fraction = fraction
        self._trouble = ReceiptTrouble(boot)

    @property
    def are_wanted(self) -> bool:
        """True if any source has receipts at all."""
        return bool(self._pending_receipts.sources_with_receipts())

    def to(self, source: str) -> ReceiptsTo:
        """Return the setting of a source that has receipts."""
        found = self._sources[source].receipts
        assert found is not None, "only sources with receipts are claimed"
        return found

    # -- work inside transactions --------------------------------------------------------------------------------

    def claim_work(self, token: bytes) -> Callable[[Transaction], list[UnsentReceipt]]:
        sources = self._pending_receipts.sources_with_receipts()
        return lambda transaction: transaction.claim_receipts(
            sources, now=self.now(), lease_ms=LEASE_MS, token=token, limit=CLAIMED
        )

    def settle_work(
        self, token: bytes, delivered: Sequence[UnsentReceipt], later: Sequence[UnsentReceipt]
    ) -> Callable[[Transaction], None]:
        def work(transaction: Transaction) -> None:
            transaction.receipts_sent([one.event for one in delivered], token)
            transaction.postpone_receipts(later, token)

        return work

    # -- writing and reading -------------------------------------------------------------------------------------

    def sorted(self, owed: Sequence[UnsentReceipt]) -> Iterator[ReceiptBatch]:
        """Sort claimed receipts into batches."""
        by_whom: dict[tuple[str, str], list[UnsentReceipt]] = {}
        for one in owed:
            by_whom.setdefault((one.source, one.endpoint), []).append(one)
        for (source, endpoint), receipts in by_whom.items():
            for at in range(0, len(receipts), receipt_message.ITEMS):
                yield ReceiptBatch(source, endpoint, tuple(receipts[at : at + receipt_message.ITEMS]))

    def written(self, batch: ReceiptBatch) -> tuple[ApiCall, dict[str, str]]:
        """Write the request, signed now: its time is that of this attempt."""
        items = [receipt_message.item(one.event_id, one.delivery, one.word) for one in batch.receipts]
        body = receipt_message.write(items)
        headers = receipt_message.headers(
            batch.endpoint,
            self._sources[batch.source].receipt_secrets,
            body,
            now_ms=self.now(),
            random=self.bits(10),
        )
        call = ApiCall("POST", "", body, headers, repeatable=True)
        return call, headers_of(ServerUrl.of(self.to(batch.source).url), None, call)

    def answered(self, batch: ReceiptBatch, answer: HttpAnswer) -> list[UnsentReceipt]:
        """Read an answer: the receipts that have to be sent again, with the time for that."""
        url = self.to(batch.source).url
        if 200 <= answer.status < 300:
            self._trouble.over(batch.source, batch.endpoint, url)
            return []
        code = _code(answer.body)
        if answer.status == 404 and code == "unknown_delivery":
            self._trouble.unknown(batch.source, url, len(batch.receipts))
            return []
        return self.failed(batch, f"{answer.status} {code}".strip(), retry_after_s(answer))

    def failed(self, batch: ReceiptBatch, why: str, wish_s: float | None = None) -> list[UnsentReceipt]:
        """Put all of a batch off that was tried."""
        later = self.put_off(batch, wish_s)
        again_at = min(one.due_at for one in later if one.due_at is not None)
        self._trouble.met(batch.source, batch.endpoint, self.to(batch.source).url, why, again_at)
        return later

    def put_off(self, batch: ReceiptBatch, wish_s: float | None = None) -> list[UnsentReceipt]:
        """Put all of a batch off."""
        return [self._later(one, wish_s) for one in batch.receipts]

    def given_back(self, batch: ReceiptBatch) -> list[UnsentReceipt]:
        """Leave all of a batch that was not tried to others, at once."""
        return [structs.replace(one, due_at=self.now()) for one in batch.receipts]

    def _later(self, one: UnsentReceipt, wish_s: float | None) -> UnsentReceipt:
        wait = FIRST_S * FACTOR ** min(one.attempts, 60)  # beyond that, only larger than the most
        wait = min(max(wait, wish_s or 0.0), MOST_S) * (1 + JITTER * self._fraction())
        return structs.replace(one, due_at=self.now() + round(wait * 1000), attempts=one.attempts + 1)


def _code(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Problem).code[:64]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def token_of(receipt_batches: ReceiptBatches) -> bytes:
    """Make a token that identifies a receipt sender's lease."""
    return ids.uuid7(receipt_batches.now(), receipt_batches.bits(10))
