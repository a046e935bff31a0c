"""Django's own connections, in `transaction.atomic`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from surehook.core.errors import Problem
from surehook.outbox import Outbox
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
