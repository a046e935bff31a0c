"""Stages of receipts: words are joined in any order, any number of times, and never lower what is known."""

from __future__ import annotations

from itertools import combinations_with_replacement, permutations, product

import pytest

from surehook.core.receipt import CODE_CHARS, NOTE_CHARS, STAGES, Word, join, rank, word

# Every way in which one stage can be told, at two instants, with and without a reason.
TOLD = [
    word(stage, at, accepted_at=accepted, code=code)
    for stage, at, accepted, code in product(STAGES, (5, 7), (None, 1), (None, "a", "b"))
]


@pytest.mark.parametrize(
    ("known", "told", "then"),
    [
        ("accepted", "accepted", "accepted"), ("accepted", "processed", "processed"),
        ("accepted", "rejected", "rejected"), ("accepted", "finalized", "finalized"),
        ("processed", "accepted", "processed"), ("processed", "processed", "processed"),
        ("processed", "rejected", "rejected"), ("processed", "finalized", "finalized"),
        ("rejected", "accepted", "rejected"), ("rejected", "processed", "rejected"),
        ("rejected", "rejected", "rejected"), ("rejected", "finalized", "finalized"),
        ("finalized", "accepted", "finalized"), ("finalized", "processed", "finalized"),
        ("finalized", "rejected", "finalized"), ("finalized", "finalized", "finalized"),
    ],
)  # fmt: skip
def test_the_stage_machine(known, told, then):
    for at, later in product((5, 7), repeat=2):
        joined = join(word(known, at, code="k"), word(told, later, code="t"))
        assert joined.stage == then
        assert joined.code == ("t" if told == then and (known != then or later >= at) else "k")


def test_every_pair_says_the_same_in_both_orders_and_again():
    for one, other in combinations_with_replacement(TOLD, 2):
        joined = join(one, other)
        assert joined == join(other, one)
        assert joined == join(joined, one) == join(joined, other) == join(joined, joined)
        assert rank(joined.stage) == max(rank(one.stage), rank(other.stage))


def test_every_three_say_the_same_in_every_order_and_grouping():
    for three in combinations_with_replacement(TOLD[::2], 3):
        ends = {join(join(a, b), c) for a, b, c in permutations(three)}
        ends |= {join(a, join(b, c)) for a, b, c in permutations(three)}
        assert len(ends) == 1


def test_every_stage_keeps_its_latest_instant():
    told = [word("rejected", 3, code="no"), word("processed", 2), word("finalized", 9), word("rejected", 4)]
    joined = told[0]
    for one in told[1:]:
        joined = join(joined, one)
    assert joined == Word(processed_at=2, rejected_at=4, finalized_at=9)


def test_reasons_are_cut_to_their_bounds():
    told = word("rejected", 1, code="c" * 999, note="n" * 999)
    assert (told.code, told.note) == ("c" * CODE_CHARS, "n" * NOTE_CHARS)


def test_a_word_says_something():
    with pytest.raises(ValueError, match="without a stage"):
        _ = Word(code="x").stage
