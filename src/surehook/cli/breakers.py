"""`surehook breakers`."""

from __future__ import annotations

from typing import Annotated

import typer

from surehook.cli.commands import group
from surehook.cli.output import ApiObject, Json, document, line, note
from surehook.cli.server import Key, Tenant, Url, Wide, only_tenant, server, settings_for, tenant_of
from surehook.cli.tables import Column, print_table

Target = Annotated[
    str, typer.Argument(metavar="URL", help="As `surehook breakers list` shows it, or an endpoint's.")
]
Owner = Annotated[str | None, typer.Option("--tenant", help="Whose it is.", show_default="SUREHOOK_TENANT")]

COLUMNS = (
    Column("state"),
    Column("url", least=20),
    Column("parked"),
    Column("next probe"),
    Column("reason"),
    Column("failing calls", rank=1),
    Column("tenant", least=6),
)

app = group("Breakers: how the calls of each URL fare, and which URLs are not being called.")


@app.callback()
def breakers() -> None:
    """Breakers: how the calls of each URL fare, and which URLs are not being called."""


@app.command("list")
def list_breakers(
    tenant: Tenant = None, wide: Wide = False, json: Json = False, url: Url = None, key: Key = None
) -> None:
    """List breakers that are open, half-open, or closed with calls counted: their window, and when the next probe is."""
    from surehook.cli.human_times import coming

    wanted = only_tenant(url, key, tenant)
    with server(url, key) as client:
        found = list(client.breakers.list())
        if wanted is not None:
            client.tenants.get(wanted)
            found = [breaker for breaker in found if breaker["tenant"] == wanted]
    if json:
        document({"data": found, "next": None})
        return
    rows = [
        [b["state"], b["url"], b["parked"], coming(b["probe_at"]), b["reason"], _failures(b), b["tenant"]]
        for b in found
    ]
    if rows:
        print_table(COLUMNS, rows, wide=wide)
    else:
        note("no breaker is open" if wanted is None else f"no breaker is open (of tenant {wanted})")


@app.command()
def probe(target: Target, tenant: Owner = None, json: Json = False, url: Url = None, key: Key = None) -> None:
    """Make the next probe due now: one due delivery goes out, and if it arrives, the parked ones follow.

    Where no delivery is due yet, the probe waits for the first that is."""
    owner = tenant_of(settings_for(url, key, tenant))
    with server(url, key) as client:
        answer = client.breakers.probe(tenant=owner, url=target)
    if json:
        document(answer)
    elif answer["state"] == "closed":
        note(f"closed: nothing is held back from {answer['url']}")
    else:
        line(
            f"{answer['state']} ({answer['reason']}): one delivery that is due asks now; {answer['parked']} are parked"
        )


@app.command()
def close(target: Target, tenant: Owner = None, json: Json = False, url: Url = None, key: Key = None) -> None:
    """Close it without a probe: parked deliveries go out, slowly at first. If they fail, the breaker opens again."""
    owner = tenant_of(settings_for(url, key, tenant))
    with server(url, key) as client:
        answer = client.breakers.close(tenant=owner, url=target)
    if json:
        document(answer)
    else:
        line(f"closed: {answer['parked']} that were parked for {answer['url']} go out")


def _failures(breaker: ApiObject) -> str:
    """`31 of 40 in 600 s`; nothing where only key trouble opens it."""
    if breaker["window_s"] is None:
        return ""
    return f"{breaker['failures']} of {breaker['calls']} in {breaker['window_s']:g} s"
