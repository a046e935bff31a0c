"""The life of a node: entering, beating, eviction. The fence itself is `Book.fence`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lab.ledger.hooks import Hooked, reads, writes
from lab.ledger.rows import Row
from surehook.core.errors import Problem
from surehook.core.instants import SECOND_MS
from surehook.core.model import Attempt, NodeRow
from surehook.ports.ledger import Eviction

# From the fifth time running that a node died holding it, a row waits, against crash loops.
FREED_PATIENTLY = 4
FREED_WAIT_MS = 10 * SECOND_MS


class Nodes(Hooked):
    @writes
    def open(self, *, now: int) -> None:
        """Nothing to connect to and nothing to migrate."""

    @writes
    def close(self) -> None:
        """The book stays as it is, so that a simulated restart finds it."""

    @writes
    def enter(self, node: NodeRow, *, now: int) -> None:
        self.book.nodes[node.id] = node
        self.book.beats[node.id] = 0

    @writes
    def beat(self, node: bytes, counter: int, *, now: int) -> dict[bytes, int]:
        self.book.fence(node)
        self.book.beats[node] = counter
        return dict(self.book.beats)

    @reads
    def time(self) -> int | None:
        return None if self.clock is None else self.clock()

    @reads
    def nodes(self) -> list[NodeRow]:
        return sorted(self.book.nodes.values(), key=lambda node: node.id)

    @writes
    def evict(
        self, nodes: Sequence[bytes], *, now: int, judged: Mapping[bytes, int] | None = None
    ) -> Eviction:
        evicted, freed = [], 0
        for node in sorted(set(nodes)):
            if node not in self.book.nodes:
                continue
            if judged is not None and judged.get(node, self.book.beats[node]) != self.book.beats[node]:
                continue
            evicted.append(node)
            del self.book.nodes[node], self.book.beats[node]
            freed += self._free((self.book.rows[row] for row in list(self.book.held[node].ascending())), now)
            del self.book.held[node]
        return Eviction(evicted, freed)

    @writes
    def free(self, ids: Sequence[bytes], *, node: bytes, now: int) -> None:
        self.book.fence(node)
        rows = (self.book.rows.get(delivery) for delivery in ids)
        self._free((row for row in rows if row is not None and row.holder == node), now)

    @reads
    def held_count(self, node: bytes) -> int:
        return len(self.book.held[node]) if node in self.book.held else 0

    @reads
    def held(self, node: bytes, *, limit: int) -> list[bytes]:
        if node not in self.book.held:
            return []
        return [row for row, _ in zip(self.book.held[node].ascending(), range(limit), strict=False)]

    @reads
    def index_lists(self) -> bool:
        return False  # there is nothing beside the rows

    @reads
    def backup(self, path: str) -> None:
        raise Problem("backup_unsupported", "a book in memory has nothing to copy to a file", status=409)

    def _free(self, rows: Iterable[Row], now: int) -> int:
        """Unhold rows of which nobody knows whether they were sent; they keep their place in the schedule."""
        freed = 0
        for row in rows:
            with self.book.moving(row):
                row.holder = None
                row.freed += 1
                if row.freed > FREED_PATIENTLY:
                    row.due_at = max(row.due_at, now + FREED_WAIT_MS)
            entry = Attempt(
                delivery=row.id, number=row.attempt, kind="interrupted", lane=row.lane, started_at=now
            )
            self.book.history[row.id].append(entry)
            freed += 1
        return freed
