"""Changes of state, reported after their commit: one structured log line each, and a call of whoever observes.

    document.moved   a decision about a document, at info: its verdict says whether it moved or was, say, a `no_op`
    event.decided    somebody said `finalize` or `reject` of a processed event, at info
    event.ended      how a run of an event ended, at debug: they come by the thousand, and the rows say the same

The logger is `surehook.inbox.transitions`. The message is `name key=value …`, for people and grep; the same values are
attributes of the record (`extra`), for formatters that write JSON. Nothing is built for a line that nobody will see.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from typing import Literal

from msgspec import Struct

from surehook.core import ids
from surehook.inbox.batch_results import BatchResult
from surehook.inbox.event import PREFIX
from surehook.inbox.handler_errors import HookCalls
from surehook.inbox.quoting import quoted
from surehook.inbox.safe_log import SafeLogger
from surehook.ports.inbox import Entry, Settlement, pairs
from surehook.ports.inbox_runs import Run

log = SafeLogger(logging.getLogger("surehook.inbox.transitions"))
_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)


class Transition(Struct, frozen=True, kw_only=True):
    """One committed change of state, or a decision that changed nothing.

    kind             `document.moved`, `event.ended`, `event.decided`
    before, after    state of the document, or of the run; equal where nothing moved
    verdict, rule    of a decision about a document: `applied` is a move, `no_op` and its like are none
    ref, event_id    the event's name here (`inb_…`), and the sender's; empty where only time passed
    correlation_id   by which a document is followed through systems, where the source says where it stands
    replay           0 for the event's own arrival; the number of the replay otherwise
    code             why an event was refused, ignored, given up or put off
    received_at      when the event came, Unix milliseconds
    traceparent      the header of this name that it came with (W3C Trace Context); by the sender's word, and not signed
    at               when it was decided, Unix milliseconds
    """

    kind: Literal["document.moved", "event.ended", "event.decided"]
    before: str
    after: str
    source: str
    tenant: str
    event_id: str
    ref: str
    correlation_id: str | None = None
    event_type: str | None = None
    document_type: str | None = None
    document: str | None = None
    party: str | None = None
    verdict: str | None = None
    rule: str | None = None
    attempt: int | None = None
    replay: int | None = None
    handler: str | None = None
    handler_version: str | None = None
    code: str | None = None
    received_at: int | None = None
    traceparent: str | None = None
    at: int = 0

    @property
    def is_move(self) -> bool:
        return self.before != self.after or self.verdict == "applied"


Observer = Callable[[Transition], object]


class Transitions:
    """The observers of committed transitions. One that fails is logged, and affects nothing else."""

    def __init__(self, boot: Callable[[], float]) -> None:
        self._calls = HookCalls(boot)
        self._observers: list[Observer] = []

    def observe(self, observer: Observer) -> None:
        self._observers.append(observer)

    def report(self, done: BatchResult) -> None:
        """Report one committed batch."""
        watched = bool(self._observers)
        if watched or log.isEnabledFor(logging.INFO):
            self._tell(_documents(done), logging.INFO)
        if watched or log.isEnabledFor(logging.DEBUG):
            self._tell(_events(done), logging.DEBUG)

    def decided(self, entry: Entry, now: int) -> None:
        """Report a `finalize` or `reject`."""
        self._tell([_word(entry, now)], logging.INFO)

    def _tell(self, transitions: Iterable[Transition], level: int) -> None:
        loud = log.isEnabledFor(level)
        for one in transitions:
            if loud:
                log.log(level, "%s", line(one), extra=_fields(one))
            for observer in self._observers:
                self._calls.call(observer, one, "an observer")


def line(one: Transition) -> str:
    """`document.moved before=sent after=viewed …`; what is not plain is a JSON string."""
    return " ".join(
        [
            one.kind,
            *(f"{name}={quoted(value)}" for name, value in _fields(one).items() if name != "kind"),
        ]
    )


def _fields(one: Transition) -> dict[str, object]:
    values = {name: getattr(one, name) for name in Transition.__struct_fields__}
    return {name: value for name, value in values.items() if value is not None}


def _documents(done: BatchResult) -> Iterable[Transition]:
    for (document_type, tenant, document), step, run, undone in done.decided:
        named = run or undone
        yield Transition(
            kind="document.moved",
            before=step.before,
            after=step.after,
            source=step.source if named is None else named.source,
            tenant=tenant,
            event_id=step.event,
            ref="" if named is None else ids.text(PREFIX, named.event),
            correlation_id=None if named is None else named.correlation_id,
            event_type=step.type or None,
            document_type=document_type,
            document=document,
            party=step.party,
            verdict=step.verdict,
            rule=step.rule,
            attempt=None if run is None else run.attempts,
            replay=None if run is None else run.number,
            received_at=None if run is None else run.received_at,
            traceparent=None if run is None else _traceparent(run),
            at=step.at,
        )


def _events(done: BatchResult) -> Iterable[Transition]:
    for run, ended in done.settlements:
        yield _event(run, ended, "held" if run.id in done.released else "accepted", done.at)


def _word(entry: Entry, now: int) -> Transition:
    return Transition(
        kind="event.decided",
        before="processed",
        after=entry.state,
        source=entry.source,
        tenant=entry.tenant,
        event_id=entry.event_id,
        ref=ids.text(PREFIX, entry.id),
        correlation_id=entry.correlation_id,
        event_type=entry.type,
        replay=entry.number,
        handler=entry.handler,
        handler_version=entry.handler_version,
        code=entry.error_code,
        received_at=entry.received_at,
        at=now,
    )


def _event(run: Run, ended: Settlement, before: str, at: int) -> Transition:
    return Transition(
        kind="event.ended",
        before=before,
        after=ended.state,
        source=run.source,
        tenant=run.tenant,
        event_id=run.event_id,
        ref=ids.text(PREFIX, run.event),
        correlation_id=run.correlation_id,
        event_type=run.type,
        attempt=ended.attempts,
        replay=run.number,
        handler=ended.handler,
        handler_version=ended.handler_version,
        code=ended.error_code,
        received_at=run.received_at,
        traceparent=_traceparent(run),
        at=ended.processed_at or at,
    )


def _traceparent(run: Run) -> str | None:
    """Read the `traceparent`; None where its form is wrong. Headers are parsed only if the word is in them."""
    if run.headers is None or "traceparent" not in run.headers.lower():
        return None
    found = [value for name, value in pairs(run.headers) if name.lower() == "traceparent"]
    return found[0] if len(found) == 1 and _TRACEPARENT.fullmatch(found[0]) else None
