"""`surehook event-types`."""

from __future__ import annotations

from typing import Annotated

import typer

from surehook.cli.commands import group
from surehook.cli.output import ApiObject, Json, print_record
from surehook.cli.server import Cursor, Key, Limit, Url, Wide, changes, listing, server
from surehook.cli.tables import Column

COLUMNS = (
    Column("name"),
    Column("version"),
    Column("schema", rank=1),
    Column("policy", rank=2, least=10),
    Column("description", rank=3, least=12),
)

app = group("Event types: names, schemas and policies of events.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="such as document.signed")]


@app.command("list")
def list_event_types(
    limit: Limit = 50,
    cursor: Cursor = None,
    wide: Wide = False,
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """List event types, newest first."""
    with server(url, key) as client:
        listing(
            client,
            "/v1/event-types",
            {},
            limit=limit,
            cursor=cursor,
            json=json,
            wide=wide,
            columns=COLUMNS,
            row=lambda t: [
                t["name"],
                ", ".join(
                    [t["schema_version"], *sorted(set(t.get("schemas") or ()) - {t["schema_version"]})]
                ),
                t["schema"] is not None or t.get("schemas") is not None,
                t["policy"],
                t["description"],
            ],
            nothing="no event types; an unregistered type is accepted unless its tenant is strict",
        )


@app.command()
def show(name: Name, json: Json = False, url: Url = None, key: Key = None) -> None:
    """Show one event type."""
    with server(url, key) as client:
        print_record(client.event_types.get(name), json=json)


@app.command()
def create(
    name: Name,
    description: Annotated[str | None, typer.Option(help="A note for people.")] = None,
    schema: Annotated[str | None, typer.Option(help="JSON Schema of its data: JSON, @file or - .")] = None,
    schema_version: Annotated[
        str | None,
        typer.Option(help="Version of that schema, and of events that name none.", show_default="1"),
    ] = None,
    schemas: Annotated[
        str | None,
        typer.Option(
            help='Schemas of other versions, by version: {"2": {…}} as JSON, @file or - . The schema_version of an '
            "event chooses."
        ),
    ] = None,
    policy: Annotated[str | None, typer.Option(help="A policy's name, a JSON object, or @file.")] = None,
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Register an event type."""
    fields = _fields(description, schema, schema_version, schemas, policy)
    with server(url, key) as client:
        print_record(client.event_types.create(name=name, **fields), json=json)


@app.command()
def update(
    name: Name,
    description: Annotated[str | None, typer.Option(help="A note for people.")] = None,
    schema: Annotated[
        str | None, typer.Option(help="JSON Schema of its data: JSON, @file or - ; null takes it away.")
    ] = None,
    schema_version: Annotated[
        str | None, typer.Option(help="Version of that schema, and of events that name none.")
    ] = None,
    schemas: Annotated[
        str | None,
        typer.Option(
            help="Schemas of other versions, by version, in place of those before: JSON, @file or - ; null takes all away."
        ),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="A policy's name, a JSON object, or @file; null takes it away.")
    ] = None,
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Change what is given; everything else stays. A new schema judges what is published from now on."""
    options = "--description, --schema, --schema-version, --schemas, --policy"
    fields = changes(_fields(description, schema, schema_version, schemas, policy), options)
    with server(url, key) as client:
        print_record(client.event_types.update(name, **fields), json=json)


def _fields(
    description: str | None,
    schema: str | None,
    schema_version: str | None,
    schemas: str | None,
    policy: str | None,
) -> ApiObject:
    from surehook.cli.inputs import json_of, policy_of

    fields: ApiObject = {}
    if description is not None:
        fields["description"] = description
    if schema is not None:
        fields["schema"] = json_of(schema)
    if schema_version is not None:
        fields["schema_version"] = schema_version
    if schemas is not None:
        fields["schemas"] = json_of(schemas)
    if policy is not None:
        fields["policy"] = policy_of(policy)
    return fields
