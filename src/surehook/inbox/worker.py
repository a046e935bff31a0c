"""Workers: claim what is due, process it, and wait for more.

One text for threads and for tasks (`core/effects.py`). A worker that finds work looks again at once; one that finds none waits
until something arrives in this process, the next run is due, or `idle_s` is over (another process may have stored something).
When the database is away it waits a little longer each time; nothing is lost by that, leases lapse by themselves.

A worker whose handler was given up (calls.py) ends when that comes back. Its replacement begins with what it left: that
handler's run has failed, and the runs that shared its transaction were not tried.
"""

from __future__ import annotations

import math
from asyncio import CancelledError
from collections.abc import Collection, Sequence

from surehook.core import ids
from surehook.core.effects import Script
from surehook.inbox.batch_results import BatchAttempt, BatchResult
from surehook.inbox.batch_time import ClaimSize
from surehook.inbox.calls import GivenUp
from surehook.inbox.event import PREFIX
from surehook.inbox.group_commit import AsyncRun, BlockingRun
from surehook.inbox.handler_errors import cancellation_of, uncancelled
from surehook.inbox.runs_in_hand import Asleep, Carried, Failed, InProgress, Owed, Takeover
from surehook.inbox.safe_log import log
from surehook.inbox.signals import Signal
from surehook.inbox.trouble import Away
from surehook.inbox.worker_task import must_end, was_cancelled
from surehook.inbox.worker_transactions import BUSY_S, Claimed, WorkerTransactions
from surehook.ports.inbox import Contended, DocumentMoved, StoreError, StoreUnavailable
from surehook.ports.inbox_runs import DocumentKey, Run

MOVED = 50  # further tries of a run whose document moved: each time, somebody else's was committed
CONTENDED = 5  # further tries of a run that others keep from being committed, before that counts as a failure
OWED = 16  # batches that outages kept from being given back: a worker has one for each
RELEASES = 5  # tries to give back what others have locked, or a serializable engine refuses


class Worker:
    """Claims and processes until it is stopped, or given up: scripts that yield what the store's transactions gave.

    woken     set when something arrived in this process; shared by its workers
    stopped   this worker's own: it waits on that after a failure, which no arrival may shorten
    takeover  left by the worker whose place it takes
    """

    def __init__(
        self,
        store: BlockingRun | AsyncRun,
        transactions: WorkerTransactions,
        woken: Signal,
        stopped: Signal,
        takeover: Takeover | None = None,
    ) -> None:
        self._store, self._transactions, self._takeover = store, transactions, takeover
        self._woken, self._stopped = woken, stopped
        self._portion = ClaimSize(transactions.rules.batch, is_known=transactions.handler_times.is_known)
        self.in_progress = InProgress()
        self._carried = Carried()
        self._owed: list[Owed] = []
        self.asleep = Asleep()
        self.is_stopping = False
        self.is_given_up = False

    def stop(self) -> None:
        """Let it end after the handler that it is in."""
        self.is_stopping = True
        self._stopped.set()
        self._woken.set()

    def give_up(self) -> None:
        """Leave what it is at to another worker: its handler does not come back, or too late."""
        self.is_given_up = True
        self._transactions.busy.leave(self.in_progress.token, self._portion.size)

    def until_stopped(self) -> Script[None]:
        """Work until stopped, or given up."""
        try:
            yield from self._turns()
        finally:
            self._owe_carried()  # who ends here has no next batch, and others line up behind that

    def _turns(self) -> Script[None]:
        away = Away(self._transactions.trouble)
        yield from self._take_over()
        # A handler may have swallowed the cancellation that was for the worker.
        while not self.is_stopping and not was_cancelled():
            try:
                idle = yield from self.turn()
                away.over()
            except Contended as error:
                log.info("workers wanted the same rows, and this one waits: %s", error)
                yield self._stopped.wait(BUSY_S)
            except Exception as error:
                if self._is_lost(error):
                    return
                # At the end, it was perhaps cut; what cannot be given back is told of below.
                if not (self.is_stopping and isinstance(error, StoreError)):
                    yield self._stopped.wait(away.wait_s(error))
            else:
                if idle is not None:
                    yield self._woken.wait(idle)
                    # The others that are being stopped wait for the same signal.
                    if not self.is_stopping:
                        self._woken.clear()
        yield from self._ending()

    def _ending(self) -> Script[None]:
        """Give back all that is due later than at once: this may be the last worker, and another process has to wait for it."""
        transactions, is_done = self._transactions, False
        token = transactions.token()
        try:
            self._owe_carried()
            yield from self._give_back_owed()
            if transactions.busy.strands():
                yield self._store.run(transactions.call_back_work(token))
            is_done = True
        except StoreError as error:
            log.warning(
                "what was put off, or was claimed for a next batch, is due by itself within %g s: %s",
                transactions.rules.lease_ms / 1000, error,
            )  # fmt: skip
        finally:
            transactions.busy.called(token, is_done=is_done)

    def _owe_carried(self) -> None:
        """Carry nothing over: it is given back as soon as the database answers."""
        carried, self._carried = self._carried, Carried()
        if carried.runs:
            self._transactions.busy.leave(carried.token, self._portion.size)
            self._owe(Owed.of([run for _, run in carried.runs], carried.token))

    def until_idle(self) -> Script[int]:
        """Claim and process until nothing is due; how many turns it took."""
        turns = 0
        try:
            while (yield from self.turn()) is None:
                turns += 1
        except Exception:
            yield from self._ending()
            raise
        finally:
            self._owe_carried()
        return turns

    def turn(self) -> Script[float | None]:
        """Claim and process once; None if there was something, else how long to wait, in seconds."""
        transactions, carried = self._transactions, self._carried
        token = carried.token or transactions.token()
        most, has_claimed = max(1, self._portion.size - len(carried.runs)), False
        try:
            yield from self._give_back_owed()
            claimed: Claimed = yield self._store.run(transactions.claim_work(token, most))
            has_claimed = True
        finally:
            transactions.busy.called(token, is_done=has_claimed)
            if not has_claimed:
                self._owe_carried()
        runs = carried.with_claimed(claimed.runs)
        if not runs and not claimed.waking:
            yield from self._pruning(idle=True)
            return transactions.idle_s(claimed)
        self._carried, self.asleep = Carried(), Asleep(claimed.leased_until, dict(claimed.waking))
        try:
            is_all = yield from self._handling(runs, token, claimed.waking)
        finally:
            transactions.busy.leave(token, self._portion.size, carried=self._carried.ids)
        yield from self._waking(claimed, is_all=is_all)
        yield from self._pruning(idle=False)
        return None

    def _pruning(self, *, idle: bool) -> Script[None]:
        """Go on with retention, if that is due, in a transaction of its own: no claim is lost with it."""
        pruner = self._transactions.pruner
        if self.is_stopping or not pruner.is_due(idle=idle):
            return
        try:
            yield self._store.run(pruner.step)
        except Exception as error:  # also where the database is away: then the next claim says so
            log.warning("what is past its retention was not removed: %s", error)

    def _handling(self, runs: list[Run], token: bytes, leased: Collection[DocumentKey]) -> Script[bool]:
        """Process what was claimed; False: some of it was given back."""
        transactions, self.in_progress = self._transactions, InProgress(token, runs)
        if not runs:
            return True
        if self.is_stopping:  # the claim may have waited long, for what a hanging handler held
            yield from self._give_back(runs, token)
            return False
        split, attempt = transactions.split(runs, token), BatchAttempt()
        is_divided = not (split.first or split.busy)
        time = transactions.time(lambda: self.is_stopping)
        try:
            if not is_divided:
                yield self._store.run(transactions.give_back_work(split, token))
                is_divided = True
                transactions.busy.put_off(split.busy)
                transactions.busy.given_back(token, [run.id for run in split.first])
                self.in_progress = InProgress(token, split.runs)
            if not split.runs:
                self._portion.shared(len(runs), 0, time.enough_for)
                return False
            work = transactions.process_work(
                split.runs,
                token,
                rest=split.rest,
                time=time,
                attempt=attempt,
                leased=leased,
                may_carry=not split.is_slow and not self.is_stopping,
            )
            done: BatchResult = yield self._store.run(work)
        except (Exception, CancelledError) as caught:
            error = self._failure(caught, attempt.is_begun)
            if self._is_lost(error):
                raise
            if not is_divided or (isinstance(error, StoreUnavailable) and not attempt.is_begun):
                yield from self._give_back(runs, token)
                raise
            if isinstance(error, Contended):
                self._portion.alone()  # few rows are locked for a short time then
            yield from self._give_back(split.rest, token)
            is_all = yield from self._one_by_one(split.runs, token, error, is_shared=attempt.is_shared)
            self.in_progress = InProgress()
            return is_all and not (split.first or split.busy or split.rest)
        else:
            is_slow = split.is_slow and not transactions.handler_times.together(split.runs)
            if done.has_changed_session or (is_slow and not done.put_off):
                self._portion.alone()  # and not one that was never seen, and is quick
            else:
                count = len(split.runs) + len(split.rest) - done.left
                self._portion.shared(count, done.left, time.enough_for)
            self._carried = Carried(token, done.carried) if done.carried else Carried()
            self.in_progress = InProgress(token, [run for _, run in done.carried])
            transactions.report(done)
            return done.is_all and not (split.first or split.busy)

    def _one_by_one(
        self, runs: list[Run], token: bytes, error: Exception, *, is_shared: bool
    ) -> Script[bool]:
        """Process runs in transactions of their own; False: not all of them were handled."""
        is_known, is_all = len(runs) == 1, True
        for number, run in enumerate(runs):
            if number and self.is_stopping:
                yield from self._give_back(runs[number:], token)
                return False
            failed = Failed(error, is_shared) if is_known else None
            try:
                done = yield from self._alone(run, token, failed)
            except StoreUnavailable as away:
                if not self._is_lost(away):
                    yield from self._give_back(runs[number:], token)
                raise
            self._transactions.report(done)
            is_all = is_all and done.is_all
        return is_all

    def _alone(self, run: Run, token: bytes, failed: Failed | None) -> Script[BatchResult]:
        """Process a run in a transaction of its own, where a failure is the run's, and counted.

        Also one that passes with time: a commit that a constraint or a lock refuses would otherwise be tried for ever. If it let
        others of its document go on, it is tried without them first. `failed`: it has failed so just now. Raises StoreUnavailable
        where the run was not begun, or its failure cannot be written down.
        """
        transactions, contended, moved, alone = self._transactions, 0, 0, False
        while True:
            attempt = BatchAttempt()
            try:
                if failed is None:
                    work = transactions.process_work([run], token, attempt=attempt, alone=alone)
                    done: BatchResult = yield self._store.run(work)
                    return done
            except (Exception, CancelledError) as caught:
                error = self._failure(caught, attempt.is_begun)
                if self._is_lost(error) or (isinstance(error, StoreUnavailable) and not attempt.is_begun):
                    raise
                failed = Failed(error, attempt.is_shared)
            if isinstance(failed.error, DocumentMoved) and moved < MOVED:
                moved += 1
                yield from self._until_free(run, token)
            elif isinstance(failed.error, Contended) and contended < CONTENDED:
                contended += 1
                yield self._stopped.wait(BUSY_S)
            elif failed.is_shared and not alone:
                alone, contended = True, 0
            else:
                settled: BatchResult = yield self._store.run(transactions.fail_work(run, token, failed.error))
                return settled
            failed = None

    def _until_free(self, run: Run, token: bytes) -> Script[None]:
        """Wait until no other worker of this process is at work on a run's document, for a lease at most."""
        for _ in range(math.ceil(self._transactions.rules.lease_ms / 1000 / BUSY_S)):
            if self.is_stopping or not self._transactions.processor.is_elsewhere(run, token):
                return
            yield self._stopped.wait(BUSY_S)

    def _waking(self, claimed: Claimed, *, is_all: bool) -> Script[None]:
        """Let documents go on for which time has passed, each in a transaction of its own: what its handlers write is not locked
        for longer, and one that cannot be committed keeps no other waiting. What this does not come to is given back; all where
        not all runs were handled that were claimed before: they may matter."""
        transactions = self._transactions
        time = transactions.time(lambda: self.is_stopping)
        for number, (key, waking) in enumerate(claimed.leased.items()):
            if self.is_stopping or not is_all or (time.is_over() and number):
                yield from self._give_back_asleep()
                return
            instant = self.asleep.instants.pop(key)  # whoever takes its place does not try this one at once
            try:
                # What undoes something may end this process, and would be called for ever: that it will be, is noted first.
                work = transactions.process_work((), b"", {key: waking}, may_undo=False)
                done: BatchResult = yield self._store.run(work)
                if done.to_undo:
                    done = yield self._store.run(transactions.process_work((), b"", {key: waking.noted}))
            except (Exception, CancelledError) as caught:
                self.asleep.instants[key] = instant
                failure = self._failure(caught)
                is_away = isinstance(failure, StoreUnavailable) and not isinstance(failure, Contended)
                if self._is_lost(failure) or is_away:
                    raise
                yield self._store.run(transactions.put_off_work(key, failure))
                del self.asleep.instants[key]
            else:
                transactions.report(done)

    def _give_back_asleep(self) -> Script[None]:
        if self.asleep.instants:
            yield self._store.run(self._transactions.wake_again_work(self.asleep))
            self.asleep = Asleep()

    def _take_over(self) -> Script[None]:
        """Settle what the worker before has left, and give the rest back."""
        if self._takeover is None:
            return
        transactions, takeover = self._transactions, self._takeover
        self.asleep = takeover.asleep.copy()
        token = takeover.in_progress.token
        if (late := takeover.late) is not None and takeover.error is not None:
            try:
                done: BatchResult = yield self._store.run(transactions.fail_work(late, token, takeover.error))
                transactions.report(done)
            except StoreError as error:
                ref = ids.text(PREFIX, late.event)
                log.info("the timeout of %s is not written down, and its lease lapses: %s", ref, error)
        yield from self._give_back(takeover.untried(), token)

    def _give_back(self, runs: Sequence[Run], token: bytes) -> Script[None]:
        if not runs:
            return
        lost: StoreError | None = None
        owed = Owed.of(runs, token)
        for _ in range(RELEASES):
            try:
                yield self._store.run(self._transactions.release_work(*owed))
                return
            except Contended as error:
                lost = error
                yield self._stopped.wait(BUSY_S)
            except StoreError as error:
                lost = error
                break
        self._owe(owed)
        log.warning(
            "%d runs could not be given back, and will be once the database answers; should this worker end before, they wait "
            "until their leases lapse, and this attempt counts: %s",
            len(runs),
            lost,
        )

    def _owe(self, owed: Owed) -> None:
        self._owed = [*self._owed, owed][-OWED:]

    def _give_back_owed(self) -> Script[None]:
        """Give back what an outage has left: nobody was at work on it, so that its attempt is none. What others have taken by
        now stays theirs."""
        yield from self._give_back_asleep()
        while self._owed:
            one = self._owed.pop()
            try:
                yield self._store.run(self._transactions.release_work(*one))
            except StoreUnavailable:
                self._owed.append(one)
                raise

    def _failure(self, error: Exception | CancelledError, is_begun: bool = True) -> Exception:
        """Take a cancellation for what a handler has done to its own task, and so for its failure. Raises it otherwise."""
        cancelled = cancellation_of(error)
        if cancelled is None:
            assert isinstance(error, Exception)
            return error
        if not is_begun or must_end():
            raise cancelled
        return uncancelled(cancelled)

    def _is_lost(self, error: Exception) -> bool:
        """Tell whether another worker has taken over what this one was doing."""
        return self.is_given_up or isinstance(error, GivenUp)
