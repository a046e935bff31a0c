"""Taking a move back when its event is rejected afterwards, or telling people that it cannot be.

The rules, the first that fits decides
    declared    the table's `rejected` names the event's type and the state that the document is in: it goes where that says
    the newest  nothing has taken effect since: document and signer go back to where they stood before the event
    otherwise   a conflict (`not_undone`): what came later was built on the move, and no table can know what that means

A branch that the event opened stays, and so do events that were stale by it: only a declared way leads on from there.
"""

from __future__ import annotations

from surehook.core.workflow.draft import Draft, digest_of
from surehook.core.workflow.rules import Ruling
from surehook.core.workflow.values import Step


def undoing(draft: Draft, step: Step, why: str) -> Ruling:
    """The ruling on taking back `step`, by which an event took effect that was rejected for `why`."""
    table, kind = draft.table, draft.table.name(step.type)
    told = f"{step.event} was rejected" + (f" ({why})" if why else "")
    declared = table.rejected.get(kind, {}).get(draft.state)
    if declared is not None:
        return Ruling("applied", "undone", f"{told}: {draft.state} → {declared}", after=declared)
    if kind in table.branches:
        return _kept(draft, f"{told}; the workflow went another way by it")
    if draft.last != digest_of(step.event, step.source):
        return _kept(draft, f"{told}, and other events have taken effect since")
    after = step.before if step.before != step.after else None
    party = step.party_before if step.party_before != step.party_after else None
    moved = [f"{draft.state} → {after}"] if after is not None else [f"{draft.state} stays"]
    moved += [f"{step.party}: {step.party_after} → {party}"] if party is not None else []
    return Ruling("applied", "undone", f"{told}: {'; '.join(moved)}", after=after, party=party)


def _kept(draft: Draft, told: str) -> Ruling:
    text = f"{told}: {draft.state} stays, and `rejected` of the table names no way from it"
    return Ruling("conflict", "not_undone", text)
