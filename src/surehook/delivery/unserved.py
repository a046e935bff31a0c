"""Lanes that no living node serves, told by what cannot be while one does: work is ready for long, and nobody holds any.

Which lanes a node delivers is known to itself alone, and a node that lives may still be stuck. So the work is asked, not the
nodes: a lane without work is not told of, since nothing of it is late. Nor is one before this node has looked for as long: when
all has stood still, work is overdue at the next start, and is taken within the second.

Every node finds the same, and one notice is kept of it: its id is made of the lane and of the oldest row's due time, which
the ledger shows to all of them, and the ledger keeps an id once.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from surehook.core import ids
from surehook.core.model import LANES, Notice
from surehook.ports.reading import LaneCount
from surehook.ports.telemetry import Telemetry

UNSERVED_S = 30.0  # longer than a dead node's lease, and than whatever a broker loses or holds up
INSTALLATION = ""  # in the place of a tenant


class Unserved:
    """Findings of the last count. `notices` are those that the ledger does not have yet."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        # at the first look: what waited before then may have had nobody at all
        self._began: int | None = None
        # The oldest due row of a lane of which nobody held anything at the last look: a busy node holds nothing between
        # two claims.
        self._stood: dict[str, int | None] = {}
        self._counted_at: int | None = None  # the last count that was looked at
        self._since: dict[str, int] = {}  # when the lane's oldest row had been due for so long
        self.lanes: dict[str, LaneCount] = {}
        self.notices: list[Notice] = []

    def look(self, counts: Sequence[LaneCount], *, now: int) -> None:
        """Say once that a lane is not served, and once that it is again."""
        if self._began is None or now < self._began:  # the clock was set back
            self._began = now
        looked_s = (now - self._began) / 1000
        counted_at = counts[0].counted_at
        if counted_at is not None and counted_at == self._counted_at:
            return  # the same count again, which says nothing new
        self._counted_at = counted_at
        seen_at = now if counted_at is None else counted_at
        for name, count in zip(LANES, counts, strict=True):
            oldest_s = 0.0 if count.oldest_due_at is None else (seen_at - count.oldest_due_at) / 1000
            stood, self._stood[name] = (
                self._stood.get(name),
                None if count.held else count.oldest_due_at,
            )
            is_still = name in self.lanes or (stood is not None and stood == count.oldest_due_at)
            if not count.held and is_still and min(oldest_s, looked_s) >= UNSERVED_S:
                if name not in self.lanes:
                    self._telemetry.fact(
                        "lane.unserved", lane=name, ready=count.ready, oldest_s=int(oldest_s)
                    )
                    assert count.oldest_due_at is not None, "something is due"
                    self._since[name] = count.oldest_due_at + int(UNSERVED_S * 1000)
                    self._notice("lane.unserved", name, now, f"no process serves the lane {name}")
                self.lanes[name] = count
            elif self.lanes.pop(name, None) is not None:
                self._telemetry.fact("lane.served", lane=name)
                self._notice("lane.served", name, now, f"the lane {name} is served again")

    def warning(self) -> str | None:
        """A sentence for people; None where every lane with work is served."""
        if not self.lanes:
            return None
        named = ", ".join(
            f"{name} ({count.ready:,} deliveries are due)" for name, count in self.lanes.items()
        )
        return f"no process serves the lane {named}: start a worker, or look why it is stuck"

    def _notice(self, kind: str, lane: str, now: int, detail: str) -> None:
        since = self._since[lane]
        chance = sha256(f"{kind} {lane} {since}".encode()).digest()[:10]
        self.notices.append(
            Notice(
                id=ids.uuid7(since, chance),
                at=now,
                kind=kind,
                tenant=INSTALLATION,
                endpoint=None,
                delivery=None,
                detail=detail,
            )
        )
