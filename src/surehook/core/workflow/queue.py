"""The queue of a document's early events: gaps, bounds, operators' commands, and the events that are remembered.

Every event ends in exactly one of three ways: settled (it has a verdict for good and is remembered), waiting (`early`,
kept in the document), or handed back (not kept and not remembered: it can be handed in again).

An event may leave the queue without its turn (`leave`): its effect could not be made, and it is tried again by itself. What
stands behind it waits for it as for any event that is missing, but from when it should be back; and when it comes back, it has
waited since it first came.
"""

from __future__ import annotations

from msgspec import structs

from surehook.core.workflow.bounds import QueueBounds
from surehook.core.workflow.draft import digest_of, token_digest
from surehook.core.workflow.rules import judge
from surehook.core.workflow.undo import undoing
from surehook.core.workflow.values import (
    Arrival,
    Decision,
    OperatorCommand,
    Retried,
    Seen,
    Step,
    Waiting,
)
from surehook.core.workflow.waits import NOBODY


class Turn(QueueBounds):
    """One decision in the making. The steps come out in the order in which they take effect."""

    def decision(self, own: Step | None) -> Decision:
        """Close the turn and return its decision."""
        return Decision(
            document=self.draft.close(),
            steps=tuple(self.steps),
            own=own,
            wake_at=self.wake_at(),
        )

    def take(self, event: Arrival) -> Step:
        """Hand in one event; then whoever can go on goes on."""
        if self.order.mode == "free":  # the table was changed since: these came before
            self._lift_stop()
            self._go_on()
        step = self._take(event, self.draft.come_back(event))
        self._go_on()
        return step

    def catch_up(self, until: int | None = None) -> None:
        """Let go on what can by now, end the waits that are over by `until` and do what people have said, each at its time."""
        until = self.now if until is None else min(until, self.now)
        words, self.draft.words = self.draft.words, ()
        self._lift_stop()
        self._go_on()  # for whom a token was granted, or that the table of today does not hold
        for word in words:
            self._lapse(min(word.at, until))
            if word.what == "release":
                self.release(word)
            else:
                self._undo(word)
            self._go_on()
        self._lapse(until)

    def _lift_stop(self) -> None:
        """Go on behind a conflict, where the table of today holds nothing up for one."""
        if self.order.mode == "free" and (event := self.draft.go_on()) is not None:
            text = f"{event.id} stays without effect, the document goes on: the table has no order any more"
            self._say(event, "no_op", "released", text)
            self._settle_number(event)

    def _lapse(self, until: int) -> None:
        """Apply the table's rule to every wait that is over by then, the earliest first."""
        while (first := self._first_to_lapse()) is not None:
            ends, waiting = first
            if ends > until:
                return
            if self.order.skips:
                self._pass_over(waiting, self._waited(waiting))
            else:
                self._refuse(waiting)
            self._go_on()

    def release(self, word: OperatorCommand) -> None:
        """A person's word: go on behind the conflict, or without what is missing."""
        draft, by = self.draft, word.by or None
        self._let_go(word)
        if (event := draft.go_on()) is not None:
            text = f"{event.id} stays without effect, the document goes on{_said(word.by, word.why)}"
            self._say(event, "no_op", "released", text, by=by)
            self._settle_number(event)
        elif word.upto is not None and draft.next < word.upto:
            said = _said(word.by, word.why)
            self._go_up_to(word.upto, said.lstrip() or "by an operator", by=by, said_at=word.at)
            if draft.next < word.upto:
                then = "what stands before it is tried again first, and then it may have to be released again"
                text = f"{word.event} was released{said}; {then}"
                self._say(NOBODY, "no_op", "released", text, by=by)
        else:
            first = next((one for one in draft.waiting if _is_of(word, one.event)), None)
            is_retried = any(_is_of(word, one.event) for one in draft.retried)
            what = "nothing was held any more; released"
            if first is not None or is_retried:
                what = f"{word.event} was released"
            self._say(NOBODY, "no_op", "released", f"{what}{_said(word.by, word.why)}", by=by)
            if first is not None:
                self._pass_over(first, "")
        self._go_on()

    def _let_go(self, word: OperatorCommand) -> None:
        """Note that the event of a command need not wait once more, if it is tried again by itself."""
        self.draft.retried = [
            structs.replace(one, released=True, passed=0, said_at=word.at) if _is_of(word, one.event) else one
            for one in self.draft.retried
        ]

    def say_granted(self, by: str, why: str) -> Step:
        """The step that says that a token was granted; nothing else happens by that."""
        told = f"a remediation token was granted{_said(by, why)}"
        return self._say(NOBODY, "no_op", "granted", told, by=by or None)

    def _undo(self, word: OperatorCommand) -> None:
        """Take back what an event did that was rejected afterwards, or say why that cannot be."""
        step = word.step
        assert step is not None
        event = Arrival(
            id=step.event, type=step.type, sequence=step.sequence, party=step.party, source=step.source
        )
        ruling = undoing(self.draft, step, word.why)
        self._say(event, ruling.verdict, ruling.rule, ruling.reason, ruling=ruling, by=word.by or None)
        if ruling.verdict != "applied":
            return
        draft = self.draft
        if draft.last == digest_of(step.event, step.source):  # nothing was built on it
            draft.holes = draft.holes or step.rule == "leap"
            draft.version = draft.version if step.version is None else step.version_before
        if ruling.after is not None:
            draft.state = ruling.after
        if ruling.party is not None and step.party is not None:
            draft.stand(step.party, ruling.party, version=step.party_version_before)
        draft.remember(event, number=step.sequence, undone=True)

    def is_waited_for(self, event: Arrival) -> bool:
        """Tell whether others wait until this event, which came and is handed in again, has had its turn."""
        number, draft = event.sequence, self.draft
        seen = draft.seen_of(event)
        if (
            self.order.mode == "free"
            or draft.holds(event)
            or (seen is not None and not self._counts_anew(seen, event))
        ):
            return False
        if number is None:
            return event.flaw is None and not self._is_informational(event)
        return draft.next <= number <= draft.next + self.order.jump and not self._has_number(number)

    def may_come_first(self, event: Arrival) -> bool:
        """Tell whether an event that is not in the document may have its turn before one that waits there, or as that waits no
        more. Where all have numbers, and it no token, there is room for it, so it has to be asked about once."""
        number, draft = event.sequence, self.draft
        if event.token is not None:
            return number is None or draft.next <= number
        unnumbered = [one.since for one in draft.waiting if one.event.sequence is None]
        if number is None:
            known = next((one for one in draft.retried if one.event.is_same(event)), None)
            waited = known is not None and (
                known.released or any(known.since < since for since in unnumbered)
            )
            return waited or len(draft.waiting) < self.order.count or not judge(draft, event).ahead
        ends = [draft.next, *(word.upto for word in draft.words if word.upto is not None)]
        ends += [one.event.sequence for one in draft.waiting if one.event.sequence is not None]
        return draft.next <= number and (number <= max(ends) or bool(unnumbered))

    # How an event comes in

    def _take(self, event: Arrival, was: Retried | None) -> Step:
        """`was`: what was kept of it, where it had waited and was tried again by itself."""
        draft, number, released = self.draft, event.sequence, was is not None and was.has_waited
        seen = draft.seen_of(event)
        if seen is not None and not self._counts_anew(seen, event):
            return self._place_again(event) if seen.undone else self._say_repeat(event)
        if draft.holds(event) and not self._is_conflict_no_more(event):
            return self._say_repeat(event)
        if self.order.mode == "free" and was is None and draft.waiting:  # by another table: they came before
            return self._wait(Waiting(event, self._arrival()), was)
        if self.order.mode == "free" or (
            number is None and (event.flaw is not None or self._is_informational(event))
        ):
            return self._place(event, released=released)
        if number is None:
            return self._take_unnumbered(event, was)
        if number < self.order.first:
            return self._settle(
                event, "conflict", "before_first", f"number {number}; they begin at {self.order.first}"
            )
        if self._has_number(number):
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
        if number > draft.next or draft.stopped is not None:
            return self._take_before_its_turn(event, was)
        return self._place(event, released=released)

    def _say_repeat(self, event: Arrival) -> Step:
        return self._say(event, "duplicate", "repeat", f"{event.id} was handed in before")

    def _counts_anew(self, seen: Seen, event: Arrival) -> bool:
        """Tell whether a remembered event that was without effect and took no number has its turn by the number it has now."""
        took_none = seen.undone and seen.sequence is None
        return took_none and (event.sequence is not None or self.order.mode == "strict")

    def _is_conflict_no_more(self, event: Arrival) -> bool:
        """Tell whether the document stands still at an event that can take effect by now. Then it stands still no more."""
        stopped = self.draft.stopped
        if stopped is None or not stopped.is_same(event):
            return False
        if judge(self.draft, event).verdict not in ("applied", "informational"):
            return False
        self.draft.go_on()
        return True

    def _place_again(self, event: Arrival) -> Step:
        """Decide anew on an event that is without effect. Its number is settled: it cannot wait for its turn."""
        if self.draft.stopped is not None:
            text = f"the document stands still at {self.draft.stopped.id}: release it, and replay {event.id} then"
            return self._say(event, "conflict", "stopped", text)
        return self._place(event, again=True)

    def _take_before_its_turn(self, event: Arrival, was: Retried | None) -> Step:
        """Numbers before it are missing: it waits, unless a granted token lets it go on without them, or it has waited enough."""
        since = was.since if was is not None and self.order.skips else self.now
        early = Waiting(event, since)
        is_granted = self._is_granted(event)
        if self.draft.stopped is None and (is_granted or (was is not None and self._has_waited(early, was))):
            assert event.sequence is not None
            why = "for a remediation token" if is_granted else self._waited(early)
            self._go_up_to(event.sequence, why, said_at=0 if was is None else was.said_at)
            # Not where one of those before it stops the document, or is expected.
            if self.draft.stopped is None and self.draft.next >= event.sequence:
                return self._place_by_token(event, released=was is not None and was.has_waited)
        return self._wait(early, was)

    def _place_by_token(self, event: Arrival, *, released: bool) -> Step:
        step = self._place(event, released=released)
        if event.token is not None and self._is_granted(event):  # it was not needed for more
            self.draft.grants.remove(token_digest(event.token))
        return step

    def _take_unnumbered(self, event: Arrival, was: Retried | None) -> Step:
        if self.order.mode == "strict":
            return self._settle(
                event, "conflict", "no_number", "strict order needs a sequence number, it has none"
            )
        early = Waiting(event, was.since if was is not None and self.order.skips else self._arrival())
        if self.draft.stopped is not None or judge(self.draft, event).ahead:
            if self.draft.stopped is None and was is not None and self._has_waited(early, was):
                return self._place(event, released=True, leap=True)
            return self._wait(early, was)
        return self._place(event, released=was is not None and was.has_waited)

    def _arrival(self) -> int:
        """Now, or as soon after as no other came: by these instants they are ordered, where they have no numbers."""
        others = {*(one.since for one in self.draft.waiting), *(one.since for one in self.draft.retried)}
        at = self.now
        while at in others:
            at += 1
        return at

    # How waiting ones go on

    def _go_on(self) -> None:
        """Let waiting events have their turn as long as one can. Each round takes one out of the line, or stops the document."""
        while self.draft.stopped is None and (one := self._ready()) is not None:
            number = one.event.sequence
            if number is not None and self.order.mode != "free" and number > self.draft.next:
                self._go_up_to(number, "for a remediation token")
                if self.draft.stopped is not None:
                    return
            self.draft.waiting.remove(one)
            self._place_by_token(one.event, released=True)

    def _ready(self) -> Waiting | None:
        for one in self.draft.waiting:
            if (at := self._turn_at(one)) is not None and at <= self.now:
                return one
            if self.order.mode == "free":  # the table was changed since: they go on as they came
                return None
        return None


def lets_go(word: OperatorCommand, event: Arrival) -> bool:
    """Tell whether a release lets an event go on: it was said of that, or of one with a higher number."""
    upto, number = word.upto, event.sequence
    return word.what == "release" and (
        _is_of(word, event) or (upto is not None and number is not None and number <= upto)
    )


def _is_of(word: OperatorCommand, event: Arrival) -> bool:
    return word.event is not None and event.is_same(Arrival(id=word.event, type="", source=word.source))


def _said(by: str, why: str) -> str:
    """Name who gave a command and why, for a sentence."""
    return (f" by {by}" if by else "") + (f": {why}" if why else "")
