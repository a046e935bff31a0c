"""The turn of one event: it is judged, the document changes as the ruling says, and all that is said of it is written down."""

from __future__ import annotations

from surehook.core.workflow.draft import Draft, digest_of, token_digest
from surehook.core.workflow.rules import Ruling, judge
from surehook.core.workflow.table import Table
from surehook.core.workflow.values import Arrival, Document, Step, Verdict

# Conflicts for which the table, or where it looks in an event, may be at fault: it is decided on anew when it is replayed.
UNREAD = ("no_number", "flaw", "unknown_type")


class Placing:
    """A document at an instant, and the steps so far."""

    def __init__(self, table: Table, document: Document | None, now: int) -> None:
        self.table = table
        self.order = table.order
        self.now = now
        self.draft = Draft(table, document)
        self.steps: list[Step] = []

    def _place(
        self, event: Arrival, *, released: bool = False, leap: bool = False, again: bool = False
    ) -> Step:
        """Judge an event whose turn it is, and do what follows. `again`: its number was settled when it was first here."""
        draft = self.draft
        ruling = judge(draft, event, leap=leap)
        stops = (
            self.table.on_conflict == "stop"
            and ruling.verdict == "conflict"
            and self.order.mode != "free"
            and draft.stopped is None
            and not again
        )
        step = self._say(event, ruling.verdict, ruling.rule, ruling.reason, ruling=ruling, released=released)
        if stops:
            draft.stopped = event
            return step
        branch = self._apply(event, ruling) if ruling.verdict == "applied" else None
        if again:
            undone = ruling.verdict not in ("applied", "informational")
            draft.remember(event, number=event.sequence, branch=branch, undone=undone)
        else:
            self._settle_number(
                event, branch=branch, undone=ruling.verdict == "conflict" and ruling.rule in UNREAD
            )
        return step

    def _apply(self, event: Arrival, ruling: Ruling) -> int | None:
        """Change the draft as the ruling says; the number of the branch that was opened, if one was."""
        draft, kind = self.draft, self.table.name(event.type)
        if ruling.spends and event.token is not None and token_digest(event.token) in draft.grants:
            draft.grants.remove(token_digest(event.token))
        if event.version is not None:
            draft.version = event.version
        if ruling.after is not None:
            draft.state = ruling.after
        if ruling.rule == "leap":
            draft.holes = False
        draft.last = digest_of(event.id, event.source)
        branch = None
        if ruling.opens:
            branch = draft.open_branch(event, supersede=self.table.branches[kind] == "supersede")
            if self.table.branches[kind] == "replace":
                self._replace(event, branch)
        if ruling.party is not None:
            assert event.party is not None
            draft.stand(event.party, ruling.party)
        return branch

    def _replace(self, event: Arrival, branch: int) -> None:
        """One signer takes another's place. A signature that was given stands."""
        parties, draft = self.table.parties, self.draft
        assert parties is not None
        assert parties.replaced is not None
        assert event.party is not None
        assert event.replaces is not None
        gone = draft.parties.get(event.replaces)
        has_acted = gone is not None and gone.state in parties.terminal
        if not has_acted or (gone is not None and gone.state in self._remediable()):
            draft.stand(event.replaces, parties.replaced, branch=branch)
        draft.stand(event.party, parties.initial, branch=branch)

    def _remediable(self) -> set[str]:
        """Ends of a signer that are no achievement: those that a remedy leads out of."""
        assert self.table.parties is not None
        return {state for ways in self.table.parties.remedies.values() for state in ways}

    def _settle(self, event: Arrival, verdict: Verdict, rule: str, reason: str) -> Step:
        """A verdict for good on an event that takes no number."""
        if verdict == "stale" and self.table.on_stale == "conflict":
            verdict = "conflict"
        step = self._say(event, verdict, rule, reason)
        self.draft.remember(event, number=None, undone=rule in UNREAD)
        return step

    def _settle_number(self, event: Arrival, *, branch: int | None = None, undone: bool = False) -> None:
        """The event is done with, and so is its number. `undone`: it had no effect, and may have one when it is replayed."""
        draft = self.draft
        draft.remember(event, number=event.sequence, branch=branch, undone=undone)
        if event.sequence is not None and self.order.mode != "free":
            draft.next = event.sequence + 1

    def _is_informational(self, event: Arrival) -> bool:
        return self.table.name(event.type) in self.table.informational

    def _say(
        self,
        event: Arrival,
        verdict: Verdict,
        rule: str,
        reason: str,
        *,
        ruling: Ruling | None = None,
        waits_for: int | None = None,
        released: bool = False,
        by: str | None = None,
    ) -> Step:
        before = self.draft.state
        stood = None if event.party is None else self.draft.parties.get(event.party)
        stood_in = self._party_state(event) if stood is None else stood.state
        step = Step(
            at=self.now,
            table=self.table.label,
            event=event.id,
            source=event.source,
            type=event.type,
            verdict=verdict,
            before=before,
            after=before if ruling is None or ruling.after is None else ruling.after,
            rule=rule,
            reason=reason,
            sequence=event.sequence,
            version=event.version,
            cause=event.cause,
            party=event.party,
            party_before=stood_in,
            party_after=stood_in if ruling is None or ruling.party is None else ruling.party,
            waits_for=waits_for,
            released=released,
            by=by,
            version_before=self.draft.version,
            party_version_before=None if stood is None else stood.version,
        )
        self.steps.append(step)
        return step

    def _party_state(self, event: Arrival) -> str | None:
        """The state of a signer of whom nothing is known yet."""
        flow = self.table.party_flow
        return None if flow is None or event.party is None else flow.initial
