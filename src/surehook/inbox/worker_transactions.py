"""The transactions of workers, and the choice of runs that share one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct

from surehook.inbox.batch_results import BatchAttempt, BatchResult
from surehook.inbox.batch_time import BatchTime
from surehook.inbox.handler_times import HandlerTimes
from surehook.inbox.process import Processor
from surehook.inbox.retention import Pruner
from surehook.inbox.rules import Rules
from surehook.inbox.runs_in_hand import Asleep, Waking
from surehook.inbox.tried_again import TriedAgain
from surehook.inbox.trouble import Trouble
from surehook.ports.inbox import StoreError, Transaction
from surehook.ports.inbox_runs import DocumentKey, Run, due_since

CARRYING = 8  # batches that a lease is enough for, where runs are carried over to another one
NONE_WAKE: Mapping[DocumentKey, Waking] = {}
ROUNDS = 16  # in which a claim calls back others in the place of those that somebody has by now
HELD_UP_MS = 1_000  # until the next look at a document that waits for an event which somebody tries again
HELD_UP_MOST = 64  # such documents beside those of a batch, in one look
BUSY_S = 0.1  # until the next look at what others have locked


class Claimed(Struct):
    """The outcome of a claim."""

    runs: list[Run]
    waking: dict[DocumentKey, int]  # documents for which time has passed, leased, and when it did
    leased_until: int
    next_due: int | None  # when there is nothing now

    @property
    def leased(self) -> dict[DocumentKey, Waking]:
        """The documents that wake, leased."""
        return {key: Waking(instant, self.leased_until) for key, instant in self.waking.items()}


class ClaimSplit(Struct):
    """Claimed runs, divided by transaction.

    first    given back at once: while a slow handler is at work, others may have them
    busy     put off, with their documents, which other workers have
    runs     of the next transaction
    rest     given back with it
    is_slow  the one run of it is a slow handler's
    """

    first: list[Run]
    runs: list[Run]
    rest: list[Run]
    is_slow: bool = False
    busy: Sequence[tuple[DocumentKey, bytes]] = ()


class WorkerTransactions:
    """The transactions of workers, and what is reported of them."""

    def __init__(
        self,
        processor: Processor,
        rules: Rules,
        handler_times: HandlerTimes,
        now: Callable[[], int],
        token: Callable[[], bytes],
        report: Callable[[BatchResult], None],
        look: Callable[[Transaction, bool], bool],
        pruner: Pruner,
        trouble: Trouble,
    ) -> None:
        """`look(transaction, is_idle)` does a worker's chores beside claiming, and tells whether more is due by that."""
        self.processor = processor
        self.busy = processor.busy
        self._tried_again = TriedAgain(processor, now)
        self.rules = rules
        self.handler_times = handler_times
        self.now = now
        self.token = token
        self._report = report
        self.look = look
        self.pruner = pruner
        self.trouble = trouble
        self._is_current = False  # the tables, once that was seen

    def claim_work(self, token: bytes, limit: int | None = None) -> Callable[[Transaction], Claimed]:
        """Claim at most `limit` runs; None: as many as share a transaction."""

        def work(transaction: Transaction) -> Claimed:
            self._check_tables(transaction)
            self._call_back(transaction, token)
            most = self.rules.batch if limit is None else limit
            runs = self._claim(transaction, token, most)
            waking, until = self._waking(transaction, token)
            if self.look(transaction, not runs) and not runs:
                runs = self._claim(transaction, token, most)
            if not runs:
                self.busy.look_again()
            next_due = None if runs or waking else transaction.next_due(self.processor.follows)
            return Claimed(runs, waking, until, next_due)

        return work

    def _claim(self, transaction: Transaction, token: bytes, most: int) -> list[Run]:
        runs = transaction.claim(now=self.now(), lease_ms=self.rules.lease_ms, token=token, limit=most)
        self.busy.claimed(token, [run.id for run in runs])
        return runs

    def _waking(self, transaction: Transaction, token: bytes) -> tuple[dict[DocumentKey, int], int]:
        """Lease documents for which time has passed; returns them with the instants at which it had, and their lease's end."""
        # Those of other types are for others: handed to this worker, it would ask for them again at once, for ever.
        types, now, lease_ms = self.processor.follows, self.now(), self.rules.lease_ms
        most = self.rules.batch
        due = transaction.due_documents(
            types=types, now=now, lease_ms=lease_ms, token=token, limit=most + HELD_UP_MOST
        )
        held_up = self._tried_again.held_up(transaction, due)
        # They were due for longest, and would soon be all that a look finds.
        if len(held_up) > HELD_UP_MOST // 2:
            transaction.lease_documents(held_up, until=now + HELD_UP_MS)
        free = [key for key in due.instants if key not in held_up][:most]
        transaction.lease_documents(free, until=now + lease_ms)
        return {key: due.instants[key] for key in free}, now + lease_ms

    def _call_back(self, transaction: Transaction, token: bytes) -> None:
        """Let runs be due at once that were put off for documents that are free by now."""
        for _ in range(ROUNDS):
            back = self.busy.calling(token)
            if not back:
                return
            called, waiting = transaction.call_back([one.run for one in back], now=self.now())
            self.busy.wait_still(token, [one for one in back if one.run in waiting])
            self.busy.passed_over(one for one in back if one.run not in called and one.run not in waiting)

    def call_back_work(self, token: bytes) -> Callable[[Transaction], None]:
        """Let runs be due at once that were put off, in a transaction of its own."""
        return lambda transaction: self._call_back(transaction, token)

    def split(self, runs: list[Run], token: bytes) -> ClaimSplit:
        """Divide claimed runs: those of quick handlers share a transaction, a slow one is alone in its own."""
        shared = self.handler_times.together(runs)
        if shared or not runs:
            return ClaimSplit([], runs[:shared], runs[shared:])
        if len(runs) == 1:  # put off where it is processed, if it is
            return ClaimSplit([], runs, [], is_slow=True)
        first, busy = self.processor.first_free(runs, token)
        ids = {run for _, run in busy}
        others = [run for run in runs if run is not first and run.id not in ids]
        return ClaimSplit(others, [] if first is None else [first], [], is_slow=True, busy=busy)

    def _check_tables(self, transaction: Transaction) -> None:
        """Refuse to claim on tables of an older version: a run could not be settled, and each try would count."""
        if not self._is_current:
            if (wrong := transaction.outdated()) is not None:
                raise StoreError(wrong)
            self._is_current = True

    def process_work(
        self,
        runs: Sequence[Run],
        token: bytes,
        waking: Mapping[DocumentKey, Waking] = NONE_WAKE,
        *,
        rest: Sequence[Run] = (),
        time: BatchTime | None = None,
        attempt: BatchAttempt | None = None,
        alone: bool = False,
        leased: Collection[DocumentKey] = (),
        may_undo: bool = True,
        may_carry: bool = False,
    ) -> Callable[[Transaction], BatchResult]:
        is_over = (time or self.time(lambda: False)).is_over
        return lambda transaction: self.processor.process(
            transaction,
            runs,
            token,
            waking,
            rest=rest,
            is_over=is_over,
            attempt=attempt,
            alone=alone,
            leased=leased,
            may_undo=may_undo,
            may_carry=may_carry and self.rules.lease_ms >= CARRYING * self.rules.batch_s * 1000,
        )

    def time(self, is_stopping: Callable[[], bool]) -> BatchTime:
        """Make the time of a batch."""
        return BatchTime(self.handler_times.boot, self.rules.batch_s, is_stopping)

    def wake_again_work(self, asleep: Asleep) -> Callable[[Transaction], None]:
        return lambda transaction: transaction.wake_again(asleep.instants, leased_until=asleep.leased_until)

    def put_off_work(self, key: DocumentKey, error: Exception) -> Callable[[Transaction], None]:
        return lambda transaction: self.processor.put_off(transaction, key, error)

    def fail_work(self, run: Run, token: bytes, error: Exception) -> Callable[[Transaction], BatchResult]:
        return lambda transaction: self.processor.fail(transaction, run, token, error)

    def release_work(self, runs: Sequence[bytes], token: bytes, due_at: int) -> Callable[[Transaction], None]:
        return lambda transaction: transaction.release(runs, token, due_at=due_at)

    def give_back_work(self, split: ClaimSplit, token: bytes) -> Callable[[Transaction], None]:
        """Give back what a slow handler would keep waiting."""

        def work(transaction: Transaction) -> None:
            if split.first:
                transaction.release([run.id for run in split.first], token, due_at=due_since(split.first))
            if split.busy:
                self.processor.put_off_until_free(transaction, token, split.busy)

        return work

    def report(self, done: BatchResult) -> None:
        """Tell of a batch that is committed."""
        self.busy.put_off(done.put_off)
        self._report(done)

    def idle_s(self, claimed: Claimed) -> float:
        """Choose how long to wait when nothing is due."""
        if self.busy.is_calling:
            return min(BUSY_S, self.rules.idle_s)
        if claimed.next_due is None:
            return self.rules.idle_s
        wait = (claimed.next_due - self.now()) / 1000
        # What is due and was not given is another worker's just now, or followed elsewhere: no reason to hurry.
        return min(wait if wait > 0 else BUSY_S, self.rules.idle_s)
