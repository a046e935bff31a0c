"""`surehook outbox`: publishes what an application wrote in its own transactions, and shows what waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from surehook.cli.commands import group
from surehook.cli.output import ApiObject, Json, document, line, note, print_record
from surehook.cli.server import Key, Url, Yes, confirm
from surehook.cli.worker_metrics import Metrics, serve_metrics
from surehook.core.outbox_tables import TABLE

if TYPE_CHECKING:
    from surehook.cli.errors import CommandError
    from surehook.config import Settings
    from surehook.core.outbox import OutboxRow
    from surehook.outbox.relay import Relay
    from surehook.outbox.stores import RowsInDatabase
    from surehook.ports.outbox import RowsAway
    from surehook.telemetry.prometheus import OutboxCollector

R = TypeVar("R")

app = group("The outbox of a publishing application: tables, the relay, what waits.")

Database = Annotated[
    str | None,
    typer.Option(
        "--database", metavar="URL", help="The application's database.", show_default="SUREHOOK_OUTBOX_URL"
    ),
]
TableName = Annotated[
    str | None,
    typer.Option(
        "--table",
        help="Of the rows, with its schema if it needs one.",
        show_default=f"SUREHOOK_OUTBOX_TABLE, or {TABLE}",
    ),
]
Limit = Annotated[int, typer.Option(min=1, max=100_000, help="At most so many, oldest first.")]


@app.command()
def ddl(
    dialect: Annotated[str, typer.Option(help="sqlite, postgresql, mysql or mariadb.")] = "postgresql",
    table: TableName = None,
    down: Annotated[bool, typer.Option("--down", help="Print how to remove the tables.")] = False,
) -> None:
    """Print the tables as SQL."""
    from surehook.cli.errors import USAGE, CommandError
    from surehook.outbox.ddl import statements

    try:
        for statement in statements(dialect, _settings(table=table).outbox_table or TABLE, down=down):
            line(f"{statement};")
    except ValueError as error:
        raise CommandError(str(error), hint="--dialect postgresql", code=USAGE) from None


@app.command()
def upgrade(database: Database = None, table: TableName = None) -> None:
    """Create the tables; where they are there already, nothing is done."""
    made = _ask(database, table, lambda store: store.create(), makes=True)
    note("the tables are there now" if made else "the tables were there already")


@app.command()
def run(
    database: Database = None,
    table: TableName = None,
    url: Url = None,
    api_key: Key = None,
    metrics: Metrics = None,
) -> int:
    """Publish what is written, until SIGTERM or Ctrl-C. Several may run: one reads, the others stand by."""
    return _publish(_settings(database, table, url, api_key), until_empty=False, metrics=metrics)


@app.command()
def flush(database: Database = None, table: TableName = None, url: Url = None, api_key: Key = None) -> int:
    """Publish what waits, and end: with 8 where rows were put aside, with 6 where nothing could be published for 30 s."""
    return _publish(_settings(database, table, url, api_key), until_empty=True)


@app.command()
def status(database: Database = None, table: TableName = None, json: Json = False) -> None:
    """Count the rows that wait and that were put aside, and say how old the oldest is."""
    from surehook.cli.human_times import clock_ms
    from surehook.core import instants

    found = _ask(database, table, lambda store: store.count())
    print_record(
        {
            "waiting": found.waiting,
            "refused": found.refused,
            "oldest_at": instants.render_optional(found.oldest_at),
            "lag_s": found.lag_s(clock_ms()),
        },
        json=json,
    )


@app.command("list")
def list_rows(
    database: Database = None,
    table: TableName = None,
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
def retry(database: Database = None, table: TableName = None, limit: Limit = 1_000) -> None:
    """Put rows that were put aside into the outbox again, behind all others."""
    note(f"wait again: {_ask(database, table, lambda store: store.retry(limit)):,}")


@app.command()
def prune(
    older: Annotated[str, typer.Option(help="Put aside so long ago, such as 30d.")],
    database: Database = None,
    table: TableName = None,
    yes: Yes = False,
) -> None:
    """Delete rows that were put aside. What waits is never deleted."""
    from surehook.cli.human_times import clock_ms, duration_s

    before = clock_ms() - int(duration_s(older) * 1000)
    confirm(f"Delete the events that were put aside {older} ago or earlier?", yes=yes)
    note(f"deleted: {_ask(database, table, lambda store: store.prune(before)):,}")


def _shape(row: OutboxRow) -> ApiObject:
    from surehook.core import instants

    return {
        "id": row.id, "type": row.type, "tenant": row.tenant, "subject": row.subject, "sequence": row.sequence,
        "created_at": instants.render_optional(row.created_at),
    }  # fmt: skip


def _settings(
    database: str | None = None, table: str | None = None, url: str | None = None, api_key: str | None = None
) -> Settings:
    from surehook.config import Settings
    from surehook.core.outbox_tables import check_table

    if table is not None:
        check_table(table)
    flags = {"outbox_url": database, "outbox_table": table, "url": url, "api_key": api_key}
    return Settings.load(flags=flags)


def _store(settings: Settings, *, makes: bool = False) -> RowsInDatabase:
    """The rows in the database of the settings: the outbox's own, or the ledger's where servers read the outbox in that.
    `makes`: a file of SQLite that is not there is made."""
    from surehook.cli.errors import USAGE, CommandError

    url = settings.outbox_url
    if url is None and settings.outbox_table is not None:
        url = settings.database_url.partition("?")[0]
    if url is None:
        raise CommandError(
            "which database?", hint="give --database URL, or set SUREHOOK_OUTBOX_URL", code=USAGE
        )
    path = url.partition("///")[2] if url.startswith("sqlite:") else None
    if path is not None and not makes and not Path(path).exists():
        raise CommandError(
            f"there is no file {path}", hint="is the URL right? four slashes: an absolute path", code=USAGE
        )
    from surehook.inbox.sql.engines import engine
    from surehook.outbox.stores import RowsInDatabase

    return RowsInDatabase(engine(url), table=settings.outbox_table or TABLE)


def _ask(
    database: str | None, table: str | None, work: Callable[[RowsInDatabase], R], *, makes: bool = False
) -> R:
    """Do something with the rows. Raises CommandError where the database cannot be asked."""
    from surehook.ports.outbox import RowsAway

    store = _store(_settings(database, table), makes=makes)
    try:
        return work(store)
    except RowsAway as error:
        raise _away(error) from None
    finally:
        store.close()


def _away(error: RowsAway) -> CommandError:
    from surehook.cli.errors import UNREACHABLE, CommandError

    said = str(error)
    hint = "is it running, and is the URL right?"
    if "schema" in said and "does not exist" in said:
        hint = "make the schema first; the application's role needs USAGE on it"
    elif "denied" in said:
        hint = "docs/publishing.md lists the rights of the relay's role"
    elif _lacks_table(said):
        hint = "`surehook outbox upgrade` makes the tables; is it the right database?"
    return CommandError(f"the database says: {said}", hint=hint, code=UNREACHABLE)


def _lacks_table(said: str) -> bool:
    return any(part in said for part in ("no such table", "does not exist", "doesn't exist"))


def _publish(settings: Settings, *, until_empty: bool, metrics: str | None = None) -> int:
    """Publish; the exit code. Raises CommandError where not all is published, or there is nothing to read from."""
    from surehook.cli.errors import INTERRUPTED, OK, PARTLY, UNREACHABLE, CommandError
    from surehook.outbox.relay import FlushGivenUp
    from surehook.outbox.running import FlushStopped, publish

    def begun(relay: Relay) -> None:
        if metrics is not None:
            note(f"metrics are at {serve_metrics(_collector(relay), metrics)}")

    def unreadable(error: RowsAway) -> None:
        if until_empty or _lacks_table(str(error)):
            raise _away(error) from None

    rows = _store(settings)
    try:
        relay = asyncio.run(
            publish(
                rows,
                settings.server_url,
                settings.api_key,
                until_empty=until_empty,
                tell=note,
                begun=begun,
                counts=metrics is not None,
                unreadable=unreadable,
            )
        )
    except FlushGivenUp as error:
        code = INTERRUPTED if isinstance(error, FlushStopped) else UNREACHABLE
        raise CommandError(
            f"not everything is published: {error}", hint="`surehook outbox status`", code=code
        ) from None
    return PARTLY if until_empty and relay.refused else OK


def _collector(relay: Relay) -> OutboxCollector:
    from surehook.cli.human_times import clock_ms
    from surehook.telemetry.prometheus import OutboxCollector

    return OutboxCollector(lambda: relay.figures(clock_ms()))
