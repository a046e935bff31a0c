"""A bounded walk through groups of parked rows, in the order of ids, that finds those past their age.

Old ids come first and are the likeliest. Rows that are younger than their ids (a replay, a pause) are skipped.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from surehook.core.ids import floor
from surehook.ledgers.common.indexes import AHEAD_MS
from surehook.ports.ledger import AgedGroup

# Rows that one walk reads, in some ten milliseconds, before other work goes on.
WALK_ROWS = 10_000


class AgedWalk:
    """One walk through some groups, which finds up to `limit` rows.

    part   rows to find in each group
    depth  rows to read in each group
    ids    those that were found
    rest   groups that go on, from where the walk left them
    """

    def __init__(self, groups: Sequence[AgedGroup], limit: int) -> None:
        self.part = max(1, limit // len(groups))
        self.depth = max(1, WALK_ROWS // len(groups))
        self.ids: list[bytes] = []
        self.rest: list[AgedGroup] = []

    def found(self, group: AgedGroup, aged: Sequence[bytes], *, walked: int, last: bytes) -> None:
        """Take up to `part + 1` aged ids of a group, after reading `walked` rows up to the id `last`."""
        self.ids += aged[: self.part]
        if len(aged) > self.part:
            self.rest.append(replace(group, after=aged[self.part - 1]))
        elif walked == self.depth:
            self.rest.append(replace(group, after=last))


def ceiling(group: AgedGroup) -> bytes:
    """Exclusive upper id bound for aged rows of a group, allowing for ids minted ahead of the clock."""
    return floor(group.born_before + AHEAD_MS)
