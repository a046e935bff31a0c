"""Rows to core values."""

from __future__ import annotations

import pytest

from surehook.core.errors import LedgerUnavailable
from surehook.core.model import FIRST
from surehook.ledgers.postgres.rows import sharing_bodies

BODY = b"{}"


def row(event: bytes, body: bytes | None) -> tuple[object, ...]:
    return (b"id", event, b"endpoint", "acme", "a", FIRST, 1, 0, 0, body)


@pytest.mark.parametrize("at", range(3))
def test_a_body_that_came_with_any_row_is_that_of_all(at: int) -> None:
    rows = [row(b"one", BODY if at == place else None) for place in range(3)]
    assert [each.body for each in sharing_bodies([*rows, row(b"two", b"[]")])] == [BODY, BODY, BODY, b"[]"]


def test_a_lease_without_a_body_is_a_lost_answer() -> None:
    with pytest.raises(LedgerUnavailable):
        sharing_bodies([row(b"one", BODY), row(b"two", None)])
