"""`surehook lanes`."""

from __future__ import annotations

from surehook.cli.lazy import command
from surehook.cli.output import Json, document, table
from surehook.cli.server import Key, Url, server

app = command()


@app.command()
def lanes(json: Json = False, url: Url = None, key: Key = None) -> None:
    """Show the two lanes: slots and requests of this server, what is held, ready, due later and parked."""
    with server(url, key) as client:
        answer = client.call("GET", "/v1/lanes")
    if json:
        document(answer)
        return
    columns = ["name", "slots", "in_flight", "held", "ready", "oldest_due_s", "scheduled", "parked"]
    table(
        [name.replace("_", " ") for name in columns], [[lane[n] for n in columns] for lane in answer["data"]]
    )
