"""The runs that a worker has claimed and not ended: of its batch, for the next one, owed to others, and left to a replacement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from surehook.ports.inbox_runs import DocumentKey, Run, due_since


class InProgress(Struct):
    """The runs that a worker claimed with this token, to be handled in one transaction."""

    token: bytes = b""
    runs: Sequence[Run] = ()


class Carried(Struct):
    """Runs that stay claimed with this token for the next batch, with their documents, which others have (busy_documents.py)."""

    token: bytes = b""
    runs: Sequence[tuple[DocumentKey, Run]] = ()

    @property
    def ids(self) -> list[tuple[DocumentKey, bytes]]:
        return [(key, run.id) for key, run in self.runs]

    def with_claimed(self, claimed: list[Run]) -> list[Run]:
        """Add what was claimed for that batch, in the order of both. Their lease may have lapsed, and they be claimed anew."""
        if not self.runs:
            return claimed
        anew = {run.id for run in claimed}
        return sorted(
            [*claimed, *(run for _, run in self.runs if run.id not in anew)], key=lambda run: run.id
        )


class Waking(NamedTuple):
    """A document that wakes: time passes for it up to `instant`, as what came before that has been handled; and until when it is
    leased for that, if it is."""

    instant: int
    leased_until: int | None

    @property
    def noted(self) -> Waking:
        """The same after a transaction that noted an attempt to undo something, and so ended its lease."""
        return self._replace(leased_until=None)


class Asleep(Struct):
    """Documents that a worker has leased until then and not let go on, with the instants at which they were due."""

    leased_until: int = 0
    instants: dict[DocumentKey, int] = {}

    def copy(self) -> Asleep:
        return Asleep(self.leased_until, dict(self.instants))


class Owed(NamedTuple):
    """Runs, by id, that an outage kept from being given back: without what they carry, as it may last. `due_at`: since when the
    first of them was due."""

    runs: list[bytes]
    token: bytes
    due_at: int

    @classmethod
    def of(cls, runs: Sequence[Run], token: bytes) -> Owed:
        return cls([run.id for run in runs], token, due_since(runs))


class Failed(NamedTuple):
    """A transaction that failed with one run, and whether events that had waited took effect in it as well."""

    error: Exception
    is_shared: bool


class Takeover(Struct):
    """The work that a worker leaves to its replacement: its claimed runs, the documents that it leased, and the run whose
    handler took too long, if one did."""

    in_progress: InProgress
    asleep: Asleep
    late: Run | None = None
    error: Exception | None = None

    def untried(self) -> list[Run]:
        return [run for run in self.in_progress.runs if run is not self.late]
