"""Django's migrations bring up a database that an earlier version of the inbox made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from surehook.inbox.django.store import DjangoStore
from surehook.inbox.sql import versions
from surehook.inbox.sql.versions import CAME, INDEXES
from surehook.ports.inbox import StoreError
from tests.inbox import djangos
from tests.inbox.djangos import Inbox
from tests.inbox.house import NOW, Clock, call, message, partner
from tests.inbox.test_versions import DATABASES, FIRST


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, ground_of: Callable[[str, str], tuple[str, str]]) -> str:
    return ground_of(request.param, "django")[1]


def version() -> int:
    return DjangoStore().run(lambda transaction: versions.of(transaction.connection))  # type: ignore[attr-defined]


def migrate(*words: Any, **choices: Any) -> None:
    call_command("migrate", *words, verbosity=0, **choices)


def test_the_first_migration_makes_the_tables_of_the_first_version_and_the_next_keeps_what_is_in_them(url):
    with djangos.at(url, migrated=False):
        migrate("surehook_inbox", "0001")
        assert version() == 1
        inbox = Inbox([partner()], clock=Clock())
        assert inbox.receive(call(*message("evt_1"), at=NOW)).status == 200
        inbox.on("partner")(lambda event, tx: None)
        with pytest.raises(StoreError, match=r"of version 1.*Django's `migrate`"):
            inbox.work()
        migrate()
        assert version() == versions.CURRENT
        call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)
        inbox.work()
        assert {one.id: (one.state, one.attempts) for one in inbox.events()} == {"evt_1": ("finalized", 1)}
        migrate("surehook_inbox", "0001")
        assert version() == 1
        assert len(inbox.events()) == 1
        inbox.close()


def test_who_receives_before_the_first_migration_is_told_once_what_to_run(tmp_path, caplog):
    with djangos.at(f"sqlite:///{tmp_path / 'shop.db'}", migrated=False):
        inbox = Inbox([partner()], clock=Clock())
        assert inbox.receive(call(*message("evt_1"), at=NOW)).status == 503
        (said,) = [one.getMessage() for one in caplog.records if one.name == "surehook.inbox"]
        assert said.endswith("; its tables are missing: `manage.py migrate` makes them")
        inbox.close()


def test_a_database_that_the_first_release_migrated_is_brought_up(url):
    """Whose tables were made by the text of that time, and whose history of migrations ends there."""
    with djangos.at(url, migrated=False):
        with connection.cursor() as cursor:
            for statement in (
                (FIRST / f"{url.partition(':')[0].partition('+')[0]}.sql").read_text().split(";\n")
            ):
                if statement.strip():
                    cursor.execute(statement)
        migrate("surehook_inbox", "0001", fake=True)
        migrate()
        assert version() == versions.CURRENT
        call_command("migrate", check_unapplied=True, verbosity=0)


def test_each_version_has_a_migration_of_its_own():
    from importlib import import_module

    for number, name in ((1, "0001_initial"), (2, "0002_tries"), (3, "0003_documents_due")):
        (operation,) = import_module(f"surehook.inbox.django.migrations.{name}").Migration.operations
        assert tuple(operation.names) == CAME[number] + INDEXES.get(number, ())
    assert versions.CURRENT == 3
