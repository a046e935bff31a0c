"""`manage.py surehook_outbox run|flush|status`: publish what was committed, over Django's own connections."""

from __future__ import annotations

import asyncio

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from surehook.core.errors import SurehookError
from surehook.host.clock import SystemClock
from surehook.outbox.running import publish
from surehook.outbox.stores import RowsInDatabase, rows_over
from surehook.ports.outbox import RowsAway

WANTED = 'SUREHOOK_OUTBOX = {"url": "http://HOST:PORT", "key": "…"}'


class Command(BaseCommand):
    """The relay of a Django application."""

    help = "Publish what was committed to the outbox: run until SIGTERM or Ctrl-C, flush and end, or show what waits."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=("run", "flush", "status"))
        parser.add_argument("--database", default="default", help="Alias of the database with the outbox.")

    def handle(self, *args: object, **options: str) -> None:
        rows = _rows(options["database"])
        try:
            if options["what"] == "status":
                self._status(rows)
            else:
                url, key = _server()
                asyncio.run(publish(rows, url, key, until_empty=options["what"] == "flush", tell=self._tell))
        except RowsAway as error:
            raise CommandError(f"{error} (manage.py migrate makes the tables)") from error
        except (SurehookError, ValueError) as error:
            raise CommandError(str(error)) from error
        finally:
            rows.close()

    def _status(self, rows: RowsInDatabase) -> None:
        found = rows.count()
        lag_s = found.lag_s(SystemClock().now())
        self.stdout.write(f"waiting {found.waiting}, refused {found.refused}, lag {lag_s:.1f} s")

    def _tell(self, said: str) -> None:
        self.stderr.write(said)


def _server() -> tuple[str, str | None]:
    given = getattr(settings, "SUREHOOK_OUTBOX", {})
    if not isinstance(given, dict) or not given.keys() <= {"url", "key"} or "url" not in given:
        raise CommandError(f"the settings do not say where the server is: {WANTED}")
    return str(given["url"]), given.get("key")


def _rows(alias: str) -> RowsInDatabase:
    """Rows over connections that are made as Django makes them, with all that the settings say of them."""
    connection = connections[alias]
    module: str = connection.Database.__name__.partition(".")[0]  # type: ignore[attr-defined]  # the driver, which every backend names
    driver = {"sqlite3": "pysqlite"}.get(module, module.lower())
    database = str(connection.settings_dict["NAME"]) if connection.vendor == "sqlite" else None
    return rows_over(
        f"{connection.vendor}+{driver}",
        database,
        lambda: connection.get_new_connection(connection.get_connection_params()),
    )
