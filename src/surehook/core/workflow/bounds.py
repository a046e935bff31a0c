"""The bounds of a document's line: which events stand in it, where there is no room for all, and which are handed back.

A document is stored with the events that wait for it, so they are bounded. The lowest numbers stand in the line, since they have
their turn first; an event that comes before the last of them takes its place. Who is handed back comes again by itself, and its
number is kept in mind until then: what has come is never given up, by a wait that is over or by a person, for want of room.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from surehook.core.workflow.rules import judge
from surehook.core.workflow.table_values import Order
from surehook.core.workflow.undo_attempts import is_to_be_undone
from surehook.core.workflow.values import Arrival, Document, Retried, Step, Waiting
from surehook.core.workflow.waits import QueueWaits

KEPT = 2  # events that are tried again by themselves and kept in mind, for each that may wait


class QueueBounds(QueueWaits):
    """A document's line within its bounds."""

    def _wait(self, waiting: Waiting, was: Retried | None) -> Step:
        """Keep an early event, or hand it back if there is no room. `was`: what was kept of it."""
        draft = self.draft
        if len(draft.waiting) >= self.order.count:
            last = self._highest()
            if last is None or not _comes_before(waiting.event, last.event):
                return self._hand_back(waiting, was)
            draft.waiting.remove(last)
            self._hand_back(last, None, has_stood=True)
        if was is not None and was.released:
            until = min(self._held_until(waiting, was), self.now + self._wait_ms())
            waiting = structs.replace(waiting, until=until)
        missing = self._missing(waiting.event)
        step = self._say(waiting.event, "early", *self._why_early(waiting.event), waits_for=missing)
        draft.keep(waiting)
        return step

    def _highest(self) -> Waiting | None:
        numbered = (one for one in self.draft.waiting if one.event.sequence is not None)
        return max(numbered, key=lambda one: one.event.sequence or 0, default=None)

    def _hand_back(self, waiting: Waiting, was: Retried | None, *, has_stood: bool = False) -> Step:
        """Say that there is no room. `was`: what was kept of it. `has_stood`: it stood in the line so far."""
        event, now = waiting.event, self.now
        text = f"{self.order.count} events wait for this document already"
        if event.sequence is not None:
            known = was or Retried(event, waiting.since, now, now)
            since, back_at = waiting.since, now + self.order.again_ms
            one = structs.replace(known, since=since, at=now, back_at=back_at, line_full=True)
            self.draft.retried[:] = kept_in_mind(self.order, self.draft.retried, one)
        missing = self._missing(event)
        return self._say(event, "early", "line_full", text, waits_for=missing, released=has_stood)

    def _why_early(self, event: Arrival) -> tuple[str, str]:
        if self.order.mode == "free":
            return "not_yet", "others that came before it wait still"
        if self.draft.stopped is not None:
            return "stopped", f"the document stands still at {self.draft.stopped.id}"
        if event.sequence is None:
            return "not_yet", judge(self.draft, event).reason
        return "gap", f"number {event.sequence}, while {self.draft.next} is missing"


def kept_in_mind(order: Order, retried: Iterable[Retried], one: Retried) -> list[Retried]:
    """Add one to those that are tried again by themselves, and forget the last of too many."""
    kept = sorted((*retried, one), key=_turn)  # those that others wait for longest come first
    numbered = [other for other in kept if other.event.sequence is not None]
    return numbered[: KEPT * order.count] + kept[len(numbered) :][: KEPT * order.count]


def fitting(order: Order, document: Document) -> list[Arrival]:
    """List the events that were handed back and for which there is room by now, the lowest numbers first."""
    back = [one.event for one in document.retried if one.line_full]
    if not back or is_to_be_undone(document):  # that comes first
        return []
    standing = [one.event for one in document.waiting if one.event.sequence is not None]
    places = max(0, order.count - (len(document.waiting) - len(standing)))
    return [one for one in sorted((*standing, *back), key=_number)[:places] if one in back]


def _comes_before(event: Arrival, other: Arrival) -> bool:
    return event.sequence is not None and other.sequence is not None and event.sequence < other.sequence


def _turn(one: Retried) -> tuple[bool, int, int]:
    return (*_number(one.event), one.since)


def _number(event: Arrival) -> tuple[bool, int]:
    return event.sequence is None, event.sequence or 0
