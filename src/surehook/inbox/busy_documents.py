"""The documents that workers of this process are at work on, and the events that wait for that.

Events of one document take effect one after the other, so a second worker with one of them could only wait until the first has
committed. Where handlers are slow and one document has many events, all workers of a process would wait so, and no other event
be handled. So a worker puts off what is of a document that another one has, and goes on with something else. As the other one
is done, it calls back as many as it does at a time: the document goes on at once, and in its order.

What was put off is due again by itself after a while: the process that was to call it back may have ended, and the document be
another process's. There is one worker of each process, at most, that waits for a document of another one's.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence

from surehook.ports.inbox_runs import DocumentKey

PUT_OFF_MS = 5_000  # unless it is called back
EACH_MS = 5  # more for each that waits already, so that looking at all of them does not keep a worker busy
# Runs that are called back, of all documents; others are due by themselves: where there are more, those of the first document.
WAITING_MOST = 10_000


class BusyDocuments:
    """Who is at work on which document, by the token of its claim. Threads may call."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._owners: dict[DocumentKey, bytes] = {}
        self._owned: dict[bytes, list[DocumentKey]] = {}
        # Ids of runs, in the order in which they arrived: whoever meets them does so in any.
        self._waiting: dict[DocumentKey, list[bytes]] = {}
        self._count = 0
        self._called_back: list[bytes] = []

    def enter(self, token: bytes, keys: Iterable[DocumentKey]) -> set[DocumentKey]:
        """Take the documents that nobody has; returns those that others have."""
        others = set()
        with self._changing:
            owned = self._owned.setdefault(token, [])
            for key in keys:
                owner = self._owners.setdefault(key, token)
                if owner != token:
                    others.add(key)
                else:
                    owned.append(key)
        return others

    def is_anothers(self, token: bytes, key: DocumentKey) -> bool:
        """Tell whether another worker has a document."""
        return self._owners.get(key, token) != token

    def is_of(self, token: bytes, key: DocumentKey) -> bool:
        """Tell whether this worker has a document."""
        return self._owners.get(key) == token

    def is_waited_for(self, key: DocumentKey) -> bool:
        """Tell whether runs wait for a document."""
        return key in self._waiting

    def put_off_ms(self, keys: Collection[DocumentKey]) -> int:
        """Choose how long runs of these documents are put off, if nobody calls them back."""
        with self._changing:
            waiting = max((len(self._waiting.get(key, ())) for key in keys), default=0)
        return max(PUT_OFF_MS, EACH_MS * waiting)

    def put_off(self, runs: Sequence[tuple[DocumentKey, bytes]]) -> None:
        """Note runs that were put off, once that is committed; if their document is free by now, its first is called back."""
        with self._changing:
            for key, run in runs:
                line = self._waiting.setdefault(key, [])
                place = bisect_left(line, run)
                if len(line) < WAITING_MOST and line[place : place + 1] != [run]:
                    line.insert(place, run)
                    self._count += 1
            while self._count > WAITING_MOST:
                self._count -= len(self._waiting.pop(next(iter(self._waiting))))
            for key in {key for key, _ in runs} - self._owners.keys():
                self._call_back(key, 1)

    def leave(self, token: bytes, most: int) -> None:
        """Give up all documents of a token, and call back as many runs of each as a worker does at a time."""
        with self._changing:
            for key in self._owned.pop(token, ()):
                if self._owners.get(key) != token:
                    continue
                del self._owners[key]
                self._call_back(key, most)

    def _call_back(self, key: DocumentKey, most: int) -> None:
        line = self._waiting.get(key)
        if line is None:
            return
        self._called_back += line[:most]
        self._count -= len(line[:most])
        del line[:most]
        if not line:
            del self._waiting[key]

    def called_back(self) -> list[bytes]:
        """Take the runs that are to be due again at once."""
        if not self._called_back:
            return []
        with self._changing:
            found, self._called_back = self._called_back, []
        return found
