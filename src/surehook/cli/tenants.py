"""`surehook tenants`."""

from __future__ import annotations

from typing import Annotated

import typer

from surehook.cli.commands import group
from surehook.cli.human_times import local
from surehook.cli.output import Json, note, print_record
from surehook.cli.server import Cursor, Key, Limit, Url, Wide, Yes, changes, confirm, listing, server
from surehook.cli.tables import Column

app = group("Tenants: whose customers receive.")

Id = Annotated[str, typer.Argument(metavar="TENANT")]


@app.command("list")
def list_tenants(
    limit: Limit = 50,
    cursor: Cursor = None,
    wide: Wide = False,
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """List tenants, newest first."""
    with server(url, key) as client:
        listing(
            client,
            "/v1/tenants",
            {},
            limit=limit,
            cursor=cursor,
            json=json,
            wide=wide,
            columns=(
                Column("id"),
                Column("name", least=10),
                Column("strict", rank=1),
                Column("created", rank=2),
            ),
            row=lambda t: [t["id"], t["name"], t["strict"], local(t["created_at"])],
            nothing="no tenants; make one with `surehook tenants create NAME`",
        )


@app.command()
def show(tenant: Id, json: Json = False, url: Url = None, key: Key = None) -> None:
    """Show one tenant."""
    with server(url, key) as client:
        print_record(client.tenants.get(tenant), json=json)


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name for people.")],
    id: Annotated[str | None, typer.Option(help="Your own id: 1 to 64 of a-z, 0-9, _ and -.")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse events whose type is not registered.")
    ] = False,
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Create a tenant."""
    with server(url, key) as client:
        print_record(client.tenants.create(id=id, name=name, strict=strict), json=json)


@app.command()
def rename(
    tenant: Id,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Change a tenant's name."""
    with server(url, key) as client:
        print_record(client.tenants.update(tenant, name=name), json=json)


@app.command()
def update(
    tenant: Id,
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    strict: Annotated[
        bool | None,
        typer.Option(
            "--strict/--no-strict",
            help="Refuse events whose type is not registered, or take them.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Change what is given; everything else stays."""
    given = {"name": name, "strict": strict}
    fields = changes({name: value for name, value in given.items() if value is not None}, "--name, --strict")
    with server(url, key) as client:
        print_record(client.tenants.update(tenant, **fields), json=json)


@app.command()
def delete(tenant: Id, yes: Yes = False, url: Url = None, key: Key = None) -> None:
    """Delete a tenant that has no endpoints and nothing under way."""
    confirm(f"Delete tenant {tenant}?", yes=yes)
    with server(url, key) as client:
        client.tenants.delete(tenant)
    note(f"deleted {tenant}")
