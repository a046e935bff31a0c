"""`surehook outbox`: publishes what an application wrote in its own transactions, and shows what waits."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from surehook.cli.commands import group
from surehook.cli.output import ApiObject, Json, document, line, note, print_record
from surehook.cli.server import Key, Url
from surehook.core.outbox_tables import TABLE

if TYPE_CHECKING:
    from surehook.config import Settings
    from surehook.core.outbox import OutboxRow
    from surehook.outbox.stores import RowsInDatabase

R = TypeVar("R")
PATIENCE_S = 30.0  # of `flush`, in which nothing can be published

app = group("The outbox of a publishing application: tables, the relay, what waits.")

Database = Annotated[
    str | None,
    typer.Option(
        "--database", metavar="URL", help="The application's database.", show_default="SUREHOOK_OUTBOX_URL"
    ),
]
TableName = Annotated[str, typer.Option("--table", help="Of the rows, with its schema if it needs one.")]
Limit = Annotated[int, typer.Option(min=1, max=100_000, help="At most so many, oldest first.")]


@app.command()
def ddl(
    dialect: Annotated[str, typer.Option(help="sqlite, postgresql, mysql or mariadb.")] = "postgresql",
    table: TableName = TABLE,
    down: Annotated[bool, typer.Option("--down", help="Print how to remove the tables.")] = False,
) -> None:
    """Print the tables as SQL."""
    from surehook.cli.errors import USAGE, CommandError
    from surehook.core.outbox_tables import DIALECTS, create, drop

    known = next((each for each in DIALECTS if each == ("mysql" if dialect == "mariadb" else dialect)), None)
    if known is None:
        raise CommandError(
            f"there is no dialect {dialect!r}", hint="sqlite, postgresql, mysql, mariadb", code=USAGE
        )
    for statement in drop(known, table) if down else create(known, table):
        line(f"{statement};")


@app.command()
def upgrade(database: Database = None, table: TableName = TABLE) -> None:
    """Create the tables; where they are there already, nothing is done."""
    made = _ask(database, table, lambda store: store.create())
    note("the tables are there now" if made else "the tables were there already")


@app.command()
def run(database: Database = None, table: TableName = TABLE, url: Url = None, api_key: Key = None) -> None:
    """Publish what is written, until SIGTERM or Ctrl-C. Several may run: one reads, the others stand by."""
    asyncio.run(_publish(database, table, url, api_key, until_empty=False))


@app.command()
def flush(database: Database = None, table: TableName = TABLE, url: Url = None, api_key: Key = None) -> None:
    """Publish what waits, and end."""
    asyncio.run(_publish(database, table, url, api_key, until_empty=True))


@app.command()
def status(database: Database = None, table: TableName = TABLE, json: Json = False) -> None:
    """Count the rows that wait and that were put aside, and say how old the oldest is."""
    from surehook.cli.human_times import clock_ms
    from surehook.core import instants

    found = _ask(database, table, lambda store: store.status())
    oldest = found["oldest_at"]
    print_record(
        {
            "waiting": found["waiting"],
            "refused": found["refused"],
            "oldest_at": instants.render_optional(oldest),
            "lag_s": 0.0 if oldest is None else max(0, clock_ms() - oldest) / 1000,
        },
        json=json,
    )


@app.command("list")
def list_rows(
    database: Database = None,
    table: TableName = TABLE,
    refused: Annotated[
        bool, typer.Option("--refused", help="Rows that were put aside, with the reasons.")
    ] = False,
    limit: Limit = 50,
    json: Json = False,
) -> None:
    """List the rows that wait."""
    from surehook.cli.tables import Column, print_table

    if refused:
        aside = _ask(database, table, lambda store: store.aside(limit))
        shapes = [{**_shape(row), "code": code, "reason": reason} for row, code, reason, _ in aside]
    else:
        shapes = [_shape(row) for row in _ask(database, table, lambda store: store.waiting(limit))]
    if json:
        document({"data": shapes, "next": None})
    elif shapes:
        names = (
            ("code", "reason", "tenant", "type", "id")
            if refused
            else ("created_at", "tenant", "type", "subject", "id")
        )
        print_table([Column(name) for name in names], [[shape[name] for name in names] for shape in shapes])
    else:
        note("nothing was put aside" if refused else "nothing waits")


@app.command()
def retry(database: Database = None, table: TableName = TABLE, limit: Limit = 1_000) -> None:
    """Put rows that were put aside into the outbox again, behind all others."""
    note(f"wait again: {_ask(database, table, lambda store: store.retry(limit)):,}")


@app.command()
def prune(
    older: Annotated[str, typer.Option(help="Put aside so long ago, such as 30d.")],
    database: Database = None,
    table: TableName = TABLE,
) -> None:
    """Delete rows that were put aside. What waits is never deleted."""
    from surehook.cli.human_times import clock_ms, duration_s

    before = clock_ms() - int(duration_s(older) * 1000)
    note(f"deleted: {_ask(database, table, lambda store: store.prune(before)):,}")


def _shape(row: OutboxRow) -> ApiObject:
    from surehook.core import instants

    return {
        "id": row.id, "type": row.type, "tenant": row.tenant, "subject": row.subject, "sequence": row.sequence,
        "created_at": instants.render(row.created_at),
    }  # fmt: skip


def _store(settings: Settings, table: str) -> RowsInDatabase:
    from surehook.cli.errors import USAGE, CommandError

    if settings.outbox_url is None:
        raise CommandError(
            "which database?", hint="give --database URL, or set SUREHOOK_OUTBOX_URL", code=USAGE
        )
    from surehook.inbox.sql.engines import engine
    from surehook.outbox.stores import RowsInDatabase

    return RowsInDatabase(engine(settings.outbox_url), table=table)


def _ask(database: str | None, table: str, work: Callable[[RowsInDatabase], R]) -> R:
    """Do something with the rows. Raises CommandError where the database cannot be asked."""
    from surehook.cli.errors import UNREACHABLE, CommandError
    from surehook.config import Settings
    from surehook.ports.outbox import RowsAway

    store = _store(Settings.load(flags={"outbox_url": database}), table)
    try:
        return work(store)
    except RowsAway as error:
        has_none = any(said in str(error) for said in ("no such table", "does not exist", "doesn't exist"))
        hint = (
            "`surehook outbox upgrade` makes the tables"
            if has_none
            else "is it running, and is the URL right?"
        )
        raise CommandError(f"the database says: {error}", hint=hint, code=UNREACHABLE) from None
    finally:
        store.close()


async def _publish(
    database: str | None, table: str, url: str | None, api_key: str | None, *, until_empty: bool
) -> None:
    from surehook.cli.errors import UNREACHABLE, CommandError
    from surehook.client import AsyncClient
    from surehook.config import Settings
    from surehook.outbox.over_http import OverHttp
    from surehook.outbox.relay import FlushGivenUp, Relay
    from surehook.outbox.stores import RowsInThread

    settings = Settings.load(flags={"outbox_url": database, "url": url, "api_key": api_key})
    store = RowsInThread(_store(settings, table))
    async with AsyncClient(settings.server_url, settings.api_key, patience_s=0) as client:
        loop = asyncio.get_running_loop()
        relay = Relay(store, OverHttp(client), sleep=asyncio.sleep, monotonic=loop.time, tell=note)
        work = asyncio.ensure_future(relay.flush(patience_s=PATIENCE_S) if until_empty else relay.run())
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, work.cancel)
        if not until_empty:
            note(f"publishing to {settings.server_url}, until SIGTERM or Ctrl-C")
        try:
            await work
        except asyncio.CancelledError:
            pass
        except FlushGivenUp as error:
            raise CommandError(
                f"not everything is published: {error}", hint="`surehook outbox status`", code=UNREACHABLE
            ) from None
        finally:
            note(f"{relay.published:,} published, {relay.refused:,} put aside")
