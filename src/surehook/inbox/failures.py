"""Failures of handlers, reported after the commit that recorded them: a warning each, with its traceback; the last an error.

Bounded: ten lines a second, and then how many more there were. The hooks of `on_dead` hear of every event that was given up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from msgspec import Struct, structs

from surehook.core import ids, instants
from surehook.inbox.event import PREFIX
from surehook.inbox.handler_errors import HookCalls
from surehook.inbox.log_limits import LinesPerSecond, log_text
from surehook.inbox.quoting import quoted
from surehook.inbox.safe_log import log
from surehook.ports.inbox import Settlement
from surehook.ports.inbox_runs import Run

WHAT_CHARS = 200  # of an error, in the first line of its failure; the traceback has the rest
LINES_S = 10  # a second: a handler that fails for every event would fill a disk
# Put off, and no failure of the event's own.
SAID = frozenset({"later", "line_full", "turn_came", "undo_failed"})


class Failure(Struct, frozen=True, kw_only=True):
    """An attempt that failed.

    ref, event_id  the event's name here (`inb_…`), and the sender's
    attempt        its number, from 1 on
    code           `handler_failed`, `handler_timeout`, `commit_failed`, `unreadable`, `workflow_error`, `attempts_exhausted`;
                   `undo_failed`: a function of `on_undo`, for an event that was rejected
    error          the traceback, or what is known
    again_at       when it is tried again, RFC 3339; None: it was given up (`dead`)
    """

    ref: str
    source: str
    tenant: str
    event_id: str
    type: str | None
    attempt: int
    replay: int
    code: str
    error: str
    handler: str | None
    handler_version: str | None
    correlation_id: str | None
    again_at: str | None


Hook = Callable[[Failure], object]


class Failures:
    """The hooks for dead events. A hook that fails is logged, and affects nothing else."""

    def __init__(self, boot: Callable[[], float]) -> None:
        self._lines = LinesPerSecond(boot, LINES_S)
        self._calls = HookCalls(boot)
        self._hooks: list[Hook] = []
        self._dead: list[Hook] = []

    def each(self, hook: Hook) -> None:
        """Add a hook for every failure."""
        self._hooks.append(hook)

    def dead(self, hook: Hook) -> None:
        """Add a hook for every event that is given up."""
        self._dead.append(hook)

    def report(self, run: Run, ended: Settlement) -> None:
        """Log one run and call the hooks, if it failed."""
        if ended.state == "dead" or (ended.state == "accepted" and ended.error_code not in SAID):
            self._tell(_failure(run, ended), _what(ended))

    def not_undone(self, run: Run, ended: Settlement) -> None:
        """Log that a move could not be undone; its document waits for that."""
        self._tell(_failure(run, ended), _what(ended))

    def _tell(self, one: Failure, what: str) -> None:
        given_up = one.again_at is None
        left_out = self._lines.may()
        if left_out is not None:
            shown = structs.replace(one, error=log_text(one.error))
            log.log(
                logging.ERROR if given_up else logging.WARNING,
                "%s %s of %s: attempt %d failed (%s), %s%s%s%s",
                one.ref,
                quoted(one.type or "an event without a type"),
                one.source,
                one.attempt,
                one.code,
                "it is given up: replay it once the cause is mended"
                if given_up
                else f"again at {one.again_at}",
                f"; {left_out} failures before it were not written" if left_out else "",
                f"; {what}" if what else "",
                # A sentence without a traceback is not said twice.
                f"\n{shown.error}" if shown.error and not what.endswith(shown.error) else "",
                extra={name: getattr(shown, name) for name in Failure.__struct_fields__},
            )
        for hook in (*self._hooks, *(self._dead if given_up else ())):
            self._calls.call(hook, one, "a hook")

    def say_left_out(self, *, at_end: bool = False) -> None:
        """Log how many failures were not, where no further one did."""
        if left_out := self._lines.rest(at_end=at_end):
            log.warning(
                "%d further failures were not written: their events have them (surehook inbox list)", left_out
            )


def _what(ended: Settlement) -> str:
    """Name the handler that failed, or all where nobody knows which, and say the first line of its error."""
    if (tried := ended.tried) is None:
        return ended.handler or ""
    message = tried.message or ""
    lines = message.strip().splitlines() or [""]
    said = lines[0] if len(lines[0]) <= WHAT_CHARS else f"{lines[0][:WHAT_CHARS]}…"
    handler = tried.handler if tried.handler is None or not message.startswith(tried.handler) else None
    return ": ".join(one for one in (handler, tried.name, log_text(said)) if one)


def _failure(run: Run, ended: Settlement) -> Failure:
    return Failure(
        ref=ids.text(PREFIX, run.event),
        source=run.source,
        tenant=run.tenant,
        event_id=run.event_id,
        type=run.type,
        attempt=ended.attempts,
        replay=run.number,
        code=ended.error_code or "",
        error=ended.error or "",
        handler=ended.handler,
        handler_version=ended.handler_version,
        correlation_id=run.correlation_id,
        again_at=instants.render_optional(ended.due_at),
    )
