"""The documents that workers of this process are at work on, and the events that wait for that.

Events of one document take effect one after the other, so a second worker with one of them could only wait until the first has
committed. Where handlers are slow and one document has many events, all workers of a process would wait so, and no other event
be handled. So a worker puts off what is of a document that another one has, and goes on with something else. As the other one
is done, it calls back as many as it does at a time, the oldest first. What is newer than those that wait lines up behind them.

Where handlers are quick, the other one is done in a moment: then a worker carries over to its next batch what it has claimed of
such a document, once, and nothing is written for that. Until then others of the document line up behind it.

What was put off is due again by itself after a while, at the latest as a lease would lapse: the process that was to call it
back may have ended, and the document be another process's. A run of the line that somebody else has by then is passed over.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

from surehook.host.forking import renew_in_children
from surehook.ports.inbox_runs import DocumentKey

PUT_OFF_MS = 5_000  # unless it is called back
EACH_MS = 5  # more for each that waits already, so that looking at all of them does not keep a worker busy
# Runs that are called back, of all documents. Others are due by themselves: the newest of the document that was busy first.
WAITING_MOST = 10_000
CALLED_MOST = 1_000  # in one statement


class WaitingRun(NamedTuple):
    """A run, by its id, and its document."""

    key: DocumentKey
    run: bytes


class BusyDocuments:
    """Who is at work on which document, by the token of its claim. Threads may call. `most_ms`: for which a run is put off."""

    def __init__(self, most_ms: int) -> None:
        self._most_ms = most_ms
        self.forked()
        renew_in_children(self)

    def forked(self) -> None:
        """Begin anew: the workers of the parent are none of this process."""
        self._changing = threading.Lock()
        self._owners: dict[DocumentKey, bytes] = {}
        self._owned: dict[bytes, dict[DocumentKey, None]] = {}  # in their order
        # Ids of runs, in the order in which they arrived: whoever meets them does so in any.
        self._lines: dict[DocumentKey, list[bytes]] = {}
        self._standing: dict[bytes, DocumentKey] = {}  # all runs of the lines
        # Runs of the lines that come by themselves: those in the batch of a token, and those for its next batch.
        self._late: dict[bytes, dict[bytes, DocumentKey]] = {}
        self._carried: dict[bytes, dict[bytes, DocumentKey]] = {}
        self._called: dict[bytes, None] = {}  # runs of the lines that are due again
        self._called_back: dict[WaitingRun, None] = {}
        # By the token of the claim that does it; and those that the next one is to look at again.
        self._calling: dict[bytes, list[WaitingRun]] = {}
        self._waiting: dict[bytes, list[WaitingRun]] = {}

    def claimed(self, token: bytes, runs: Iterable[bytes]) -> None:
        """Note which runs of a claim stand in a line, before it is committed: others that look at them then know who has them."""
        if not self._standing:
            return
        with self._changing:
            for run in runs:
                if (key := self._standing.get(run)) is not None:
                    self._late.setdefault(token, {})[run] = key

    def enter(
        self, token: bytes, runs: Iterable[tuple[DocumentKey, bytes]], *, tried: Collection[bytes] = ()
    ) -> set[bytes]:
        """Take the documents of these runs, in their order; returns those that wait, for another worker or for older ones. They
        stand in their lines from now on.

        tried  those of them that were tried before, and so do not wait
        """
        late = set()
        with self._changing:
            before = set(self._owned.get(token, ()))
            for key, run in runs:
                owner = self._owners.get(key, token)
                if owner == token and (key in before or self._is_next(key, run)):
                    self._owners[key] = token
                    self._owned.setdefault(token, {})[key] = None
                    self._leave_line(run)
                elif run not in tried:
                    late.add(run)
                    self._late.setdefault(token, {})[run] = key
                    self._line_up(key, run)
        return late

    def _is_next(self, key: DocumentKey, run: bytes) -> bool:
        """Tell whether no older run waits for a document."""
        line = self._lines.get(key)
        return line is None or line[0] >= run

    def was_carried(self, token: bytes, run: bytes) -> bool:
        """Tell whether a run was carried over to this batch."""
        return run in self._carried.get(token, ())

    def is_busy(self, key: DocumentKey) -> bool:
        """Tell whether a worker has a document."""
        return key in self._owners

    def is_anothers(self, key: DocumentKey, token: bytes) -> bool:
        """Tell whether a worker has a document, and not with this token."""
        return self._owners.get(key, token) != token

    def is_waited_for(self, key: DocumentKey) -> bool:
        """Tell whether runs wait for a document."""
        return key in self._lines

    def put_off_ms(self, keys: Collection[DocumentKey]) -> int:
        """Choose how long runs of these documents are put off, if nobody calls them back."""
        with self._changing:
            waiting = max((len(self._lines.get(key, ())) for key in keys), default=0)
        return min(max(PUT_OFF_MS, EACH_MS * waiting), self._most_ms)

    def put_off(self, runs: Sequence[tuple[DocumentKey, bytes]]) -> None:
        """Note runs that were put off, once that is committed; if their document is free by now, its first is called back."""
        with self._changing:
            for key, run in runs:
                self._line_up(key, run)
                self._called.pop(run, None)
                for coming in (*self._late.values(), *self._carried.values()):
                    coming.pop(run, None)
            for key in dict.fromkeys(key for key, _ in runs):
                self._call_again(key, 1)

    def _line_up(self, key: DocumentKey, run: bytes) -> None:
        if run in self._standing:
            return
        self._standing[run] = key
        insort(self._lines.setdefault(key, []), run)
        if len(self._standing) > WAITING_MOST:
            self._leave_line(next(iter(self._lines.values()))[-1])

    def leave(self, token: bytes, most: int, *, carried: Iterable[tuple[DocumentKey, bytes]] = ()) -> None:
        """Give up all documents of a token, and call back as many runs of each as a worker does at a time.

        carried  runs that come with this token again, in its next batch
        """
        with self._changing:
            owned, came = self._owned.pop(token, {}), self._carried.pop(token, {}) | self._late.pop(token, {})
            for run in came:  # whatever became of it: that is looked at as it is called back
                self._called.pop(run, None)
            for key in owned:
                del self._owners[key]
            for key, run in carried:
                self._line_up(key, run)
                self._carried.setdefault(token, {})[run] = key
            for key in dict.fromkeys((*owned, *came.values())):
                if key not in self._owners:
                    self._call_back(key, most)

    def given_back(self, token: bytes, runs: Iterable[bytes]) -> None:
        """Note that this token does not have runs any more: anybody may come with them."""
        with self._changing:
            for coming in (self._late.get(token, {}), self._carried.get(token, {})):
                for run in runs:
                    if (key := coming.pop(run, None)) is not None:
                        self._call_again(key, 1)

    def _leave_line(self, run: bytes) -> None:
        key = self._standing.pop(run, None)
        if key is None:
            return
        self._called.pop(run, None)
        line = self._lines[key]
        del line[bisect_left(line, run)]
        if not line:
            del self._lines[key]

    def _call_back(self, key: DocumentKey, most: int) -> None:
        """Call back the first runs of a line, up to one that comes by itself and calls back the next. They leave the line as they
        take the document, so that newer ones do not go before them."""
        line = self._lines.get(key, [])
        runs = takewhile(lambda run: not self._comes(run), line[:most])
        for run in [run for run in runs if run not in self._called]:
            self._called[run] = None
            self._called_back[WaitingRun(key, run)] = None

    def _call_again(self, key: DocumentKey, most: int) -> None:
        """Call back the first runs of a line whose document is free, also those that were called before: another process may have
        them by now, or have had them."""
        if key not in self._owners:
            for run in self._lines.get(key, ())[:most]:
                self._called.pop(run, None)
            self._call_back(key, most)

    def _comes(self, run: bytes) -> bool:
        return any(run in coming for coming in (*self._late.values(), *self._carried.values()))

    def look_again(self) -> None:
        """Look again at the first runs of lines whose documents nobody here has: another process may have done them by now."""
        if not self._lines:
            return
        with self._changing:
            standing = (
                key
                for key, line in self._lines.items()
                if key not in self._owners and not self._comes(line[0])
            )
            for key in list(islice(standing, CALLED_MOST)):
                self._call_again(key, 1)

    def strands(self) -> bool:
        """Call back all that wait for a document which nobody has: there may be no more workers. Tells whether there is any."""
        with self._changing:
            for key in [key for key in self._lines if key not in self._owners]:
                self._call_back(key, WAITING_MOST)
            return bool(self._called_back)

    @property
    def is_calling(self) -> bool:
        """True if there is something to call back."""
        return bool(self._called_back)

    def calling(self, token: bytes) -> list[WaitingRun]:
        """Take some of the runs that are to be due again at once, to do that in the transaction of a claim."""
        if not self._called_back:
            return []
        with self._changing:
            found = list(islice(self._called_back, CALLED_MOST))
            for one in found:
                del self._called_back[one]
            self._calling.setdefault(token, []).extend(found)
        return found

    def wait_still(self, token: bytes, runs: Sequence[WaitingRun]) -> None:
        """Leave runs for the next claim to look at: nobody has had them yet."""
        if runs:
            with self._changing:
                self._waiting.setdefault(token, []).extend(runs)

    def passed_over(self, runs: Iterable[WaitingRun]) -> None:
        """Call back the next ones in the place of runs that somebody else has by now: twice as many, as those may be gone too."""
        with self._changing:
            gone = Counter[DocumentKey]()
            for key, run in runs:
                # Else a worker of this process has it, or has had it since.
                if run in self._called and not self._comes(run):
                    self._leave_line(run)
                    gone[key] += 1
            for key, count in gone.items():
                self._call_again(key, 2 * count)

    def called(self, token: bytes, *, is_done: bool) -> None:
        """Note that a claim is committed with what it called back, or that it is not."""
        if token not in self._calling and (is_done or token not in self._late):
            return
        with self._changing:
            claimed = {} if is_done else self._late.pop(token, {})
            for key in dict.fromkeys(claimed.values()):
                self._call_again(key, 1)
            runs, waiting = self._calling.pop(token, []), self._waiting.pop(token, [])
            self._called_back |= dict.fromkeys(waiting if is_done else runs)
