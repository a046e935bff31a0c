"""The runs that a decision about a document is about, found by its steps."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from surehook.core.workflow.decide import Step
from surehook.inbox.event import Event
from surehook.ports.inbox import Settlement
from surehook.ports.inbox_runs import DocumentKey, Run


class Decided(NamedTuple):
    """A decision about a document, and the run of the event that it was about, where there is one. A move that is taken back is
    no turn of its event: `undone` is the run that had made it, unless it is past its retention."""

    key: DocumentKey
    step: Step
    run: Run | None
    undone: Run | None = None


class Readers(Protocol):
    """Reads the events of runs."""

    def read(self, run: Run) -> Event:
        """Read the event of a run, or raise."""
        ...

    def read_or_end(self, run: Run) -> Event | Settlement:
        """Read the event of a run, or end the run."""
        ...


class Read(NamedTuple):
    """A run and its event."""

    run: Run
    event: Event

    @property
    def name(self) -> tuple[str, str]:
        return self.run.source, self.run.event_id


class Concerned:
    """The runs that a decision is about, by its steps. A step that names no source was made of an event of any."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Read] = {}

    def add(self, one: Read) -> None:
        self._found[one.name] = self._found["", one.run.event_id] = one

    def of(self, step: Step) -> Read | None:
        return self._found.get((step.source, step.event))
