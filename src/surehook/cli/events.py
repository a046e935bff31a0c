"""`surehook events`."""

from __future__ import annotations

from typing import Annotated

import typer

from surehook.cli.commands import group
from surehook.cli.output import Json, document, line, note, print_record
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
from surehook.cli.tables import Column

COLUMNS = (
    Column("id"),
    Column("accepted", rank=1),
    Column("deliveries", rank=2),
    Column("type", least=12),
    Column("subject", rank=3, least=8),
    Column("tenant", rank=4, least=6),
)

app = group("Events: what happened, immutable.")


@app.command("list")
def list_events(
    tenant: Tenant = None,
    type: Annotated[str | None, typer.Option(help="Only this event type.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only about this subject.")] = None,
    correlation_id: Annotated[str | None, typer.Option(help="Only of this conversation.")] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Only what came with this key of a tenant.")
    ] = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    wide: Wide = False,
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """List events, newest first."""
    from surehook.cli.human_times import local, span

    filters = {
        "tenant": only_tenant(url, key, tenant),
        "type": type,
        "subject": subject,
        "correlation_id": correlation_id,
        "idempotency_key": idempotency_key,
        **span(since, until),
    }
    with server(url, key) as client:
        listing(
            client,
            "/v1/events",
            filters,
            limit=limit,
            cursor=cursor,
            json=json,
            wide=wide,
            columns=COLUMNS,
            row=lambda e: [
                e["id"],
                local(e["accepted_at"]),
                e["deliveries"],
                e["type"],
                e["subject"],
                e["tenant"],
            ],
            nothing="no events match; publish one with `surehook send TYPE --tenant NAME`",
        )


@app.command()
def show(
    event: Annotated[str, typer.Argument(metavar="EVENT", help="evt_…")],
    wide: Wide = False,
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Show an event, its data and where it went."""
    from msgspec import Raw
    from msgspec.json import decode

    from surehook.client.calls import segment

    with server(url, key) as client:
        # Raw: the data is shown with the digits it was published with.
        found = client.call("GET", f"/v1/events/{segment(event)}", type=dict[str, Raw])
        deliveries = list(client.events.deliveries(event))
    if json:
        document({"event": found, "deliveries": deliveries})
        return
    print_record({name: decode(value) for name, value in found.items() if name != "data"}, json=False)
    line()
    document(found["data"])
    line()
    if deliveries:
        from surehook.cli.delivery_text import COLUMNS as DELIVERIES
        from surehook.cli.delivery_text import row
        from surehook.cli.tables import print_table

        print_table(DELIVERIES, [row(each) for each in deliveries], wide=wide)
    else:
        note("no endpoint wanted this event")
