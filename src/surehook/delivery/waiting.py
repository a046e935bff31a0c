"""Requests that wait for their commit, and the events that they consist of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

from msgspec import Struct

from surehook.core.envelope import EventIn
from surehook.core.errors import (
    CommitUnknown,
    LedgerBroken,
    LedgerError,
    LedgerFull,
    LedgerUnavailable,
    Overloaded,
    Problem,
)
from surehook.delivery.admission import EVENT_BYTES
from surehook.delivery.endpoint_state import EndpointState
from surehook.ports.ledger import Incoming, Taken


class PublishRequest(Struct, gc=False):
    """One call: an answer for each event, and the future that hears of all of them."""

    answers: list[Taken | Problem | None]
    left: int  # events without an answer
    done: asyncio.Future[list[Taken | Problem]]
    error: LedgerUnavailable | Overloaded | None = None  # that struck one of them: the others are not begun

    @property
    def goes_on(self) -> bool:
        """Tell whether somebody waits for what is left. Nobody does whose client has hung up."""
        return self.error is None and not self.done.done()

    def refuse(self, error: LedgerUnavailable | Overloaded) -> None:
        """An event was not written. Of several errors, one that leaves a doubt is the one to be told."""
        if self.error is None or isinstance(error, CommitUnknown):
            self.error = error


class WaitingEvents(Struct, gc=False):
    """Events in the line, and what was made of them for the flush under way. They follow one another in a request, are
    of one tenant and cost the same, so that turns and bounds go by numbers; a flush may take the first of them alone.
    """

    request: PublishRequest
    place: int  # of the first one in the request
    events: Sequence[EventIn]
    keys: Sequence[str | None]
    version: int  # of the configuration by which they were judged and fan out
    fan_out: int  # deliveries of each, to be expected, as they count in the line
    size: int  # bytes of all, as they count in the line
    # For each event, what is to be written or why it is not taken (it was judged anew), and its routes.
    made: list[Incoming | Problem] = []
    routes: list[Sequence[EndpointState]] = []
    handed: int = 0  # of `made`: those that are not ours to give back any more
    in_doubt: bool = False  # a commit of it was lost, and may be in the ledger

    @property
    def tenant(self) -> str:
        return self.events[0].tenant

    @property
    def cost(self) -> int:
        """Of each: about 10 µs of writing, for its row, for each delivery and for each KiB."""
        return 1 + self.fan_out + (_size(self.events[0]) >> 10)

    @property
    def deliveries(self) -> int:
        return self.fan_out * len(self.events)

    @property
    def is_answered(self) -> bool:
        return self.request.answers[self.place] is not None

    def cut(self, count: int) -> WaitingEvents:
        """The first so many events, which leave here."""
        events, keys = self.events[:count], self.keys[:count]
        size = sum([_size(event) for event in events])
        first = WaitingEvents(self.request, self.place, events, keys, self.version, self.fan_out, size)
        self.place += count
        self.events, self.keys = self.events[count:], self.keys[count:]
        self.size -= size
        return first

    def answer(self, answers: Sequence[Taken | Problem]) -> None:
        """With the answer to its last event, a request has its own: an error where nothing of it was taken."""
        request = self.request
        request.answers[self.place : self.place + len(answers)] = answers
        request.left -= len(answers)
        if request.left or request.done.done():
            return
        told = cast("list[Taken | Problem]", request.answers)
        if request.error is not None and not any(isinstance(each, Taken) for each in told):
            request.done.set_exception(request.error)
        else:
            request.done.set_result(told)

    def refuse(self, error: LedgerUnavailable | Overloaded) -> None:
        """Not to be written (any more)."""
        if self.in_doubt and not isinstance(error, CommitUnknown):
            error = CommitUnknown(str(error))
        self.request.refuse(error)
        self.answer([as_problem(error)] * len(self.events))


def line_up(
    request: PublishRequest,
    events: Sequence[EventIn],
    keys: Sequence[str | None],
    *,
    version: int,
    fan_out: Callable[[str, str], Sequence[EndpointState]],
) -> list[WaitingEvents]:
    """A request's events as they will stand in the line. `fan_out`: the routes for a tenant's event of a type."""
    line: list[WaitingEvents] = []
    tenant = event_type = ""
    start = size = count = kib = 0
    for place, event in enumerate(events):
        before = tenant, count, kib
        if event.type != event_type or event.tenant != tenant:
            tenant, event_type = event.tenant, event.type
            count = len(fan_out(tenant, event_type))
        weight = _size(event)
        kib = weight >> 10
        if place and before != (tenant, count, kib):
            line.append(
                WaitingEvents(
                    request, start, events[start:place], keys[start:place], version, before[1], size
                )
            )
            start, size = place, 0
        size += weight
    line.append(WaitingEvents(request, start, events[start:], keys[start:], version, count, size))
    return line


def as_problem(error: Overloaded | LedgerError) -> Problem:
    """Why events were not taken, or may not have been, in words for their publisher."""
    if isinstance(error, Overloaded):
        return Problem(error.code, error.detail, status=error.status)
    if isinstance(error, LedgerFull):
        hint = "free some space on the ledger's disk, then publish it again"
        return Problem("disk_full", "not accepted: there is too little free disk", hint=hint, status=503)
    if isinstance(error, CommitUnknown | LedgerBroken):
        return Problem(
            "outcome_unknown",
            "the ledger went away while this was written: nobody knows whether it was accepted",
            hint="publish it again with the same id or idempotency key: what was accepted is not accepted twice",
            status=503,
        )
    return Problem(
        "ledger_unavailable", "not accepted: the ledger is away", hint="publish it again", status=503
    )


def _size(event: EventIn) -> int:
    return len(event.data) + EVENT_BYTES
