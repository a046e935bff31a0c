"""Retention: what is old enough and needed by nothing goes, oldest first, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, takewhile

from msgspec import structs

from lab.ledger.accept import KEY_LIFE_MS
from lab.ledger.hooks import Hooked, writes
from lab.ledger.sorted_keys import SortedKeys
from surehook.core.limits import CLOSINGS_KEPT_MS


class Pruning(Hooked):
    @writes
    def prune(self, *, events_before: int, bodies_before: int, limit: int, now: int) -> int:
        left = limit
        left -= self._stories(events_before, left)
        left -= self._events(events_before, left)
        left -= self._bodies(bodies_before, left)
        left -= self._keys(now - KEY_LIFE_MS, left)
        left -= self._notices(events_before, left)
        left -= self._receipts(events_before, left)
        self._closings(now - CLOSINGS_KEPT_MS)
        return limit - left

    def _stories(self, before: int, limit: int) -> int:
        """Finished deliveries with their histories, dead letters excepted."""
        old = (key for key in _older(self.book.story_ages, before) if key[1] not in self.book.dead_letters)
        keys = list(islice(old, limit))
        for key in keys:
            self.book.story_ages.discard(key)
            self.book.delivery_ids.discard(key[1])
            del self.book.stories[key[1]]
            del self.book.history[key[1]]
        return len(keys)

    def _events(self, before: int, limit: int) -> int:
        keys = list(islice(self._unneeded(self.book.event_ages, before), limit))
        for key in keys:
            self.book.event_ages.discard(key)
            self.book.body_ages.discard(key)
            self.book.event_ids.discard(key[1])
            del self.book.events[key[1]]
        return len(keys)

    def _bodies(self, before: int, limit: int) -> int:
        keys = list(islice(self._unneeded(self.book.body_ages, before), limit))
        for key in keys:
            self.book.body_ages.discard(key)
            self.book.events[key[1]] = structs.replace(self.book.events[key[1]], body=b"")
        return len(keys)

    def _closings(self, before: int) -> None:
        closings = self.book.closings
        for place in [place for place, row in closings.items() if row.generation < before]:
            del closings[place]

    def _keys(self, before: int, limit: int) -> int:
        keys = list(islice(takewhile(lambda key: key[0] <= before, self.book.key_ages.ascending()), limit))
        for key in keys:
            self.book.key_ages.discard(key)
            del self.book.keys[key[1], key[2]]
        return len(keys)

    def _notices(self, before: int, limit: int) -> int:
        keys = list(islice(_older(self.book.notice_ages, before), limit))
        for key in keys:
            self.book.notice_ages.discard(key)
            self.book.notice_ids.discard(key[1])
            del self.book.notices[key[1]]
        return len(keys)

    def _receipts(self, before: int, limit: int) -> int:
        old = takewhile(lambda key: key[0] < before, self.book.receipt_ages.ascending())
        keys = list(islice(old, limit))
        for _, event, endpoint in keys:
            self.book.put_receipt((event, endpoint), None)
        return len(keys)

    def _unneeded(self, ages: SortedKeys[tuple[int, bytes]], before: int) -> Iterator[tuple[int, bytes]]:
        return (key for key in _older(ages, before) if key[1] not in self.book.needed)


def _older(ages: SortedKeys[tuple[int, bytes]], before: int) -> Iterator[tuple[int, bytes]]:
    return takewhile(lambda key: key[0] < before, ages.ascending())
