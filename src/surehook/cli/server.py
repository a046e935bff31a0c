"""Options and client of commands that ask the server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from surehook.cli.output import ApiObject, document, note

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from surehook.cli.tables import Column
    from surehook.cli.tracked_client import TrackedClient
    from surehook.config import Settings

# Not `--url`: that could mean an endpoint's address, which would then be sent the key.
Url = Annotated[
    str | None,
    typer.Option("--server", help="Address of the server.", show_default="SUREHOOK_URL, else host and port"),
]
Key = Annotated[str | None, typer.Option("--api-key", help="API key.", show_default="SUREHOOK_API_KEY")]
Limit = Annotated[int, typer.Option(min=1, max=100_000, help="How many entries, newest first.")]
Cursor = Annotated[str | None, typer.Option(help="Go on where an earlier list ended.")]
Tenant = Annotated[
    str | None, typer.Option(help="Only this tenant's; * for all.", show_default="SUREHOOK_TENANT")
]
Wide = Annotated[bool, typer.Option("--wide", "-w", help="Every column, whole, however wide the terminal.")]
Since = Annotated[str | None, typer.Option(help="From then on: RFC 3339, or 30m, 6h, 7d ago.")]
Until = Annotated[str | None, typer.Option(help="Before then: RFC 3339, or 30m, 6h, 7d ago.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

ALL = "*"  # all tenants; never a tenant's id
PAGE_MAX = 200  # entries of one answer; the server's bound


@contextmanager
def server(url: str | None, key: str | None) -> Iterator[TrackedClient]:
    """A client for the server of the settings. It does not retry: a person sees at once what is wrong."""
    settings = settings_for(url, key)
    from surehook.cli.tracked_client import TrackedClient

    with TrackedClient(settings.server_url, settings.api_key, patience_s=0) as client:
        yield client


def settings_for(url: str | None, key: str | None = None, tenant: str | None = None) -> Settings:
    from surehook.config import Settings

    return Settings.load(flags={"url": url, "api_key": key, "tenant": tenant})


def tenant_of(settings: Settings) -> str:
    """The tenant of a command. Raises CommandError where none is given or set."""
    if settings.tenant is None:
        from surehook.cli.errors import USAGE, CommandError

        raise CommandError("which tenant?", hint="give --tenant NAME, or set SUREHOOK_TENANT", code=USAGE)
    return settings.tenant


def only_tenant(url: str | None, key: str | None, tenant: str | None) -> str | None:
    """The tenant to list: the given one, else that of the settings; None for `*`."""
    chosen = settings_for(url, key, None if tenant == ALL else tenant).tenant
    return None if tenant == ALL else chosen


def listing(
    client: TrackedClient,
    path: str,
    filters: ApiObject,
    *,
    limit: int,
    cursor: str | None,
    json: bool,
    wide: bool,
    columns: Sequence[Column],
    row: Callable[[ApiObject], Sequence[object]],
    nothing: str,
) -> None:
    """Fetch up to `limit` entries, page by page, and print them with a hint how to get more."""
    entries: list[ApiObject] = []
    position = cursor
    while True:
        size = min(PAGE_MAX, limit - len(entries))
        page = client.call("GET", path, query={**filters, "limit": size, "cursor": position})
        entries += page["data"]
        position = page["next"]
        if position is None or len(entries) >= limit:
            break
    if json:
        document({"data": entries, "next": position})
        return
    if entries:
        from surehook.cli.tables import print_table

        print_table(columns, [row(entry) for entry in entries], wide=wide)
    else:
        about = filters.get("tenant")
        note(nothing if about is None else f"{nothing} (of tenant {about})")
        _doubt(client, filters.get("endpoint"))
    if position is not None:
        note(f"more: --cursor {position}")


def _doubt(client: TrackedClient, endpoint: str | None) -> None:
    """Note that the endpoint of an empty list does not exist. No error: deliveries of deleted ones are still listed."""
    from surehook.client import Refused

    if endpoint is None:
        return
    try:
        client.endpoints.get(endpoint)
    except Refused as error:
        if error.status == 404:
            note(f"there is no endpoint {endpoint}, or not any more")


def changes(fields: ApiObject, options: str) -> ApiObject:
    """The given fields. Raises CommandError where there are none."""
    if not fields:
        from surehook.cli.errors import USAGE, CommandError

        raise CommandError("nothing to change", hint=f"give {options}", code=USAGE)
    return fields


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something that cannot be undone. Without a terminal only --yes is an answer."""
    import sys

    if yes:
        return
    if not sys.stdin.isatty():
        from surehook.cli.errors import USAGE, CommandError

        raise CommandError(f"{question} Nobody is here to answer.", hint="add --yes", code=USAGE)
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        from surehook.cli.errors import CommandError

        raise CommandError("nothing was done")
