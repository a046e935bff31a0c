"""Transactions that were under way while claims went by: what they bring is looked for where claims stood when they began.

A claim sees what was committed before it, and the next one begins near where it ended. So a row whose commit stood still
becomes visible behind that. Its writer tells of it (ledgers/late.py), unless it has died meanwhile or given up: then
nobody does, and to look for it everywhere is to walk over all entries of rows that are gone.

But a claim knows, at no cost, which transactions it did not see: those that its snapshot names, and those above whose numbers
are below its own. Of these, one above the number of the claim before began later than that: what it makes ready is due no
earlier, or by a little. Once a later snapshot shows it to be over, claims begin there again. So a writer that stays for hours
holds nobody up; it is looked after when it ends.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

Place = TypeVar("Place")


class Snapshot(NamedTuple):
    """Transactions as one of them saw the others."""

    oldest: int  # nothing before it is under way
    unseen: frozenset[int]  # those below its own number that were under way
    own: int


def snapshot_of(text: str) -> Snapshot:
    """`oldest:next:under way,…:own`. Since `next` none has ended, whether it has begun or not."""
    oldest, next, named, own = text.split(":")
    unseen = map(int, named.split(",")) if named else ()
    return Snapshot(int(oldest), frozenset((*unseen, *range(int(next), int(own)))), int(own))


class UnderWay(Generic[Place]):
    """Of one kind of walk. `beginning` is the place before everything."""

    def __init__(self, beginning: Place) -> None:
        self._places: dict[int, Place] = {}  # where to look for what each brings
        self._since = beginning  # … for those that begin after the last walk

    def saw(self, snapshot: Snapshot, place: Place) -> list[Place]:
        """A walk has seen this; what begins after it lies at `place` or beyond. Returns where to look again: for what those
        brought that are over."""
        over = [number for number in self._places if number < snapshot.own and number not in snapshot.unseen]
        places = [self._places.pop(number) for number in over]
        for number in snapshot.unseen:
            self._places.setdefault(number, self._since)
        self._since = place
        return places
