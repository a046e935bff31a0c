"""The sentences say what the numbers say."""

from __future__ import annotations

import pytest

from surehook.demo.kept import NOTHING, DatabaseContent
from surehook.demo.memory import ReceiverMemory, Sight
from surehook.demo.words import explain
from tests.demo.test_tally import delivery, totals_of

MEMORIES = {"inbox": ReceiverMemory({"d1": Sight(2, True, 1)}, unverified=1)}


def said(kept: DatabaseContent = NOTHING, **changes: int) -> str:
    return "\n".join(
        explain(totals_of(**changes), [delivery("d1", "parked", reason="breaker")], MEMORIES, kept)
    )


def test_everything_that_is_counted_is_said() -> None:
    words = said(DatabaseContent({"e1": "finalized"}, {"e1": 1}, early=1, documents={"sent": 1}))
    for part in (
        "receivers saw 2 requests; signatures that did not hold: 1",
        "2 open, kept until their receiver answers: 1 breaker",
        "1 dead letters",
        "4 requests came again",
        "the inbox stored 1 events, 1 too early; documents: 1 sent",
        "2 events took effect, each once and in its order",
    ):
        assert part in words
    assert max(map(len, words.splitlines())) <= 70, "with the time before it, a line of a terminal"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"lost": 3}, "3 lost"),
        ({"applied_twice": 3}, "3 events took effect more than once"),
        ({"unordered": 3}, "3 events took effect in a wrong order"),
        ({"stuck": 3}, "3 events stand still in the inbox"),
    ],
)
def test_what_went_wrong_is_said(changes: dict[str, int], sentence: str) -> None:
    assert sentence in said(**changes)
    assert sentence not in said()


def test_what_waits_for_another_is_said() -> None:
    assert "1 events wait in the inbox for one before them" in said(DatabaseContent({"e1": "held"}, {}))
