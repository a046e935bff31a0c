"""Marks of what was handed over to a broker, and who sweeps (ports/handoff.py)."""

from __future__ import annotations

from heapq import merge
from itertools import islice, takewhile

from msgspec import structs

from lab.ledger.hooks import Hooked, reads, writes
from surehook.core.model import Lane
from surehook.ports.handoff import LaneMarks


class Handing(Hooked):
    @writes
    def prepare_handing(self) -> None:
        """Every index is there."""

    @reads
    def identity(self) -> str:
        return ""  # there is one in each process

    @reads
    def lane_marks(self, lane: Lane) -> LaneMarks:
        return self.book.marks[lane]

    @writes
    def hand_over(self, lane: Lane, *, node: bytes, limit: int, due_by: int, now: int) -> list[bytes] | None:
        self.book.fence(node)
        sweeper = self.book.sweepers[lane]
        if sweeper != node and sweeper in self.book.nodes:
            return None
        self.book.sweepers[lane] = node
        marks = self.book.marks[lane]
        lost = takewhile(lambda key: key[0] < marks.passed, self.book.marked[lane].ascending())
        lost_due = ((due_at, row) for _, due_at, row in lost if due_at <= due_by)
        new = takewhile(lambda key: key[0] <= due_by, self.book.unmarked[lane].ascending())
        chosen = list(islice(merge(sorted(lost_due), new), limit))
        for _, delivery in chosen:
            row = self.book.rows[delivery]
            with self.book.moving(row):
                row.handed = marks.epoch
        return [delivery for _, delivery in chosen]

    @writes
    def end_epoch(self, lane: Lane, *, node: bytes, now: int) -> int | None:
        self.book.fence(node)
        if self.book.sweepers[lane] != node:
            return None
        marks = self.book.marks[lane]
        self.book.marks[lane] = structs.replace(marks, epoch=marks.epoch + 1)
        return marks.epoch

    @writes
    def record_watermark(self, lane: Lane, epoch: int, *, node: bytes, now: int) -> None:
        self.book.fence(node)
        marks = self.book.marks[lane]
        if marks.passed < epoch < marks.epoch:
            self.book.marks[lane] = structs.replace(marks, passed=epoch)

    @writes
    def resign(self, lane: Lane, *, node: bytes, now: int) -> None:
        self.book.fence(node)
        if self.book.sweepers[lane] == node:
            self.book.sweepers[lane] = None
