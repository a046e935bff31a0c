"""A document's history as lines for people: every decision, what it changed, and why."""

from __future__ import annotations

from collections.abc import Iterable

from surehook.core.instants import render
from surehook.core.workflow.values import Document, OperatorCommand, Step

_NO_EVENT = "(no event)"


def explain(history: Iterable[Step], document: Document | None = None) -> list[str]:
    """One line for each step, in the order in which they were decided, and how the document stands, if it is given.

    2026-11-21T10:00:00.000Z  #3 document.signed evt_3  applied  viewed → signed; ana: viewed → signed [move]
    """
    lines: list[str] = []
    table = None
    for step in history:
        if step.table != table:
            lines.append(f"by table {step.table}:")
            table = step.table
        lines.append(line(step))
    if document is not None:
        lines += standing(document)
    return lines


def line(step: Step) -> str:
    """One decision: when, what came, the verdict, what changed, why."""
    number = "" if step.sequence is None else f"#{step.sequence} "
    what = f"{number}{step.type} {step.event}" if step.event else _NO_EVENT
    moved = f"{step.before} → {step.after}" if step.before != step.after else f"{step.before} stays"
    waited = " after it waited" if step.released else ""
    why = step.reason if step.reason.startswith(moved) else f"{moved}: {step.reason}"
    return f"{render(step.at)}  {what}  {step.verdict}{waited}  {why} [{step.rule}]"


def standing(document: Document) -> list[str]:
    """Describe a document as it stands: its state and the events it waits for."""
    version = "" if document.version is None else f", workflow version {document.version}"
    lines = [f"now {document.state}{version}; number {document.next} comes next"]
    lines += [f"  {_asked(word)}" for word in document.words]
    lines += [f"  {name} is {party.state}" for name, party in sorted(document.parties.items())]
    if document.stopped is not None:
        lines.append(f"  stands still at {document.stopped.type} {document.stopped.id}")
    for one in document.waiting:
        number = "" if one.event.sequence is None else f"#{one.event.sequence} "
        lines.append(f"  waiting since {render(one.since)}: {number}{one.event.type} {one.event.id}")
    return lines


def _asked(word: OperatorCommand) -> str:
    """Describe a wish of a person, and the attempts at it (undo_attempts.py)."""
    asked = f"{word.what} was asked for by {word.by or 'an operator'}: {word.why}"
    if word.tried_at is not None:
        return f"{asked}; attempt {word.tries} began {render(word.tried_at)}, and has not ended yet"
    if word.tries:
        return f"{asked}; {word.tries} attempt{'s' if word.tries > 1 else ''} failed, the log says why"
    return asked
