"""`surehook dead-letters`."""

from __future__ import annotations

from typing import Annotated

import typer

from surehook.cli.commands import group
from surehook.cli.filters import Code, CorrelationId, Error, Receipt, Status, Subject
from surehook.cli.output import Json, document, note
from surehook.cli.server import (
    Cursor,
    Key,
    Limit,
    Since,
    Tenant,
    Until,
    Url,
    Wide,
    listing,
    only_tenant,
    server,
)

app = group("Dead letters: deliveries that gave up, kept whole until replayed or dismissed.")


@app.command("list")
def list_dead_letters(
    tenant: Tenant = None,
    endpoint: Annotated[str | None, typer.Option(help="Only to this endpoint.")] = None,
    type: Annotated[str | None, typer.Option(help="Only of this event type.")] = None,
    outcome: Annotated[
        str | None, typer.Option(help="Only with this last result, such as timed_out.")
    ] = None,
    status: Status = None,
    error: Error = None,
    subject: Subject = None,
    correlation_id: CorrelationId = None,
    receipt: Receipt = None,
    code: Code = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    wide: Wide = False,
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """List dead letters, newest first."""
    from surehook.cli.delivery_text import COLUMNS, row
    from surehook.cli.human_times import span

    filters = {
        "tenant": only_tenant(url, key, tenant),
        "endpoint": endpoint,
        "type": type,
        "outcome": outcome,
        "status": status,
        "error": error,
        "subject": subject,
        "correlation_id": correlation_id,
        "receipt": receipt,
        "code": code,
        **span(since, until),
    }
    with server(url, key) as client:
        listing(
            client,
            "/v1/dead-letters",
            filters,
            limit=limit,
            cursor=cursor,
            json=json,
            wide=wide,
            columns=COLUMNS,
            row=row,
            nothing="no dead letters match",
        )


@app.command()
def dismiss(
    delivery: Annotated[str, typer.Argument(metavar="DELIVERY", help="dlv_…")],
    note_text: Annotated[str, typer.Option("--note", help="Why it need not arrive; kept with it.")],
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Put a dead letter away with a note."""
    with server(url, key) as client:
        answer = client.dead_letters.dismiss(delivery, note=note_text)
    if json:
        document(answer)
    else:
        note(f"dismissed {delivery}")
