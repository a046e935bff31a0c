"""The waits of a document's early events: how long each lasts, and what becomes of the event as it ends."""

from __future__ import annotations

from collections.abc import Iterator

from surehook.core.workflow.draft import token_digest
from surehook.core.workflow.placing import Placing
from surehook.core.workflow.rules import judge
from surehook.core.workflow.table_values import STRICT_WAIT_S
from surehook.core.workflow.values import Arrival, Retried, Waiting

NOBODY = Arrival(id="", type="")  # of steps that no event made


class QueueWaits(Placing):
    """The events that wait, the ends of their waits, and what is given up for them then."""

    def _missing(self, event: Arrival) -> int | None:
        return None if event.sequence is None or self.draft.stopped is not None else self.draft.next

    def _first_to_lapse(self) -> tuple[int, Waiting] | None:
        """The wait that ends first, with the instant."""
        if self.order.wait_s is None or self.draft.stopped is not None:
            return None
        return min(self._deadlines(), key=lambda one: one[0], default=None)

    def _deadlines(self) -> Iterator[tuple[int, Waiting]]:
        """The end of each wait. Also what is tried again by itself is waited for, since it left; and what those wait for that
        would have their turn with it, as they have lower numbers. Beside others that are tried again, it is not let go once more
        before it has waited once more."""
        wait_ms, before = self._wait_ms(), 0
        for one in self.draft.waiting:  # the lowest number comes first
            ends = one.since + wait_ms
            if self.draft.retried:
                held = max(one.until, *(self._missing_at(other) for other in self._before(one)), 0)
                if one.event.sequence is not None:
                    before = held = max(before, held)
                ends = max(ends, held)
            yield ends, one

    def _missing_at(self, one: Retried) -> int:
        """The instant from which nobody waits for it any more."""
        return one.back_at + self._wait_ms()

    def _is_expected(self, one: Retried) -> bool:
        return self._missing_at(one) > self.now

    def _has_number(self, number: int) -> bool:
        """Tell whether another event has this number, or had it and is expected back."""
        return self.draft.has_number(number) or any(
            one.event.sequence == number and self._is_expected(one) for one in self.draft.retried
        )

    def _wait_ms(self) -> int:
        if self.order.mode == "free":  # the table was changed since: it follows what left before it, no more
            return 0
        return round((STRICT_WAIT_S if self.order.wait_s is None else self.order.wait_s) * 1000)

    def _before(self, waiting: Waiting) -> Iterator[Retried]:
        """Those that are tried again by themselves and have their turn before it: by number, else by arrival or as the table has
        a move for them now."""
        number = waiting.event.sequence
        for one in self.draft.retried:
            theirs = one.event.sequence
            if number is not None and theirs is not None:
                is_before = theirs < number
            else:
                has_move = theirs is None and not judge(self.draft, one.event).ahead
                is_before = has_move or (one.since < waiting.since and not one.line_full)
            if is_before:
                yield one

    def _held_up_until(self, waiting: Waiting) -> int:
        """The instant until which it waits for those that are tried again and have their turn before it; 0 if for none."""
        return max(map(self._missing_at, self._before(waiting)), default=0)

    def _turn_at(self, waiting: Waiting) -> int | None:
        """The instant from which it can have its turn as things are; None: another event, or the end of its wait, lets it."""
        number = waiting.event.sequence
        if self.order.mode == "free":  # the table was changed since
            return self._held_up_until(waiting)
        if number is not None:
            if number <= self.draft.next:
                return 0
            return self._held_up_until(waiting) if self._is_granted(waiting.event) else None
        if judge(self.draft, waiting.event).ahead:
            return None
        # It was let go where it has an `until`, and waits once more for others that are tried again: without that it would leave
        # once more as soon as the table had a move for it, and come back to wait for them.
        return min(waiting.until, self._held_up_until(waiting)) if waiting.until else 0

    def _is_granted(self, event: Arrival) -> bool:
        return event.token is not None and token_digest(event.token) in self.draft.grants

    def _has_waited(self, waiting: Waiting, was: Retried) -> bool:
        """Tell whether it need not wait once more. By itself it ends no wait, however long that was: another event that came in
        time may still be on its way, which only a call that lets time pass knows. So what that still waited for is waited for."""
        return was.released and self._held_until(waiting, was) == 0

    def _held_until(self, waiting: Waiting, was: Retried) -> int:
        """The instant until which it waits for what has its turn before it, though its own wait is over; 0 if for nothing."""
        passed = was.passed or self.now
        before = self._before(Waiting(waiting.event, was.since))
        ends = (self._missing_at(one) for one in before if one.line_full or one.at >= was.said_at)
        return max((at for at in ends if at > passed), default=0)

    def _waited(self, waiting: Waiting) -> str:
        """Say for how long an event had to wait, or that it had not: a person let it go, and it is tried again since."""
        if self.order.wait_s is None or self.now < waiting.since + self._wait_ms():
            return "as it was released"
        return f"after {self.order.wait_s:g} s"

    def wake_at(self) -> int | None:
        """The instant at which the first command, or the first end of a wait, is due."""
        if self.draft.words:
            return self.draft.words[0].at
        if not self.draft.waiting:
            return None
        instants = [*self._turns()]
        if (first := self._first_to_lapse()) is not None:
            instants.append(first[0])
        return min(instants, default=None)

    def _turns(self) -> Iterator[int]:
        """The instants at which waiting ones can have their turn, since what they waited for comes no more."""
        # The table was changed since: they go on as they came, and nothing stops them.
        is_free = self.order.mode == "free"
        if self.draft.stopped is None or is_free:
            for one in self.draft.waiting[: 1 if is_free else None]:
                if (at := self._turn_at(one)) is not None:
                    yield max(at, one.since)

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

    def _go_up_to(self, number: int, why: str, *, by: str | None = None, said_at: int = 0) -> None:
        """Give up what is missing before a number; what waits before it has its turn, and what is tried again by itself is waited
        for. `said_at`: a person said so then, who knew of what had left before."""
        draft = self.draft
        number = min((number, *self._waited_for(said_at)))
        while draft.stopped is None and draft.next < number:
            first = draft.waiting[0].event.sequence if draft.waiting else None
            if first == draft.next:
                self._place(draft.waiting.pop(0).event, released=True)
            else:
                last = number if first is None else min(first, number)
                self._give_up(draft.next, last - 1, why, by)

    def _waited_for(self, said_at: int) -> Iterator[int]:
        for one in self.draft.retried:
            number = one.event.sequence
            if number is not None and (one.line_full or one.at >= said_at) and self._is_expected(one):
                yield number

    def _give_up(self, first: int, last: int, why: str, by: str | None) -> None:
        numbers = f"number {first}" if first == last else f"numbers {first} to {last}"
        self._say(NOBODY, "no_op", "gave_up", f"{numbers} given up {why}", by=by)
        self.draft.next = last + 1
        self.draft.holes = True
        self.draft.retried = [
            one for one in self.draft.retried if not first <= (one.event.sequence or 0) <= last
        ]
