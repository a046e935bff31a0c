"""`surehook send`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from surehook.cli.commands import command
from surehook.cli.output import ApiObject, Json, document, line, note
from surehook.cli.server import Key, Url, server, settings_for, tenant_of

if TYPE_CHECKING:
    from surehook.cli.tracked_client import TrackedClient

app = command()

POLL_S = 0.2


@app.command()
def send(
    ctx: typer.Context,
    type: Annotated[
        str | None, typer.Argument(metavar="TYPE", help="Event type, such as document.signed")
    ] = None,
    data: Annotated[str, typer.Option("--data", "-d", help="JSON, @file or - for standard input.")] = "{}",
    tenant: Annotated[
        str | None, typer.Option(help="Whose event it is.", show_default="SUREHOOK_TENANT")
    ] = None,
    subject: Annotated[str | None, typer.Option(help="What it is about, such as a document's id.")] = None,
    sequence: Annotated[int | None, typer.Option(help="Its place among the subject's events.")] = None,
    id: Annotated[str | None, typer.Option(help="Event id, evt_…; made here where there is none.")] = None,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: the same key again is the same event.")
    ] = None,
    schema_version: Annotated[
        str | None, typer.Option(help="Version of the data's shape.", show_default="the event type's")
    ] = None,
    correlation_id: Annotated[str | None, typer.Option(help="Conversation it belongs to.")] = None,
    occurred_at: Annotated[str | None, typer.Option(help="When it happened: RFC 3339, or 5m ago.")] = None,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="An array, or JSON lines: each the data of one event of TYPE; without TYPE each a whole event.",
        ),
    ] = False,
    wait: Annotated[
        str | None, typer.Option(help="Wait so long for its deliveries; exit code 7 unless all arrived.")
    ] = None,
    json: Json = False,
    url: Url = None,
    api_key: Key = None,
) -> int | None:
    """Publish an event. When this returns, the event and its deliveries are on the server's disk."""
    if type is None and not batch:
        raise typer.BadParameter("which event type? such as document.signed", ctx, param_hint="TYPE")
    from surehook.cli.human_times import duration_s, instant

    settings = settings_for(url, api_key, tenant)
    are_whole = batch and type is None
    fields: ApiObject = {
        "tenant": settings.tenant if are_whole else tenant_of(settings),
        "subject": subject,
        "sequence": sequence,
        "schema_version": schema_version,
        "correlation_id": correlation_id,
        "occurred_at": instant(occurred_at),
    }
    from surehook.cli.inputs import check_key, json_bytes, json_each

    if batch:
        _refuse_with_batch(id=id, key=key, wait=wait)
        entries = json_each(data)
        events = _of_type(type, entries) if type is not None else _whole(entries)
        with server(url, api_key) as client:
            return _send_batch(client, fields, events, json=json)
    if key is not None:
        check_key(key)
        _refuse_moving(occurred_at)
    patience_s = None if wait is None else duration_s(wait)
    raw = json_bytes(data)
    assert type is not None
    with server(url, api_key) as client:
        sent = client.send(type, raw, key=key, id=id, **fields)
        if not json:
            line(f"{sent.id}  {_deliveries(sent.deliveries)}")
        elif patience_s is None:
            document(sent)
        if not sent.deliveries:
            note(f"no endpoint of tenant {fields['tenant']} takes {type}; the event is kept")
        if patience_s is None:
            return None
        code, ended = _wait(client, sent.id, patience_s)
        if json:
            document({"id": sent.id, "deliveries": sent.deliveries, "outcomes": ended})
        return code


def _of_type(type: str, entries: list[bytes]) -> list[ApiObject]:
    """Events of one type. Entries that are whole events are refused: their type and tenant would become data."""
    from msgspec import Raw
    from msgspec.json import decode

    from surehook.cli.errors import REJECTED, CommandError
    from surehook.core.envelope import EventIn

    fields = set(EventIn.__struct_fields__)
    for place, entry in enumerate(entries, start=1):
        given = decode(entry)
        if isinstance(given, dict) and {"type", "data"} <= given.keys() <= fields:
            raise CommandError(
                f"entry {place} is a whole event, not the data of one",
                hint="leave TYPE out to publish whole events: surehook send --batch --data @events.jsonl",
                code=REJECTED,
            )
    return [{"type": type, "data": Raw(entry)} for entry in entries]


def _whole(entries: list[bytes]) -> list[ApiObject]:
    """Events with the fields of the API, which the server checks."""
    from msgspec import Raw, ValidationError
    from msgspec.json import decode

    from surehook.cli.errors import REJECTED, CommandError

    events = []
    for place, entry in enumerate(entries, start=1):
        try:
            events.append(decode(entry, type=dict[str, Raw]))
        except ValidationError:
            raise CommandError(
                f"entry {place} is no object", hint="with TYPE each entry is an event's data", code=REJECTED
            ) from None
    return events


def _send_batch(client: TrackedClient, fields: ApiObject, events: list[ApiObject], *, json: bool) -> int:
    """Publish events, whose own fields override the options. Prints the answers in order; returns 8 when some were refused."""
    from msgspec.structs import asdict

    from surehook.cli.errors import OK, PARTLY, REJECTED
    from surehook.cli.progress import busy
    from surehook.client import Refused

    given = {name: value for name, value in fields.items() if value is not None}
    with busy(f"publishing {len(events):,} events"):
        answers = client.send_batch({**given, **event} for event in events)
    refused = [answer for answer in answers if isinstance(answer, Refused)]
    if json:
        document(
            [{"code": a.code, "detail": a.detail} if isinstance(a, Refused) else asdict(a) for a in answers]
        )
    else:
        for place, answer in enumerate(answers, start=1):
            if isinstance(answer, Refused):
                note(f"entry {place}: {answer.detail} ({answer.code})")
            else:
                line(f"{answer.id}  {_deliveries(answer.deliveries)}")
    return REJECTED if refused and len(refused) == len(answers) else PARTLY if refused else OK


def _refuse_moving(occurred_at: str | None) -> None:
    """Refuse a duration back from now beside a key: it is another instant each time, and so another event."""
    if occurred_at is not None and "T" not in occurred_at.upper():
        from surehook.cli.errors import USAGE, CommandError

        raise CommandError(
            f"--occurred-at {occurred_at} is another instant each time, and --key is for the same event again",
            hint="give an instant, such as 2026-11-21T10:46:00Z",
            code=USAGE,
        )


def _refuse_with_batch(**given: object) -> None:
    from surehook.cli.errors import USAGE, CommandError

    for name, value in given.items():
        if value is not None:
            raise CommandError(f"--{name} is for one event, not for --batch", code=USAGE)


def _wait(client: TrackedClient, event: str, patience_s: float) -> tuple[int, list[ApiObject]]:
    """Poll until every delivery has ended or waits for a person, or the time is over. Returns 0 when all arrived, else 7,
    and the deliveries as they are then."""
    from surehook.cli.delivery_text import WAITS, is_parked, result, waits_by_hand
    from surehook.cli.errors import NOT_MET, OK
    from surehook.cli.human_times import coming
    from surehook.cli.progress import busy
    from surehook.core.model import END_STATES

    until = time.monotonic() + patience_s
    told: set[str] = set()
    with busy("waiting for its deliveries"):
        while True:
            deliveries = list(client.events.deliveries(event))
            is_open = [d for d in deliveries if d["state"] not in END_STATES]
            for d in is_open:
                if waits_by_hand(d) and d["id"] not in told:
                    told.add(d["id"])
                    note(f"  {d['id']}  {WAITS[d['reason']][1].format(endpoint=d['endpoint'])}")
            left_s = until - time.monotonic()
            if left_s <= 0 or all(waits_by_hand(d) or _is_later(d, left_s) for d in is_open):
                break
            time.sleep(POLL_S)
    for d in deliveries:
        reason = f" ({d['reason']})" if d["reason"] else ""
        note(f"  {d['id']}  {d['state']}{reason}  {result(d)}".rstrip())
        if d["state"] == "retrying":
            note(f"    tried again {coming(d['due_at']) or 'now'}")
        if d["state"] != "delivered" and d["outcome"] is not None:
            note(f"    why, at {d['endpoint']}: surehook deliveries show {d['id']}")
        if is_parked(d) and d["reason"] in WAITS and d["id"] not in told:
            note(f"    {WAITS[d['reason']][1].format(endpoint=d['endpoint'])}")
    return OK if all(d["state"] == "delivered" for d in deliveries) else NOT_MET, deliveries


def _is_later(delivery: ApiObject, left_s: float) -> bool:
    """True if its next attempt comes after the wait ends. (Clocks may differ by a second.)"""
    from surehook.cli.human_times import clock_ms
    from surehook.core.instants import parse

    if delivery["state"] != "retrying" or delivery["due_at"] is None:
        return False
    return parse(delivery["due_at"]) - clock_ms() > (left_s + 1) * 1000


def _deliveries(count: int) -> str:
    return "1 delivery" if count == 1 else f"{count} deliveries"
