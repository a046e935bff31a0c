"""The meaning of one event, whose turn it is, for a document: the table is asked, nothing is changed.

The questions are asked in this order, and the first that has an answer decides:
readable? known type? informational? of an older version? caused in a branch that has ended? a signer's act, and what
does it mean for the signer? what does it mean for the document?
"""

from __future__ import annotations

from typing import NamedTuple

from surehook.core.workflow.draft import Draft, is_newer, token_digest, version_key
from surehook.core.workflow.flow import Relation
from surehook.core.workflow.values import Arrival, Party, Verdict


class Ruling(NamedTuple):
    """A verdict with its reason, and what follows where it is `applied`.

    after    state of the document, None: as it is
    party    state of the signer, None: as it is
    opens    the workflow goes another way from here
    spends   a granted token is used up
    ahead    the verdict stands only if the event may not wait for its state
    """

    verdict: Verdict
    rule: str
    reason: str
    after: str | None = None
    party: str | None = None
    opens: bool = False
    spends: bool = False
    ahead: bool = False


def judge(draft: Draft, event: Arrival, *, leap: bool = False) -> Ruling:
    """The ruling on an event. `leap`: it may pass over states that were not seen."""
    ruling = _judge(draft, event, leap=leap or draft.holes or draft.table.order.mode == "free")
    if ruling.verdict == "stale" and draft.table.on_stale == "conflict":
        return ruling._replace(verdict="conflict")
    return ruling


def _judge(draft: Draft, event: Arrival, *, leap: bool) -> Ruling:
    table, kind = draft.table, draft.table.name(event.type)
    if event.flaw is not None:
        return Ruling("conflict", "flaw", event.flaw)
    if kind not in table.types:
        if table.on_unknown == "informational":
            return Ruling("informational", "unknown_type", f"the table does not name {event.type}; recorded")
        return Ruling("conflict", "unknown_type", f"the table does not name {event.type}")
    if kind in table.informational:
        return Ruling("informational", "informational", f"{kind} is recorded and moves nothing")
    late = _late(draft, event)
    if late is not None:
        return late
    if kind in table.branches:
        return _turn(draft, event, kind, leap=leap)
    return _move(draft, event, kind, leap=leap)


def _late(draft: Draft, event: Arrival) -> Ruling | None:
    """Rule on an event of a version, a branch or a signer that is over; None: it is of none."""
    if version_key(event.version) is None:
        return Ruling("conflict", "flaw", f"the workflow version {event.version!r} cannot be compared")
    if event.version is not None and is_newer(draft.version, event.version):
        return Ruling(
            "stale",
            "older_version",
            f"of workflow version {event.version}; the document is at {draft.version}",
        )
    branch, is_known = draft.branch_of(event)
    if not is_known:
        return None
    if draft.has_ended(branch):
        ended = draft.branches.get(branch)
        by = f" by {ended.ended_by}" if ended is not None else ""
        return Ruling("stale", "ended_branch", f"caused by {event.cause}, in a branch that was ended{by}")
    party = None if event.party is None else draft.parties.get(event.party)
    if party is not None and not draft.is_within(branch, party.branch):
        return Ruling(
            "stale", "replaced", f"caused by {event.cause}, before {event.party} came to stand as now"
        )
    return None


def _turn(draft: Draft, event: Arrival, kind: str, *, leap: bool) -> Ruling:
    """An event after which the workflow goes another way, whether it moves the document or not."""
    table = draft.table
    if table.branches[kind] == "replace" and (event.party is None or event.replaces is None):
        return Ruling("conflict", "flaw", f"{kind} does not say who replaces whom")
    if table.branches[kind] == "replace" and not draft.has_room(event.party, event.replaces):
        return _too_many_parties(draft)
    if not draft.can_branch():
        return Ruling("conflict", "too_many_branches", f"{len(draft.branches)} branches are open already")
    if kind in table.flow.moves or draft.state in table.flow.terminal:
        ruling = _move(draft, event, kind, leap=leap, with_party=False)
        if ruling.verdict == "applied":
            return ruling._replace(opens=True)
        if ruling.rule != "there_already" or draft.state in table.flow.terminal:
            return ruling
    return Ruling(
        "applied", "branch", f"the workflow goes another way from here; {draft.state} stays", opens=True
    )


def _move(draft: Draft, event: Arrival, kind: str, *, leap: bool, with_party: bool = True) -> Ruling:
    """An event that may move the document, a signer, or both."""
    flow = draft.table.flow
    token = _has_token(draft, event)
    found = flow.judge(draft.state, kind, permitted=token or is_newer(event.version, draft.version))
    spends = token and (
        (found.kind == "move" and draft.state in flow.terminal) or (found.kind == "ahead" and not leap)
    )
    ruling = _of_document(draft, kind, found, leap=leap or token)
    if spends:
        ruling = ruling._replace(spends=True)
    parties = draft.table.party_flow
    if not with_party or parties is None or event.party is None or not parties.knows(kind):
        return ruling
    if draft.state in flow.terminal and ruling.verdict != "applied":
        return ruling
    if not draft.has_room(event.party):
        return _too_many_parties(draft)
    stands = draft.parties.get(event.party, Party(parties.initial))
    theirs = parties.judge(stands.state, kind, permitted=token or is_newer(event.version, stands.version))
    freed = token and (
        (theirs.kind == "move" and stands.state in parties.terminal) or (theirs.kind == "ahead" and not leap)
    )
    if not flow.knows(kind):
        # Of concern to the signer only.
        ruling = Ruling("no_op", "there_already", "")
    if draft.state in flow.terminal and theirs.kind != "move":
        return ruling
    spent = ruling._replace(spends=spends or freed)
    return _with_party(draft, event, spent, theirs, stands, leap=leap or token)


def _too_many_parties(draft: Draft) -> Ruling:
    return Ruling("conflict", "too_many_parties", f"{len(draft.parties)} signers are known already")


def _with_party(
    draft: Draft, event: Arrival, ruling: Ruling, theirs: Relation, stands: Party, *, leap: bool
) -> Ruling:
    """The document's ruling joined with what the act means for the signer, who comes first."""
    name, state, target = event.party, stands.state, theirs.target
    if theirs.kind == "same":
        return Ruling("no_op", "there_already", f"{name} is {state} already")
    if theirs.kind == "past":
        return Ruling("stale", "past", f"{name} is {state}; {event.type} is late")
    if theirs.kind == "locked":
        return Ruling("conflict", "locked", f"{name} is {state}: {_remedy(target)}")
    if theirs.kind == "other":
        return Ruling("conflict", "contradiction", f"{name} is {state}; {event.type} contradicts that")
    if theirs.kind == "ahead" and not leap:
        return Ruling(
            "conflict", "unproven", f"{name} is {state}; nothing seen leads to {target}", ahead=True
        )
    if ruling.verdict == "applied":
        return ruling._replace(party=target, reason=f"{ruling.reason}; {name}: {state} → {target}")
    if ruling.rule in ("there_already", "past"):
        reason = f"{name}: {state} → {target}; the document stays {draft.state}"
        return Ruling("applied", "signer", reason, party=target, spends=ruling.spends)
    return ruling


def _of_document(draft: Draft, kind: str, found: Relation, *, leap: bool) -> Ruling:
    """Turn what was found in the table into a ruling on the document alone."""
    state, target, is_final = draft.state, found.target, draft.state in draft.table.flow.terminal
    match found.kind:
        case "move":
            return Ruling("applied", "remedy" if is_final else "move", f"{state} → {target}", after=target)
        case "same":
            return Ruling("no_op", "there_already", f"the document is {state} already")
        case "past" if is_final:
            return Ruling("stale", "terminal", f"{state} is final; a late {kind} changes nothing")
        case "past":
            return Ruling("stale", "past", f"the document is {state}; {kind} is late")
        case "locked":
            return Ruling("conflict", "locked", f"the document is {state}: {_remedy(target)}")
        case "ahead" if leap:
            return Ruling(
                "applied", "leap", f"{state} → {target}, over states that were not seen", after=target
            )
        case "ahead":
            return Ruling(
                "conflict", "unproven", f"the document is {state}; nothing seen leads to {target}", ahead=True
            )
    if _outranks(draft, target):
        return Ruling("applied", "precedence", f"{state} → {target}, which comes before it", after=target)
    return Ruling("conflict", "contradiction", f"{kind} contradicts {state}, which stands")


def _outranks(draft: Draft, target: str) -> bool:
    """Tell whether `target` is an end that the table prefers to the end the document has."""
    ranks = draft.table.precedence
    return draft.state in ranks and target in ranks and ranks.index(target) < ranks.index(draft.state)


def _has_token(draft: Draft, event: Arrival) -> bool:
    return event.remediated or (event.token is not None and token_digest(event.token) in draft.grants)


def _remedy(target: str) -> str:
    return f"only a newer workflow version or a remediation token leads to {target}"
