"""Operations on an inbox, asked for by people and other processes: the work inside the transaction, for either kind of store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict, TypeVar, get_args

from msgspec import Struct, structs

from surehook.core import ids, instants
from surehook.core.errors import Problem, SettingsError
from surehook.core.meant import meant
from surehook.core.workflow.explain import explain
from surehook.inbox.document_commands import take_back
from surehook.inbox.document_rows import document_of, steps_of
from surehook.inbox.event import PREFIX
from surehook.inbox.given_texts import (
    LATER,
    checked_code,
    checked_document,
    checked_maybe_empty,
    checked_text,
)
from surehook.inbox.pending_receipts import PendingReceipts
from surehook.inbox.retention import Keep
from surehook.inbox.sources.source import Source
from surehook.ports.inbox import Entry, StoreError, Transaction, pairs
from surehook.ports.inbox_pruning import PrunedPart, PrunePlace
from surehook.ports.inbox_reading import Other
from surehook.ports.inbox_runs import OPEN, Filter, State
from surehook.ports.inbox_tries import Try

T = TypeVar("T")

NOTE_CHARS = 1_000
ROWS = 10_000  # of one list or one replay
PORTION = 1_000  # of each kind that retention removes in one transaction: some tens of milliseconds
PARKED = 500  # runs that are looked at in one transaction to be unparked: some milliseconds
LOOKS = 20_000  # events that are looked at for one page: some tens of milliseconds
_NAMES = {"id": "event_id", "code": "error_code", "ref": "event"}  # for people, and in `Filter`
_FAILED = ("failed", "failure", "failing", "error", "errors")  # what people call it: no state has such a name


class EventQuery(TypedDict, total=False):
    """A filter of events: None matches all. Times of arrival are RFC 3339 or Unix milliseconds, `until` exclusive."""

    ref: str | None
    source: str | None
    tenant: str | None
    id: str | None
    correlation_id: str | None
    type: str | None  # exact, or `document.*`
    document: str | None
    state: State | None  # of the newest run
    code: str | None
    since: str | int | None
    until: str | int | None


class EventRow(Struct, frozen=True, kw_only=True):
    """One event and its newest run, for people: references as text, times RFC 3339."""

    ref: str
    source: str
    tenant: str
    id: str
    correlation_id: str | None
    type: str | None
    received_at: str
    state: State
    replay: int
    attempts: int
    due_at: str | None
    processed_at: str | None
    finalized_at: str | None
    handler: str | None
    handler_version: str | None
    result: str | None
    changed: bool
    code: str | None
    error: str | None


class FailedTry(Struct, frozen=True, kw_only=True):
    """An attempt that failed, with its handler and error."""

    at: str
    replay: int
    attempt: int
    code: str
    handler: str | None
    error: str | None
    message: str | None


class EventDetails(Struct, frozen=True, kw_only=True):
    """One event as it stands, how it came, and its last attempts that failed, oldest first.

    url, headers, body  as they were received; None when their retention has ended
    others              bodies that came under its id afterwards, oldest first: ten at most are kept
    """

    event: EventRow
    url: str | None
    headers: list[tuple[str, str]] | None
    body: bytes | None
    tries: list[FailedTry]
    others: list[OtherBody]


class OtherBody(Struct, frozen=True, kw_only=True):
    """A body that came under the id of an event that stood; None when its retention has ended."""

    received_at: str
    body_sha256: str
    body: bytes | None


class ConflictRow(Struct, frozen=True, kw_only=True):
    """Another body under the id of an event that stands (`ref`), which `show` has with it.

    conflict    its own name, from which a list goes on (`before=`)
    body_bytes  how long it is; None when its retention has ended
    """

    conflict: str
    ref: str
    source: str
    tenant: str
    id: str
    received_at: str
    body_sha256: str
    body_bytes: int | None


class EventPage(Struct, frozen=True, kw_only=True):
    """A page of events. `until`: enough was looked at before it was full; when the last of these came, RFC 3339, from where the
    list goes on (`until=`). None: it is full, or nothing older fits."""

    events: list[EventRow]
    until: str | None


def only_reads(work: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
    """Make it a work beside which others go on writing, also on SQLite."""

    def reading(transaction: Transaction) -> T:
        transaction.only_reads()
        return work(transaction)

    return reading


def decide_work(
    ref: str,
    state: State,
    code: str | None,
    note: str,
    now: int,
    pending_receipts: PendingReceipts,
    *,
    own: bytes | None,
) -> Callable[[Transaction], Entry | None]:
    """Finalize or reject an event; the work returns it as it stands then, None: it did not wait for that. `own`: the event of
    the handler that asks, in whose transaction its run is locked."""
    event = _event(ref)
    if event == own:
        raise SettingsError(
            "ref", f"{ref} is the event of the handler that asks, and ends as that returns",
            hint="return, or raise Refuse(code); on(…, final=False) leaves it to a later call, from elsewhere",
        )  # fmt: skip
    word = checked_code(code) if state == "rejected" else None
    said = checked_maybe_empty("note", note, 'note="": none')[:NOTE_CHARS] or None

    def work(transaction: Transaction) -> Entry | None:
        if not transaction.decide(event, state=state, code=word, note=said, now=now):
            return None
        pending_receipts.decided(transaction, event, state, word, said)
        if state == "rejected":
            take_back(transaction, event, code=word, now=now)
        return transaction.entries(Filter(event=event), limit=1)[0]

    return work


def replay_work(
    wanted: Mapping[str, object], *, reason: str, limit: int, now: int, identify: Callable[[int], bytes]
) -> Callable[[Transaction], int]:
    if not wanted:
        raise SettingsError(
            "replay", "say which events: everything is never meant", hint="source=, type=, state=, …"
        )
    checked_text("reason", reason, LATER)
    if (state := wanted.get("state")) in (*OPEN, "parked"):
        raise SettingsError(
            "state",
            f"only finished events are processed again, and those that are {state} are not",
            hint="they go on by themselves: `parked` once there is a handler, `held` once what is missing has come",
        )
    fitting, rows = _filter(wanted), checked_rows(limit)
    return lambda transaction: transaction.replay(
        fitting, reason=reason, now=now, ids=lambda: identify(now), limit=rows
    )


def unpark_work(source: Source, now: int, after: bytes) -> Callable[[Transaction], tuple[int, bytes | None]]:
    return lambda transaction: transaction.unpark(
        source.name, source.schema_versions, after=after, limit=PARKED, now=now
    )


def list_work(wanted: Mapping[str, object], limit: int) -> Callable[[Transaction], list[EventRow]]:
    fitting, rows = _filter(wanted), checked_rows(limit)
    return only_reads(lambda transaction: [_listed(one) for one in transaction.entries(fitting, limit=rows)])


def page_work(wanted: Mapping[str, object], limit: int) -> Callable[[Transaction], EventPage]:
    fitting, rows = _filter(wanted), checked_rows(limit)

    def work(transaction: Transaction) -> EventPage:
        reached = transaction.reach(fitting, looks=LOOKS)
        near = fitting if reached is None else structs.replace(fitting, since=reached)
        found = [_listed(one) for one in transaction.entries(near, limit=rows)]
        return EventPage(events=found, until=instants.render_optional(reached if len(found) < rows else None))

    return only_reads(work)


def show_work(ref: str) -> Callable[[Transaction], EventDetails | None]:
    """Read one event; None: there is none. Raises Problem for what is no reference."""
    event = _event(ref)

    def work(transaction: Transaction) -> EventDetails | None:
        entries = transaction.entries(Filter(event=event), limit=1)
        if not entries:
            return None
        if (wrong := transaction.outdated()) is not None:
            raise StoreError(wrong)
        came = transaction.original(event)
        return EventDetails(
            event=_listed(entries[0]),
            url=None if came is None else came.url,
            headers=None if came is None else pairs(came.headers),
            body=None if came is None else came.body,
            tries=[_tried(one) for one in transaction.tries(event)],
            others=[_other(one) for one in transaction.others(event)],
        )

    return only_reads(work)


def _other(one: Other) -> OtherBody:
    return OtherBody(
        received_at=instants.render(one.received_at), body_sha256=one.body_sha256.hex(), body=one.body
    )


def _tried(one: Try) -> FailedTry:
    return FailedTry(
        at=instants.render(one.at),
        replay=one.number,
        attempt=one.attempt,
        code=one.code,
        handler=one.handler,
        error=one.name,
        message=one.message,
    )


def _listed(one: Entry) -> EventRow:
    when = instants.render_optional
    return EventRow(
        ref=ids.text(PREFIX, one.id),
        source=one.source,
        tenant=one.tenant,
        id=one.event_id,
        correlation_id=one.correlation_id,
        type=one.type,
        received_at=instants.render(one.received_at),
        state=one.state,
        replay=one.number,
        attempts=one.attempts,
        due_at=when(one.due_at),
        processed_at=when(one.processed_at),
        finalized_at=when(one.finalized_at),
        handler=one.handler,
        handler_version=one.handler_version,
        result=None if one.result_sha256 is None else one.result_sha256.hex(),
        changed=one.changed,
        code=one.error_code,
        error=one.error,
    )


def conflicts_work(limit: int, before: str | None) -> Callable[[Transaction], list[ConflictRow]]:
    """List conflicts. Raises Problem where `before` names no conflict."""
    rows, earlier = checked_rows(limit), None if before is None else _event(before, "before")

    def work(transaction: Transaction) -> list[ConflictRow]:
        return [
            ConflictRow(
                conflict=ids.text(PREFIX, one.id),
                ref=ids.text(PREFIX, one.event),
                source=one.source,
                tenant=one.tenant,
                id=one.event_id,
                received_at=instants.render(one.received_at),
                body_sha256=one.body_sha256.hex(),
                body_bytes=one.body_bytes,
            )
            for one in transaction.conflicts(limit=rows, before=earlier)
        ]

    return only_reads(work)


def explain_work(
    document: str, document_type: str | None, tenant: str, limit: int
) -> Callable[[Transaction], list[str]]:
    checked_document(document, tenant)
    rows = checked_rows(limit)

    def work(transaction: Transaction) -> list[str]:
        lines: list[str] = []
        found = transaction.history(document, document_type=document_type, tenant=tenant, limit=rows + 1)
        for row, steps in found:
            if len(steps) > rows:
                lines.append(f"the last {rows} decisions; earlier ones are not shown (limit=)")
            lines += explain(steps_of(steps[-rows:]), document_of(row.body))
        return lines

    return only_reads(work)


def counts_work() -> Callable[[Transaction], dict[tuple[str, State], int]]:
    return only_reads(lambda transaction: transaction.counts())


def by_source(counts: Mapping[tuple[str, State], int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (source, state), count in sorted(counts.items()):
        found.setdefault(source, {})[state] = count
    return found


def prune_work(
    bodies_days: float, events_days: float, limit: int, now: int, place: PrunePlace
) -> Callable[[Transaction], PrunedPart]:
    bodies, events = Keep(bodies_days, events_days).before(now)
    return lambda transaction: transaction.prune(
        bodies_before=bodies, events_before=events, limit=limit, place=place
    )


def _filter(wanted: Mapping[str, Any]) -> Filter:
    """Make the port's filter. Raises SettingsError for a name that is none. Times may be given as RFC 3339."""
    values = {_NAMES.get(name, name): value for name, value in wanted.items()}
    if values.get("event") is not None:
        values["event"] = _event(values["event"])
    if unknown := sorted(set(values) - set(Filter.__struct_fields__)):
        raise SettingsError(
            "filter",
            f"there is no {', '.join(unknown)}",
            hint=meant(unknown[0], EventQuery.__annotations__, "filters"),
        )
    if (state := values.get("state")) is not None and state not in get_args(State):
        raise SettingsError("state", f"there is no state {state!r}", hint=_states(str(state)))
    for name in ("since", "until"):
        if isinstance(values.get(name), str):
            values[name] = instants.parse(values[name], field=name)
    return Filter(**values)


def _states(word: str) -> str:
    """The hint for a word that is no state."""
    # By the usual measure `failed` means `finalized`, which is its opposite.
    hint = meant(word, get_args(State), "states", near_from=0.7)
    if word.lower() not in _FAILED:
        return hint
    return f"`dead` has failed and is given up, `accepted` waits, also to be tried again; {hint}"


def _event(ref: str, parameter: str = "ref") -> bytes:
    """Parse an event's reference. Raises Problem for what is none."""
    hint = "event.ref, such as inb_01ka…; events(id=…) finds it by the sender's id"
    try:
        return ids.parse(PREFIX, ref if isinstance(ref, str) else "")
    except Problem:
        raise Problem(
            "bad_id", f"{ref!r:.64} is no reference of an event", field=parameter, hint=hint
        ) from None


def checked_rows(limit: int) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= ROWS:
        raise SettingsError("limit", f"a whole number from 1 to {ROWS}, and not {limit!r:.40}")
    return limit
