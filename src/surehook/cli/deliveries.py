"""`surehook deliveries`."""

from __future__ import annotations

from typing import Annotated

import typer

from surehook.cli.commands import group
from surehook.cli.filters import Code, CorrelationId, Error, Receipt, Status, Subject
from surehook.cli.inputs import states
from surehook.cli.output import Json, document
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

app = group("Deliveries: one event to one endpoint.")

Ids = Annotated[list[str], typer.Argument(metavar="DELIVERY…", help="dlv_…, one or more.")]


@app.command("list")
def list_deliveries(
    tenant: Tenant = None,
    endpoint: Annotated[str | None, typer.Option(help="Only to this endpoint.")] = None,
    state: Annotated[
        str | None,
        typer.Option(
            help="scheduled, sending, retrying, parked, delivered, dead, dropped or cancelled.",
            autocompletion=states,
        ),
    ] = None,
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
    """List deliveries, newest first."""
    from surehook.cli.delivery_text import COLUMNS, row
    from surehook.cli.human_times import span

    filters = {
        "tenant": only_tenant(url, key, tenant),
        "endpoint": endpoint,
        "state": state,
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
            "/v1/deliveries",
            filters,
            limit=limit,
            cursor=cursor,
            json=json,
            wide=wide,
            columns=COLUMNS,
            row=row,
            nothing="no deliveries match",
        )


@app.command()
def show(
    delivery: Annotated[str, typer.Argument(metavar="DELIVERY", help="dlv_…")],
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Tell the whole story of a delivery: every attempt, what came back, what to do."""
    with server(url, key) as client:
        found = client.deliveries.get(delivery)
        attempts = list(client.deliveries.attempts(delivery))
    # Oldest first, unlike every list: this is read from top to bottom.
    attempts.sort(key=lambda attempt: (attempt["started_at"], attempt["number"]))
    if json:
        document({"delivery": found, "attempts": attempts})
        return
    from surehook.cli.delivery_text import print_delivery
    from surehook.cli.human_times import clock_ms

    print_delivery(found, attempts, now_ms=clock_ms())


@app.command()
def resend(delivery: Ids, json: Json = False, url: Url = None, key: Key = None) -> int:
    """Deliver finished ones again (as new deliveries of the same event), and open ones at once.

    Behind an open breaker nothing is sent at once: its next probe is due at once, and parked deliveries go out when that
    arrives."""
    from surehook.cli.delivery_actions import resend_all

    return resend_all(delivery, json=json, url=url, key=key)


@app.command()
def cancel(delivery: Ids, json: Json = False, url: Url = None, key: Key = None) -> int:
    """End open deliveries that are not being sent at this moment."""
    from surehook.cli.delivery_actions import cancel_all

    return cancel_all(delivery, json=json, url=url, key=key)
