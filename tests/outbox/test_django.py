"""Django's own connections, in `transaction.atomic`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from surehook.core.errors import Problem
from surehook.outbox import Outbox
from tests import servers
from tests.cli.fake_api import answer, fake_api
from tests.outbox.conftest import OutboxDatabase, database_of

OUTBOX = Outbox(tenant="acme")


@pytest.fixture(params=["sqlite", "postgresql", pytest.param("mariadb", marks=pytest.mark.slow)])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OutboxDatabase]:
    from tests.inbox import djangos

    for found in database_of(request.param, tmp_path):
        with djangos.at(found.url, migrated=False):
            yield found


def test_an_event_is_written_in_the_block_that_is_open(db: OutboxDatabase) -> None:
    from django.db import connection, connections, transaction

    with transaction.atomic():
        OUTBOX.put(connection, "a", {"n": 1}, subject="doc_42", numbered=True)
        OUTBOX.put(connections["default"], "b", {"percent": "100 %s"}, subject="doc_42", numbered=True)
    with transaction.atomic():
        OUTBOX.put(connection, "c", 3, subject="doc_42", numbered=True)
        transaction.set_rollback(True)
    found = db.ask("SELECT type, payload, sequence FROM surehook_outbox ORDER BY position")
    assert found == [("a", '{"n":1}', 1), ("b", '{"percent":"100 %s"}', 2)]


def test_without_a_block_nothing_is_written(db: OutboxDatabase) -> None:
    from django.db import connection

    with pytest.raises(Problem, match="no_transaction"):
        OUTBOX.put(connection, "a", 1)
    assert db.ask("SELECT count(*) FROM surehook_outbox") == [(0,)]


PUT = """
import django
django.setup()
from django.db import connection, transaction
from surehook.outbox import Outbox
with transaction.atomic():
    for number in range(3):
        Outbox(tenant="acme").put(connection, "a", {"n": number}, subject="doc_42", numbered=True)
"""


@pytest.fixture(params=["sqlite", "postgresql", pytest.param("mariadb", marks=pytest.mark.slow)])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Runs a command of the application's; its output, or its error where it fails."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path / 'app.db'}"
        else:
            server: Any = servers.postgres() if request.param == "postgresql" else servers.mariadb()
            url = stack.enter_context(server.database())
        env = os.environ | {"SHOP_DATABASE": url, "DJANGO_SETTINGS_MODULE": "tests.outbox.django_settings"}

        def run(*words: str, **more: str) -> str:
            done = subprocess.run(
                [sys.executable, *words], env=env | more, capture_output=True, text=True, timeout=60
            )
            return done.stdout + done.stderr

        yield run


@pytest.mark.slow
def test_the_app_makes_the_tables_and_its_command_publishes(shop: Callable[..., str]) -> None:
    manage = ("-m", "django")
    assert "Applying surehook_outbox.0001_initial... OK" in shop(*manage, "migrate")
    assert shop("-c", PUT) == ""
    assert shop(*manage, "surehook_outbox", "status").startswith("waiting 3, refused 0, lag ")
    refusal = {"status": 422, "code": "unknown_tenant", "detail": "There is none."}
    taken = {"id": "evt_1", "deliveries": 1}
    with fake_api(**{"POST /v1/events/batch": answer(202, [taken, refusal, taken])}) as api:
        said = shop(*manage, "surehook_outbox", "flush", SHOP_SERVER=api.url)
        sent = api.last.json
    assert [(each["data"], each["sequence"]) for each in sent] == [({"n": n}, n + 1) for n in range(3)]
    assert "unknown_tenant" in said and said.endswith("2 published, 1 put aside\n")
    assert shop(*manage, "surehook_outbox", "status") == "waiting 0, refused 1, lag 0.0 s\n"
    assert "Unapplying surehook_outbox.0001_initial... OK" in shop(
        *manage, "migrate", "surehook_outbox", "zero"
    )
    assert shop(*manage, "surehook_outbox", "status").startswith("CommandError: ")


@pytest.mark.slow
def test_the_sql_of_the_migration_is_that_of_the_command(shop: Callable[..., str]) -> None:
    assert "CREATE TABLE surehook_outbox (" in shop("-m", "django", "sqlmigrate", "surehook_outbox", "0001")
    assert "settings do not say" not in shop("-m", "django", "surehook_outbox", "status")
