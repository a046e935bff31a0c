"""`surehook inbox`: the receiver's inbox in your application's database: tables, workers, lists, decisions of people."""

from __future__ import annotations

from typing import Annotated

import typer

from surehook.cli.commands import group
from surehook.cli.human_times import span
from surehook.cli.inbox_answers import REJECTED, decided, no_document, no_event
from surehook.cli.inbox_output import body_text, harmless, note_waiting, plain, print_list, print_rows
from surehook.cli.named_inbox import ask, check_source, inbox, queued
from surehook.cli.output import ApiObject, Json, document, line, note, print_record
from surehook.cli.tables import Column, print_table
from surehook.cli.worker_metrics import Metrics, serve_metrics

app = group("The inbox of a receiving application: tables, workers, what is in it.")

Place = Annotated[
    str,
    typer.Argument(metavar="MODULE:INBOX", help="Where the inbox is defined, such as `shop.hooks:inbox`."),
]
Limit = Annotated[int, typer.Option(help="At most so many, newest first.")]
Source = Annotated[str | None, typer.Option(help="Only of this source.")]
Tenant = Annotated[str | None, typer.Option(help="Only of this tenant.")]
EventType = Annotated[str | None, typer.Option("--type", help="A type, or `document.*`.")]
State = Annotated[
    str | None, typer.Option(help="accepted, held, parked, processed, finalized, rejected, ignored, dead.")
]
Id = Annotated[str | None, typer.Option("--id", help="The sender's event id.")]
Correlation = Annotated[
    str | None, typer.Option(help="Of this correlation id; with --since where there are many.")
]
Document = Annotated[str | None, typer.Option(help="Events that were decided on for this document.")]
Code = Annotated[str | None, typer.Option(help="Why it failed, such as handler_failed.")]
Since = Annotated[str | None, typer.Option(help="Arrived since: RFC 3339, or a duration ago (`6h`).")]
DocumentId = Annotated[str, typer.Argument(metavar="DOCUMENT")]
DocumentType = Annotated[str | None, typer.Option(help="Where one id is a document of several types.")]
By = Annotated[str, typer.Option(help="Who says so; kept in the journal.")]
Reason = Annotated[str, typer.Option(help="Why; kept in the journal.")]
_WAITS = ("ready", "scheduled", "held", "parked", "dead")
Until = Annotated[str | None, typer.Option(help="Arrived before: RFC 3339, or a duration ago (`6h`).")]


@app.command()
def ddl(
    dialect: Annotated[str, typer.Option(help="sqlite, postgresql, mysql or mariadb.")] = "postgresql",
    version: Annotated[
        int, typer.Option("--from", help="Only what tables of this version lack; 0: all of them.")
    ] = 0,
) -> None:
    """Print the tables as SQL."""
    from surehook.inbox.sql.ddl import script

    if found := script(dialect, version=version):
        line(found.rstrip("\n"))
    else:
        note(f"tables of version {version} lack nothing")


@app.command()
def upgrade(place: Place) -> None:
    """Create the tables that are missing; the others keep their rows."""
    ask(place, lambda inbox: inbox.create_tables(), may_create=True)
    note("the tables are there, and of this version")


@app.command()
def work(
    place: Place,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Batches at the same time.")] = 1,
    metrics: Metrics = None,
) -> None:
    """Process what is in the inbox until SIGTERM or Ctrl-C."""
    import logging

    from surehook.inbox.running import until_stopped

    found = inbox(place)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")  # unless the application has its own
    told = f"{place}: {workers} worker{'s' if workers > 1 else ''}, until SIGTERM or Ctrl-C"
    if metrics is not None:
        told += f"; metrics at {serve_metrics(found.collector(), metrics)}"
    if not until_stopped(found, workers, lambda: note(told)):
        raise typer.Exit(1)  # the log says why


@app.command()
def status(place: Place, json: Json = False) -> None:
    """Count runs by source and state."""
    counts = ask(place, lambda inbox: inbox.counts())
    if json:
        document(counts)
        return
    rows = [[source, state, count] for source, states in counts.items() for state, count in states.items()]
    if rows:
        print_table([Column("source"), Column("state"), Column("runs")], rows)
    else:
        note("the inbox is empty")


@app.command()
def stats(place: Place, json: Json = False) -> None:
    """Count what waits, by source: cheap whatever the backlog, so up to 10,000 of each kind."""
    from surehook.core import instants

    rows = [
        {
            "source": one.source,
            **{name: getattr(one, name) for name in _WAITS},
            "oldest_due_at": instants.render_optional(one.oldest_due_at),
        }
        for one in ask(place, lambda inbox: inbox.depth())
    ]
    queue, is_fronted = queued(place)
    if json:
        document({"data": rows, "next": None} | ({} if queue is None else {"queue": queue}))
        return
    if rows:
        print_rows(rows)
        note_waiting(rows)
    else:
        note("nothing waits" + (" in the table" if is_fronted else ""))
    if queue is not None:
        note(f"in the queue {queue['waiting']} messages wait, {queue['aside']} were put aside")


@app.command()
def prune(
    place: Place,
    bodies_days: Annotated[float, typer.Option(help="Bodies and headers stay so long.")] = 30,
    events_days: Annotated[
        float, typer.Option(help="Dedupe records stay so long: longer than any sender repeats.")
    ] = 90,
    json: Json = False,
) -> None:
    """Remove bodies, and later dedupe records, of finished events; never of events that still have to be processed."""
    removed = ask(
        place,
        lambda inbox: inbox.prune(bodies_days=bodies_days, events_days=events_days, limit=None),
    )
    print_record({"requests": removed.requests, "events": removed.events}, json=json)


@app.command()
def events(
    place: Place,
    source: Source = None,
    tenant: Tenant = None,
    type: EventType = None,
    state: State = None,
    id: Id = None,
    document_id: Document = None,
    correlation_id: Correlation = None,
    code: Code = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
    json: Json = False,
) -> None:
    """List events with their newest run."""
    wanted = _given(
        source=source,
        tenant=tenant,
        type=type,
        state=state,
        id=id,
        document=document_id,
        correlation_id=correlation_id,
        code=code,
        **span(since, until),
    )
    found = ask(place, lambda inbox: inbox.page(limit=limit, **wanted))
    if not found.events:
        check_source(place, source)
    print_list(
        found.events,
        ["received_at", "state", "source", "type", "id", "attempts", "code", "ref"],
        json,
        "no event matches",
        more=found.until,
    )
    if found.until is not None and not json:
        note(f"looked through until {found.until}: --until {found.until} goes on")


@app.command()
def show(place: Place, ref: Annotated[str, typer.Argument(help="inb_…")], json: Json = False) -> int:
    """Show one event: its state, its request, and its last failed attempts. Exit code 4 where there is none."""
    from msgspec import structs

    from surehook.cli.errors import OK

    found = ask(place, lambda inbox: inbox.show(ref))
    if found is None:
        return no_event(ref)
    event = structs.asdict(found.event)
    tries = [structs.asdict(one) for one in found.tries]
    others = [
        {"received_at": one.received_at, "body_sha256": one.body_sha256, "body": plain(one.body)}
        for one in found.others
    ]
    came = {"url": found.url, "headers": found.headers, "body": plain(found.body)}
    if json:
        document({**event, **came, "tries": tries, "others": others})
        return OK
    print_record({name: value for name, value in event.items() if name != "error"}, json=False)
    if tries:
        print_rows(tries)
    for name, value in found.headers or ():
        line(harmless(f"{name}: {value}"))
    line(body_text(found.body))
    for one in found.others:
        line(f"another body came at {one.received_at}, SHA-256 {one.body_sha256}:")
        line(body_text(one.body))
    return OK


@app.command()
def conflicts(
    place: Place,
    limit: Limit = 50,
    before: Annotated[
        str | None, typer.Option(help="Those that came before this one: `conflict` of a line.")
    ] = None,
    json: Json = False,
) -> None:
    """List other bodies that came under the id of a stored event; `show` has the bodies."""
    found = ask(place, lambda inbox: inbox.conflicts(limit=limit, before=before))
    more = found[-1].conflict if len(found) == limit else None
    print_list(
        found,
        ["received_at", "source", "id", "body_bytes", "body_sha256", "ref", "conflict"],
        json,
        "there is no conflict",
        more=more,
    )


@app.command()
def replay(
    place: Place,
    reason: Annotated[str, typer.Option(help="Why; kept with each replay.")],
    source: Source = None,
    tenant: Tenant = None,
    type: EventType = None,
    state: State = None,
    id: Id = None,
    document_id: Document = None,
    correlation_id: Correlation = None,
    code: Code = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(help="At most so many, oldest first.")] = 1_000,
) -> None:
    """Process finished events that match once more; originals stay as they are."""
    wanted = _given(
        source=source,
        tenant=tenant,
        type=type,
        state=state,
        id=id,
        document=document_id,
        correlation_id=correlation_id,
        code=code,
        **span(since, until),
    )
    begun = ask(place, lambda inbox: inbox.replay(reason=reason, limit=limit, **wanted))
    if not begun:
        check_source(place, source)
    line(f"{begun} event{'s' if begun != 1 else ''} will be processed again")


@app.command()
def finalize(
    place: Place,
    ref: Annotated[str, typer.Argument(help="inb_…")],
    note_: Annotated[str, typer.Option("--note")] = "",
) -> int:
    """Finalize a processed event: its effects stand. Exit code 4 where there is none, 7 if it was not waiting for that."""
    return decided(place, ref, ask(place, lambda inbox: inbox.finalize(ref, note_)), "finalized")


@app.command()
def reject(
    place: Place,
    ref: Annotated[str, typer.Argument(help="inb_…")],
    code: Annotated[str, typer.Option(help="A word for machines.")],
    note_: Annotated[str, typer.Option("--note")] = "",
) -> int:
    """Reject a processed event: its effects do not stand. Exit code 4 where there is none, 7 if it was not waiting for that."""
    return decided(place, ref, ask(place, lambda inbox: inbox.reject(ref, code, note_)), REJECTED)


@app.command()
def explain(
    place: Place,
    document_id: DocumentId,
    tenant: str = "",
    document_type: DocumentType = None,
    limit: Annotated[int, typer.Option(help="The last decisions, at most so many.")] = 1_000,
) -> int:
    """Print a document's history: its last decisions, what each changed, and why. Exit code 4 where there is none."""
    from surehook.cli.errors import OK

    told = ask(
        place,
        lambda inbox: inbox.explain(document_id, tenant=tenant, document_type=document_type, limit=limit),
    )
    for one in told:
        line(one)
    return OK if told else no_document(document_id, document_type, tenant)


@app.command()
def release(
    place: Place,
    document_id: DocumentId,
    by: By,
    reason: Reason,
    tenant: str = "",
    document_type: DocumentType = None,
) -> int:
    """Release the events that are held for a document, up to the next gap, although an earlier one is missing. The next
    worker processes them. Exit code 4 where there is no such document, 7 where nothing is held."""
    from surehook.cli.errors import NOT_MET, OK

    done = ask(
        place,
        lambda inbox: inbox.release(
            document_id, by=by, reason=reason, tenant=tenant, document_type=document_type
        ),
    )
    if not done and not ask(
        place,
        lambda inbox: inbox.explain(document_id, tenant=tenant, document_type=document_type, limit=1),
    ):
        return no_document(document_id, document_type, tenant)
    note("the next worker lets it go on" if done else f"nothing is held for {document_id}")
    return OK if done else NOT_MET


@app.command()
def grant(
    place: Place,
    document_id: DocumentId,
    by: By,
    reason: Reason,
    token: Annotated[str | None, typer.Option(help="The token; made up if it is not given.")] = None,
    tenant: str = "",
    document_type: DocumentType = None,
) -> int:
    """Let one event that carries the printed token leave a terminal state, or go before a missing one. Exit code 4 where there
    is no such document."""
    from surehook.cli.errors import OK
    from surehook.inbox.document_commands import UnknownDocument

    try:
        granted = ask(
            place,
            lambda inbox: inbox.grant(
                document_id, token, by=by, reason=reason, tenant=tenant, document_type=document_type
            ),
        )
    except UnknownDocument:
        return no_document(document_id, document_type, tenant)
    line(granted)
    return OK


def _given(**values: object) -> ApiObject:
    return {name: value for name, value in values.items() if value is not None}
