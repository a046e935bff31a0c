"""`surehook breakers`."""

from __future__ import annotations

from typing import Any

from surehook.cli.lazy import group
from surehook.cli.listed import Column, show
from surehook.cli.output import Json, document, note
from surehook.cli.server import Key, Tenant, Url, Wide, only_tenant, server

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
    from surehook.cli.times import coming

    wanted = only_tenant(url, key, tenant)
    with server(url, key) as client:
        answer = client.call("GET", "/v1/breakers")
        if wanted is not None:
            client.tenants.get(wanted)
            answer["data"] = [breaker for breaker in answer["data"] if breaker["tenant"] == wanted]
    if json:
        document(answer)
        return
    rows = [
        [b["state"], b["url"], b["parked"], coming(b["probe_at"]), b["reason"], _failures(b), b["tenant"]]
        for b in answer["data"]
    ]
    if rows:
        show(COLUMNS, rows, wide=wide)
    else:
        note("no breaker is open" if wanted is None else f"no breaker is open (of tenant {wanted})")


def _failures(breaker: dict[str, Any]) -> str:
    """`31 of 40 in 600 s`; nothing where only key trouble opens it."""
    if breaker["window_s"] is None:
        return ""
    return f"{breaker['failures']} of {breaker['calls']} in {breaker['window_s']:g} s"
