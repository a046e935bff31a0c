"""Workflow: what an event means for the document it is about, by one table for each document type.

    from surehook.inbox import workflow

    contracts = workflow.Workflow(workflow.SIGNING)                       # the ready table, surehook's own body
    contracts = workflow.Workflow(
        workflow.SIGNING,
        fields={"yousign": workflow.Fields(document="data.signature_request.id", sequence="data.sequence")},
    )
    workflows = workflow.Workflows(contracts)                             # a second table for "signing" is an error

    document_id, arrival = contracts.read(event)
    decision = contracts.decide(document, arrival, now=now_ms)

The rules are in `core/workflow/`; nothing here or there touches a clock or storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from msgspec import structs

from surehook.core.workflow.check import bad_paths
from surehook.core.workflow.data import parse_table, render_table, table_of
from surehook.core.workflow.decide import (
    RULES,
    SUREHOOK,
    VERDICTS,
    Arrival,
    Branch,
    Decision,
    Document,
    Fields,
    Flaw,
    Order,
    Parties,
    Party,
    Step,
    Table,
    Verdict,
    Waiting,
    WorkflowError,
    decide,
    grant,
    release,
    wake_at,
)
from surehook.core.workflow.explain import explain
from surehook.core.workflow.read import arrival_of, document_of
from surehook.core.workflow.signing import SIGNING
from surehook.inbox.workflow_diagram import draw_mermaid, draw_text

__all__ = [
    "RULES",
    "SIGNING",
    "SUREHOOK",
    "VERDICTS",
    "Arrival",
    "Branch",
    "Decision",
    "Document",
    "Fields",
    "Flaw",
    "NoDocument",
    "Order",
    "Parties",
    "Party",
    "Readable",
    "Step",
    "Table",
    "Verdict",
    "Waiting",
    "Workflow",
    "WorkflowError",
    "Workflows",
    "decide",
    "draw_mermaid",
    "draw_text",
    "explain",
    "grant",
    "parse_table",
    "release",
    "render_table",
    "table_of",
]


class NoDocument(WorkflowError):
    """An event does not say which document it is about, so no workflow can take it."""


class Readable(Protocol):
    """The attributes that an event must have to be read: a message of `verify`, or an event of the inbox."""

    @property
    def id(self) -> str: ...
    @property
    def type(self) -> str | None: ...
    @property
    def body(self) -> Any: ...


class Workflow:
    """A table, and how the events of each source are read for it.

    table        one per document type
    fields       by source name, where a source's body differs from the table's own `fields`
    is_token     `is_token(document_id, token)`: whether a remediation token is good, where you have means of your own;
                 tokens that were granted to a document need none
    """

    def __init__(
        self,
        table: Table,
        *,
        fields: Mapping[str, Fields] | None = None,
        is_token: Callable[[str, str], bool] | None = None,
    ) -> None:
        self.table = table
        self._fields = dict(fields or {})
        self._is_token = is_token
        for source, one in self._fields.items():
            for flaw in bad_paths(one, f"fields.{source}"):
                raise WorkflowError(f"{flaw.text} ({flaw.code})", field=flaw.field)
            if table.order.mode == "strict" and one.sequence is None:
                raise WorkflowError(
                    "strict order needs sequence numbers (strict_without_sequence)",
                    field=f"fields.{source}.sequence",
                    hint="say where the number is, or give this source a table with `buffer` or `free`",
                )

    @property
    def document_type(self) -> str:
        return self.table.document_type

    def concerns(self, type: str | None) -> bool:
        """Tell whether the table names this event type. Others are judged by `on_unknown`, should they be handed in."""
        return type is not None and self.table.name(type) in self.table.types

    def read(self, event: Readable, *, source: str | None = None, asks: bool = True) -> tuple[str, Arrival]:
        """Read the document an event is about, and the part that the table looks at. Raises NoDocument.

        asks  whether its token is good is asked for
        """
        fields = self.table.fields if source is None else self._fields.get(source, self.table.fields)
        document = document_of(event.body, fields)
        if document is None:
            raise NoDocument(f"{event.id} names no document", field=fields.document)
        arrival = arrival_of(
            event.body, fields, id=event.id, type=event.type or "", source="" if source is None else source
        )
        is_asked = self._is_token if asks else None
        if arrival.token is None or is_asked is None or not is_asked(document, arrival.token):
            return document, arrival
        return document, structs.replace(arrival, remediated=True)

    def decide(
        self,
        document: Document | None,
        event: Arrival | None,
        *,
        now: int,
        passes: bool = True,
        until: int | None = None,
    ) -> Decision:
        """Decide as the function `decide` does, by this table."""
        return decide(self.table, document, event, now, passes=passes, until=until)

    def wake_at(self, document: Document) -> int | None:
        """The instant at which the document goes on by itself, as a decision's `wake_at`; None: it does not."""
        return wake_at(self.table, document)

    def release(self, document: Document, *, now: int) -> Decision:
        """Release as the function `release` does, by this table."""
        return release(self.table, document, now)


class Workflows:
    """The workflows of one program. Two tables for one document type are an error, even equal ones: one would be forgotten."""

    def __init__(self, *workflows: Workflow | Table) -> None:
        self._all: dict[str, Workflow] = {}
        for workflow in workflows:
            self.add(workflow)

    def add(self, workflow: Workflow | Table) -> Workflow:
        """Add a workflow. Raises WorkflowError where its document type has a table."""
        made = Workflow(workflow) if isinstance(workflow, Table) else workflow
        known = self._all.get(made.document_type)
        if known is not None:
            raise _second(made, known)
        self._all[made.document_type] = made
        return made

    def known(self, workflow: Workflow | Table) -> Workflow | None:
        """Find this workflow, or the one that has this table; None: neither is here."""
        known = self._all.get(workflow.document_type)
        if known is None or isinstance(workflow, Workflow):
            return known if known is workflow else None
        return known if known.table.digest == workflow.digest else None

    def __getitem__(self, document_type: str) -> Workflow:
        """Find the workflow of a document type. Raises WorkflowError where there is none."""
        found = self._all.get(document_type)
        if found is None:
            raise WorkflowError(f"there is no table for {document_type!r}", hint=", ".join(sorted(self._all)))
        return found

    def __iter__(self) -> Iterator[Workflow]:
        return iter(self._all.values())

    def __len__(self) -> int:
        return len(self._all)


def _second(made: Workflow, known: Workflow) -> WorkflowError:
    """Make the error of a second table, or of a second workflow of one table, which may read events in another way."""
    if made.table.digest == known.table.digest:
        detail = f"{made.document_type!r} has this table already, in another Workflow"
        hint = "make one Workflow, and give it to each `follow`"
    else:
        detail = (
            f"{made.document_type!r} has a table already: {known.table.label}; this one is {made.table.label}"
        )
        hint = "one truth for each document type: share the table, or give this one a type of its own"
    return WorkflowError(detail, field="document_type", hint=hint)
