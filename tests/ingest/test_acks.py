"""One acknowledgement for many messages never covers one that is not done."""

from __future__ import annotations

import random

from surehook.ingest.acks import Acks


def test_nothing_is_acknowledged_past_a_message_that_is_not_done() -> None:
    acks = Acks()
    for tag in (1, 2, 3, 4):
        acks.took(tag)
    acks.done(2)
    acks.done(3)
    assert acks.due() is None
    acks.done(1)
    assert acks.due() == 3
    assert acks.due() is None
    acks.done(4)
    assert acks.due() == 4


def test_in_whatever_order_they_are_done_all_are_acknowledged_in_the_end() -> None:
    chance = random.Random(1)
    for _ in range(200):
        acks, order, done, last = Acks(), list(range(1, 30)), set(), 0
        for tag in order:
            acks.took(tag)
        chance.shuffle(order)
        for tag in order:
            acks.done(tag)
            done.add(tag)
            if chance.random() < 0.5 and (highest := acks.due()) is not None:
                assert set(range(last + 1, highest + 1)) <= done
                last = highest
        assert (acks.due() or last) == 29
