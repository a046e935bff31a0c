"""The queue of a document's early events: gaps, bounds, operators' commands, and the events that are remembered.

Every event ends in exactly one of three ways: settled (it has a verdict for good and is remembered), waiting (`early`,
kept in the document), or handed back (not kept and not remembered: it can be handed in again).
"""

from __future__ import annotations

from surehook.core.workflow.draft import Draft, digest_of, token_digest
from surehook.core.workflow.rules import Ruling, judge
from surehook.core.workflow.table import Table
from surehook.core.workflow.undo import undoing
from surehook.core.workflow.values import Arrival, Decision, Document, OperatorCommand, Step, Verdict, Waiting

NOBODY = Arrival(id="", type="")  # of steps that no event made


class Turn:
    """One decision in the making. The steps come out in the order in which they take effect."""

    def __init__(self, table: Table, document: Document | None, now: int) -> None:
        self.table = table
        self.order = table.order
        self.now = now
        self.draft = Draft(table, document)
        self.steps: list[Step] = []
        self.again = False

    def decision(self, own: Step | None) -> Decision:
        """Close the turn and return its decision."""
        return Decision(
            document=self.draft.close(),
            steps=tuple(self.steps),
            own=own,
            wake_at=self._wake_at(),
            again=self.again,
        )

    def take(self, event: Arrival) -> Step:
        """Hand in one event; then whoever can go on goes on."""
        step = self._take(event)
        self._go_on()
        return step

    def catch_up(self) -> None:
        """End the waits that are over and do what people have said, each at its time."""
        words, self.draft.words = self.draft.words, ()
        for word in words:
            self._lapse(word.at)
            if word.what == "release":
                self.release(word)
            else:
                self._undo(word)
            self._go_on()
        self._lapse(self.now)

    def _lapse(self, until: int) -> None:
        """Apply the table's rule to every wait that is over by then, the earliest first."""
        while (first := self._first_to_lapse()) is not None and self._deadline(first) <= until:
            if self.order.then == "refuse":
                self._refuse(first)
            else:
                self._pass_over(first, f"after {self.order.wait_s:g} s")
            self._go_on()

    def release(self, word: OperatorCommand) -> None:
        """A person's word: go on behind the conflict, or without what is missing."""
        draft, by = self.draft, word.by or None
        if draft.stopped is not None:
            event, draft.stopped = draft.stopped, None
            text = f"{event.id} stays without effect, the document goes on{_said(word.by, word.why)}"
            self._say(event, "no_op", "released", text, by=by)
            self._settle_number(event)
        elif word.upto is not None and draft.next < word.upto:
            self._go_up_to(word.upto, _said(word.by, word.why).lstrip() or "by an operator", by=by)
        else:
            first = draft.waiting[0] if draft.waiting and draft.waiting[0].event.id == word.event else None
            what = (
                "nothing was held any more; released" if first is None else f"{first.event.id} was released"
            )
            self._say(NOBODY, "no_op", "released", f"{what}{_said(word.by, word.why)}", by=by)
            if first is not None:
                self._pass_over(first, "")
        self._go_on()

    def say_granted(self, by: str, why: str) -> Step:
        """The step that says that a token was granted; nothing else happens by that."""
        told = f"a remediation token was granted{_said(by, why)}"
        return self._say(NOBODY, "no_op", "granted", told, by=by or None)

    def _undo(self, word: OperatorCommand) -> None:
        """Take back what an event did that was rejected afterwards, or say why that cannot be."""
        step = word.step
        assert step is not None
        event = Arrival(id=step.event, type=step.type, sequence=step.sequence, party=step.party)
        ruling = undoing(self.draft, step, word.why)
        self._say(event, ruling.verdict, ruling.rule, ruling.reason, ruling=ruling, by=word.by or None)
        if ruling.verdict != "applied":
            return
        if ruling.after is not None:
            self.draft.state = ruling.after
        if ruling.party is not None and step.party is not None:
            self.draft.stand(step.party, ruling.party)
        self.draft.remember(event, number=step.sequence, undone=True)

    # How an event comes in

    def _take(self, event: Arrival) -> Step:
        draft, number = self.draft, event.sequence
        if draft.is_undone(event):
            return self._place(event, again=True)
        if draft.knows(event):
            return self._say(event, "duplicate", "repeat", f"{event.id} was handed in before")
        if self.order.mode == "free" or (
            number is None and (event.flaw is not None or self._is_informational(event))
        ):
            return self._place(event)
        if number is None:
            return self._take_unnumbered(event)
        if number < self.order.first:
            return self._settle(
                event, "conflict", "before_first", f"number {number}; they begin at {self.order.first}"
            )
        if draft.has_number(number):
            return self._settle(event, "conflict", "same_number", f"another event has the number {number}")
        if number < draft.next:
            return self._settle(
                event,
                "stale",
                "settled_number",
                f"number {number} is settled; the document waits for {draft.next}",
            )
        if number - draft.next > self.order.jump:
            return self._say(event, "conflict", "jump", f"number {number}, while {draft.next} comes next")
        if number > draft.next and draft.stopped is None and self._is_granted(event):
            return self._take_before_its_turn(event)
        if number > draft.next or draft.stopped is not None:
            return self._wait(event)
        return self._place(event)

    def _is_granted(self, event: Arrival) -> bool:
        return event.token is not None and token_digest(event.token) in self.draft.grants

    def _take_before_its_turn(self, event: Arrival) -> Step:
        """A granted token lets an event go on without the numbers that are missing before it."""
        assert event.token is not None
        assert event.sequence is not None
        self._go_up_to(event.sequence, "for a remediation token")
        if self.draft.stopped is not None:  # by one of those before it
            return self._wait(event)
        step = self._place(event)
        if self._is_granted(event):  # it was not needed for more
            self.draft.grants.remove(token_digest(event.token))
        return step

    def _take_unnumbered(self, event: Arrival) -> Step:
        if self.order.mode == "strict":
            return self._settle(
                event, "conflict", "no_number", "strict order needs a sequence number, it has none"
            )
        if self.draft.stopped is not None or judge(self.draft, event).ahead:
            return self._wait(event)
        return self._place(event)

    def _wait(self, event: Arrival) -> Step:
        """Keep an early event, or say that there is no room."""
        draft = self.draft
        if len(draft.waiting) >= self.order.count and (
            self.order.then != "skip" or draft.stopped is not None
        ):
            text = f"{len(draft.waiting)} events wait for this document already; hand it in again later"
            self.again = True
            return self._say(event, "early", "line_full", text, waits_for=self._missing(event))
        waiting = Waiting(event, self.now)
        step = self._say(event, "early", *self._why_early(event), waits_for=self._missing(event))
        draft.keep(waiting)
        if len(draft.waiting) > self.order.count:
            self._pass_over(draft.waiting[0], f"as {self.order.count} events wait")
        return step

    def _why_early(self, event: Arrival) -> tuple[str, str]:
        if self.draft.stopped is not None:
            return "stopped", f"the document stands still at {self.draft.stopped.id}"
        if event.sequence is None:
            return "not_yet", judge(self.draft, event).reason
        return "gap", f"number {event.sequence}, while {self.draft.next} is missing"

    def _missing(self, event: Arrival) -> int | None:
        return None if event.sequence is None or self.draft.stopped is not None else self.draft.next

    # How an event has its turn

    def _place(
        self, event: Arrival, *, released: bool = False, leap: bool = False, again: bool = False
    ) -> Step:
        """Judge an event whose turn it is, and do what follows. `again`: its number was settled when it was first here."""
        ruling = judge(self.draft, event, leap=leap)
        stops = (
            self.table.on_conflict == "stop"
            and ruling.verdict == "conflict"
            and self.order.mode != "free"
            and not again
        )
        step = self._say(event, ruling.verdict, ruling.rule, ruling.reason, ruling=ruling, released=released)
        if stops:
            self.draft.stopped = event
            return step
        branch = self._apply(event, ruling) if ruling.verdict == "applied" else None
        if again:
            self.draft.remember(
                event, number=event.sequence, branch=branch, undone=ruling.verdict != "applied"
            )
        else:
            self._settle_number(event, branch=branch)
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
        draft.last = digest_of(event.id)
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

    def _go_on(self) -> None:
        """Let waiting events have their turn as long as one can. Each round takes one out of the line."""
        while self.draft.stopped is None and (one := self._ready()) is not None:
            self.draft.waiting.remove(one)
            self._place(one.event, released=True)

    def _ready(self) -> Waiting | None:
        for one in self.draft.waiting:
            number = one.event.sequence
            if number is not None and number <= self.draft.next:
                return one
            if number is None and not judge(self.draft, one.event).ahead:
                return one
        return None

    # How waiting ends

    def _first_to_lapse(self) -> Waiting | None:
        if self.order.wait_s is None or self.draft.stopped is not None:
            return None
        return min(self.draft.waiting, key=lambda one: one.since, default=None)

    def _deadline(self, waiting: Waiting) -> int:
        return waiting.since + round((self.order.wait_s or 0) * 1000)

    def _wake_at(self) -> int | None:
        first = self._first_to_lapse()
        return None if first is None else self._deadline(first)

    def _refuse(self, waiting: Waiting) -> None:
        self.draft.waiting.remove(waiting)
        missing = self._missing(waiting.event)
        what = f"number {missing}" if missing is not None else "the state it leads from"
        text = f"waited {self.order.wait_s:g} s for {what}; it can be handed in again"
        self._say(waiting.event, "conflict", "waited_too_long", text, waits_for=missing, released=True)

    def _pass_over(self, waiting: Waiting, why: str) -> None:
        """Let one waiting event have its turn, and those before it, without what is missing."""
        draft, number = self.draft, waiting.event.sequence
        if number is None:
            draft.waiting.remove(waiting)
            self._place(waiting.event, released=True, leap=True)
            return
        self._go_up_to(number, why)
        if draft.stopped is None:
            draft.waiting.remove(waiting)
            self._place(waiting.event, released=True)

    def _go_up_to(self, number: int, why: str, *, by: str | None = None) -> None:
        """Give up what is missing before a number; what waits before it has its turn."""
        draft = self.draft
        while draft.stopped is None and draft.next < number:
            first = draft.waiting[0].event.sequence if draft.waiting else None
            if first == draft.next:
                self._place(draft.waiting.pop(0).event, released=True)
            else:
                last = number if first is None else min(first, number)
                self._give_up(draft.next, last - 1, why, by)

    def _give_up(self, first: int, last: int, why: str, by: str | None) -> None:
        numbers = f"number {first}" if first == last else f"numbers {first} to {last}"
        self._say(NOBODY, "no_op", "gave_up", f"{numbers} given up {why}", by=by)
        self.draft.next = last + 1
        self.draft.holes = True

    # What is written down

    def _settle(self, event: Arrival, verdict: Verdict, rule: str, reason: str) -> Step:
        """A verdict for good on an event that takes no number."""
        if verdict == "stale" and self.table.on_stale == "conflict":
            verdict = "conflict"
        step = self._say(event, verdict, rule, reason)
        self.draft.remember(event, number=None)
        return step

    def _settle_number(self, event: Arrival, *, branch: int | None = None) -> None:
        """The event is done with, and so is its number."""
        self.draft.remember(event, number=event.sequence, branch=branch)
        if event.sequence is not None and self.order.mode != "free":
            self.draft.next = event.sequence + 1

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
        )
        self.steps.append(step)
        return step

    def _party_state(self, event: Arrival) -> str | None:
        """The state of a signer of whom nothing is known yet."""
        flow = self.table.party_flow
        return None if flow is None or event.party is None else flow.initial


def _said(by: str, why: str) -> str:
    """Name who gave a command and why, for a sentence."""
    return (f" by {by}" if by else "") + (f": {why}" if why else "")
