"""Django in a test's hands: configured once for a process, pointed at one database after another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import django
import pymysql
from django.core.management import call_command
from django.db import connections

from tests.inbox.house import Clock, House, partner
from tests.inbox.shop.settings import database

pymysql.install_as_MySQLdb()  # the driver that Django names needs a C compiler
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.inbox.shop.settings")
django.setup()

from surehook.inbox.django import Inbox  # noqa: E402 (they need the settings)
from surehook.inbox.django import pages as admin_pages  # noqa: E402, F401


@contextmanager
def at(url: str, *, migrated: bool = True, alias: str = "default", **choices: Any) -> Iterator[None]:
    """A database of Django's is that of the URL, in its newest state; its connection is closed afterwards."""
    before = connections.settings.get(alias)
    forget(alias)
    connections.settings[alias] = connections.configure_settings(
        {"default": {}, alias: database(url, **choices)}
    )[alias]
    try:
        if migrated:
            call_command("migrate", database=alias, verbosity=0)
        yield
    finally:
        forget(alias)
        if before is None:
            del connections.settings[alias]
        else:
            connections.settings[alias] = before


def forget(alias: str) -> None:
    """Close this thread's connection, and let the next one be made anew."""
    if hasattr(connections._connections, alias):
        connections[alias].close()
        del connections[alias]


class DjangoHouse(House):
    """The house of the suite that every store passes, on Django's default database."""

    def __init__(self, runner: Any, **options: Any) -> None:
        self.kind, self._runner = "sync", runner
        self.clock = options.pop("clock", None) or Clock()
        given = options.pop("sources", None) or [partner()]
        self.inbox = Inbox(given, clock=self.clock, **options)

    def prepare(self) -> DjangoHouse:
        self.sql("create table effects (event_id varchar(255) not null, word varchar(255))")
        return self

    def twin(self, **options: Any) -> DjangoHouse:
        return DjangoHouse(self._runner, clock=self.clock, **options)

    def sql(self, statement: str, **values: Any) -> list[Any]:
        for name in values:
            statement = statement.replace(f":{name}", f"%({name})s")
        with connections["default"].cursor() as cursor:
            cursor.execute(statement, values or None)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def at_once(self, calls: list[Any]) -> list[Any]:
        def one(call: Any) -> Any:
            try:
                return self.inbox.receive(call)
            finally:
                connections["default"].close()  # as Django does at the end of a request

        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(one, calls))

    def write(self, tx: Any, event_id: str, word: Any = None) -> None:
        with tx.cursor() as cursor:
            cursor.execute("insert into effects (event_id, word) values (%s, %s)", [event_id, word])
