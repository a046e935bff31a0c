"""`surehook breakers`."""

from __future__ import annotations

from typing import Any

from surehook.cli.lazy import group
from surehook.cli.listed import Column, show
from surehook.cli.output import Json, document, note
from surehook.cli.server import Key, Url, Wide, server

COLUMNS = (
    Column("state"),
    Column("url", least=20),
    Column("parked"),
    Column("next probe"),
    Column("reason", rank=1),
    Column("failures", rank=2),
    Column("tenant", rank=3, least=6),
)

app = group("Breakers: which failing URLs are not being called.")


@app.callback()
def breakers() -> None:
    """Breakers: which failing URLs are not being called."""


@app.command("list")
def list_breakers(wide: Wide = False, json: Json = False, url: Url = None, key: Key = None) -> None:
    """List breakers with their window, and when the next probe is."""
    from surehook.cli.times import coming

    with server(url, key) as client:
        answer = client.call("GET", "/v1/breakers")
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
        note("no breaker is open")


def _failures(breaker: dict[str, Any]) -> str:
    """`31 of 40 in 600 s`; nothing where only key trouble opens it."""
    if breaker["window_s"] is None:
        return ""
    return f"{breaker['failures']} of {breaker['calls']} in {breaker['window_s']:g} s"
