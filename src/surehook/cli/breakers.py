"""`surehook breakers`."""

from __future__ import annotations

from surehook.cli.lazy import group
from surehook.cli.output import Json, document, note, table
from surehook.cli.server import Key, Url, server

app = group("Breakers: which failing URLs are not being called.")


@app.callback()
def breakers() -> None:
    """Breakers: which failing URLs are not being called."""


@app.command("list")
def list_breakers(json: Json = False, url: Url = None, key: Key = None) -> None:
    """List breakers with their window, and when the next probe is."""
    from surehook.cli.times import local

    with server(url, key) as client:
        answer = client.call("GET", "/v1/breakers")
    if json:
        document(answer)
        return
    rows = [
        [
            b["state"],
            b["reason"],
            f"{b['failures']} of {b['calls']} in {b['window_s']:g} s",
            b["parked"],
            local(b["probe_at"]),
            b["tenant"],
            b["url"],
        ]
        for b in answer["data"]
    ]
    if rows:
        table(["state", "reason", "failures", "parked", "next probe", "tenant", "url"], rows)
    else:
        note("no breaker is open")
