"""`surehook lanes`."""

from __future__ import annotations

from surehook.cli.commands import command
from surehook.cli.output import Json, document
from surehook.cli.server import Key, Url, server
from surehook.cli.tables import Column, print_table

app = command()


@app.command()
def lanes(json: Json = False, url: Url = None, key: Key = None) -> None:
    """Show the two lanes: slots and requests of this server, what is held, ready, due later and parked."""
    with server(url, key) as client:
        found = list(client.lanes.list())
    if json:
        document({"data": found, "next": None})
        return
    names = ["name", "slots", "in_flight", "held", "ready", "oldest_due_s", "scheduled", "parked"]
    columns = [Column(name.replace("_", " ")) for name in names]
    print_table(columns, [[lane[name] for name in names] for lane in found])
