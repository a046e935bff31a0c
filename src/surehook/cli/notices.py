"""`surehook notices`."""

from __future__ import annotations

from typing import Annotated

import typer

from surehook.cli.commands import group
from surehook.cli.output import Json
from surehook.cli.server import Cursor, Key, Limit, Since, Tenant, Url, Wide, listing, only_tenant, server
from surehook.cli.tables import Column

COLUMNS = (
    Column("at"),
    Column("kind"),
    Column("detail", least=16),
    Column("about"),
    Column("tenant", rank=1, least=6),
)

app = group("Notices: what an operator should know.")


@app.callback()
def notices() -> None:
    """Notices: what an operator should know."""


@app.command("list")
def list_notices(
    tenant: Tenant = None,
    endpoint: Annotated[str | None, typer.Option(help="Only about this endpoint.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only of this kind, such as delivery.dead.")] = None,
    since: Since = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    wide: Wide = False,
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """List notices, newest first."""
    from surehook.cli.human_times import instant, local

    filters = {
        "tenant": only_tenant(url, key, tenant), "endpoint": endpoint, "kind": kind, "since": instant(since),
    }  # fmt: skip
    with server(url, key) as client:
        listing(
            client,
            "/v1/notices",
            filters,
            limit=limit,
            cursor=cursor,
            json=json,
            wide=wide,
            columns=COLUMNS,
            row=lambda n: [
                local(n["at"]),
                n["kind"],
                n["detail"],
                # A notice about an endpoint names the endpoint, whichever delivery caused it.
                (n["kind"].startswith("endpoint.") and n["endpoint"]) or n["delivery"] or n["endpoint"],
                n["tenant"],
            ],
            nothing="nothing to report",
        )
