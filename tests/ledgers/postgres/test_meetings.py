"""A batch under way and a configuration that changes."""

from __future__ import annotations

import pytest

from surehook.ledgers import changes as notes
from surehook.ledgers.postgres.statements import query


@pytest.mark.parametrize("name", ["accept", "accept_keyed"])
def test_the_statement_compares_a_batch_with_as_many_changes_as_the_other_ledgers_do(name: str) -> None:
    assert f"when c.version > $2 + {notes.MEETINGS_MOST} then true" in query(name)
