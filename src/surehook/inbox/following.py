"""The workflows that an inbox follows: which events go to which, and which handlers hear of them.

A workflow has the events that the pattern fits. It also has those that the pattern leaves out and that carry a number of a
document, if its table names their type `informational`: the sender has counted them, so the document would wait for them.
Informational events reach handlers that ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from surehook.core.workflow.decide import Arrival, Table
from surehook.inbox.event import Event
from surehook.inbox.handlers import Handler
from surehook.inbox.patterns import check_pattern, matches
from surehook.inbox.undoing import Undoing
from surehook.inbox.workflow import NoDocument, Workflow, Workflows
from surehook.ports.inbox_runs import Run


class Followed(NamedTuple):
    """An event that a workflow follows: the document, and what the table looks at."""

    workflow: Workflow
    document: str
    arrival: Arrival


class FollowRule(NamedTuple):
    """The events of a source that a workflow follows."""

    source: str
    pattern: str
    workflow: Workflow


class Following:
    """The workflows by the events they follow, and the handlers that undo. `identify()` makes an id of sixteen bytes."""

    def __init__(self, identify: Callable[[], bytes], undoing: Undoing) -> None:
        self.undoing = undoing
        self.workflows = Workflows()
        self._rules: list[FollowRule] = []
        self.identify = identify

    def add(self, workflow: Workflow | Table, source: str, pattern: str) -> Workflow:
        """Follow these events too; return the workflow that does. Raises WorkflowError for another table of its type."""
        check_pattern(pattern)
        known = self.workflows.known(workflow)
        if known is None:
            known = self.workflows.add(workflow)
        self._rules.append(FollowRule(source, pattern, known))
        return known

    def rules(self) -> Iterator[FollowRule]:
        """Walk through what was said by `follow`, in that order."""
        return iter(self._rules)

    def adopt(self, other: Following) -> None:
        """Take over the rules and undoing handlers of another one."""
        for rule in other._rules:
            self.add(rule.workflow, rule.source, rule.pattern)
        self.undoing.handlers.adopt(other.undoing.handlers, lambda one: one)

    def of(self, source: str, type: str | None) -> Workflow | None:
        """Find the workflow of an event: the first rule that fits."""
        for rule in self._rules:
            if rule.source in ("*", source) and matches(rule.pattern, type):
                return rule.workflow
        return None

    def beside(self, run: Run, event: Event, *, asks: bool) -> Followed | None:
        """Find the document whose number an event carries that no pattern fits, preferably of a workflow that knows its type.
        None: it counts nowhere. `asks` as for the workflow."""
        first = None
        for rule in self._rules:
            workflow = rule.workflow
            if rule.source not in ("*", run.source) or workflow.table.order.mode == "free":
                continue
            try:
                document, arrival = workflow.read(event, source=run.source, asks=asks)
            except NoDocument:
                continue
            if arrival.sequence is not None:
                found = Followed(workflow, document, arrival)
                if workflow.concerns(run.type):
                    return found
                first = first or found
        return first

    def asking(self, workflow: Workflow, run: Run, fitting: Iterable[Handler]) -> tuple[Handler, ...]:
        """Choose, of the handlers that fit an informational event, those that ask for such: by `informational=`, or since
        their pattern fits no type that moves. Where no pattern of `follow` fits, all: they never heard of moves only."""
        moving, is_beside = workflow.table.moving, self.of(run.source, run.type) is None
        return tuple(
            one
            for one in fitting
            if is_beside or one.informational or not any(matches(one.pattern, kind) for kind in moving)
        )

    def by_type(self, document_type: str) -> Workflow | None:
        """Find the workflow of a document type; None: its documents are followed elsewhere."""
        return next((one for one in self.workflows if one.document_type == document_type), None)
