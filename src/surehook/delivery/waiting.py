"""What waits for its commit: requests, and the events that they consist of."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

from msgspec import Struct

from surehook.core.envelope import EventIn
from surehook.core.errors import LedgerFull, LedgerUnavailable, Overloaded, Problem
from surehook.delivery.routes import Route
from surehook.ports.ledger import Incoming, Taken


class Request(Struct, gc=False):
    """What was asked for in one call: an answer for each event, and the future that hears of all of them."""

    answers: list[Taken | Problem | None]
    left: int  # events without an answer
    done: asyncio.Future[list[Taken | Problem]]
    error: LedgerUnavailable | Overloaded | None = None  # that struck one of them: the others are not begun

    @property
    def goes_on(self) -> bool:
        """Whether somebody waits for what is left. Nobody does whose client has hung up."""
        return self.error is None and not self.done.done()


class Waiting(Struct, gc=False):
    """One event in the line, and what was made of it for the flush under way."""

    request: Request
    place: int  # in the request
    event: EventIn
    key: str | None
    version: int  # of the configuration by which it was judged and fans out
    deliveries: int  # to be expected, as it counts in the line
    size: int  # bytes, as they count in the line
    incoming: Incoming | None = None
    routes: Sequence[Route] = ()  # of its deliveries
    refused: Problem | None = None  # it was judged anew, and is not taken

    @property
    def is_answered(self) -> bool:
        return self.request.answers[self.place] is not None

    def answer(self, answer: Taken | Problem) -> None:
        """With the answer to its last event, a request has its own: an error where nothing of it was taken."""
        request = self.request
        request.answers[self.place] = answer
        request.left -= 1
        if request.left or request.done.done():
            return
        answers = cast("list[Taken | Problem]", request.answers)
        if request.error is not None and not any(isinstance(each, Taken) for each in answers):
            request.done.set_exception(request.error)
        else:
            request.done.set_result(answers)

    def refuse(self, error: LedgerUnavailable | Overloaded) -> None:
        if self.request.error is None:
            self.request.error = error
        self.answer(as_problem(error))


def as_problem(error: Overloaded | LedgerUnavailable) -> Problem:
    """What strikes some events of a request, as their entry in the answer."""
    if isinstance(error, Overloaded):
        return Problem(error.code, error.detail, status=error.status)
    if isinstance(error, LedgerFull):
        return Problem("disk_full", "there is too little free disk", status=503)
    return Problem("ledger_unavailable", "publish it again", status=503)
