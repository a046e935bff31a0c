"""What the database's errors are to us, in words that name a cause."""

from __future__ import annotations

import asyncpg
import pytest

from surehook.ledgers.postgres.errors import Lost, translated


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TimeoutError(), "TimeoutError"),
        (ConnectionResetError("reset by peer"), "reset by peer"),
        (
            asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
            "an answer",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_lost_connection_says_why_in_words(error: Exception, words: str) -> None:
    told = translated(error)
    assert isinstance(told, Lost)
    assert str(told).endswith(words)
