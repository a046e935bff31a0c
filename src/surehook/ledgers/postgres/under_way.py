"""Transactions that were under way while claims went by. Their rows are looked for at the position that claims had then.

A claim sees what was committed before it, and the next one begins near its end. So a row whose commit stalled becomes visible
behind that position. Its writer notes it (ledgers/late.py), unless it has died or given up. Then nobody does, and looking for
the row everywhere would mean walking over all entries of vanished rows.

But a claim knows, at no cost, which transactions it did not see: those that its snapshot names, and those beyond it whose
numbers are below its own. A transaction with a number above that of the previous claim began after it, so the rows it makes
ready are due no earlier, or hardly. Once a later snapshot shows that it is over, claims begin there again. So a writer that
takes hours delays nobody, and its rows are looked for when it ends.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

Position = TypeVar("Position")


class Snapshot(NamedTuple):
    """Transactions as one of them saw the others.

    oldest  no earlier one is under way
    unseen  those below its own number that were under way
    """

    oldest: int
    unseen: frozenset[int]
    own: int


def snapshot_of(text: str) -> Snapshot:
    """Parse `oldest:next:under way,…:own`. From `next` on no transaction has ended, begun or not."""
    oldest, next, named, own = text.split(":")
    unseen = map(int, named.split(",")) if named else ()
    return Snapshot(int(oldest), frozenset((*unseen, *range(int(next), int(own)))), int(own))


class UnderWay(Generic[Position]):
    """The transactions under way, for one kind of walk. `beginning` is the position before everything."""

    def __init__(self, beginning: Position) -> None:
        # The position at which to look for each one's rows.
        self._places: dict[int, Position] = {}
        # The same for transactions that begin after the last walk.
        self._since = beginning

    def saw(self, snapshot: Snapshot, place: Position) -> list[Position]:
        """Take over a walk's snapshot, and return the positions of transactions that are over, to look at again.

        Rows of transactions that begin after the walk lie at `place` or beyond.
        """
        over = [number for number in self._places if number < snapshot.own and number not in snapshot.unseen]
        places = [self._places.pop(number) for number in over]
        for number in snapshot.unseen:
            self._places.setdefault(number, self._since)
        self._since = place
        return places
