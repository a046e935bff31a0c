"""Where claims look that pass some over: nothing that fell due is left to the pass, however long nobody looked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from surehook.core.model import FIRST, RETRY
from surehook.ledgers.late import LATE_MS
from surehook.ledgers.passes import (
    COMMIT_MS,
    FRESH_LOOKS,
    FRESH_MS,
    NEAR_MS,
    OWED_MS,
    WHOLE_MS,
    DueRange,
    Key,
    Passes,
)

from .making import NOW

LONG_AGO = NOW - 3_600_000
OWED_LOOKS = 8


def looks(passes: Passes, *, now: int, looks: int = 3, last: Key | None = None) -> list[tuple[int, int]]:
    """From when to when the parts of a call go, as none finds anything; `last`: each look ends there."""
    spans = []
    for part in passes.parts(FIRST, due_by=now + 500, now=now, looks=looks):
        spans.append((part.begin[0], part.end))
        part.reached(last if last is not None and part.begin < last else None)
    return spans


def test_a_first_call_looks_at_what_is_fresh_and_then_at_everything_before() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    fresh, missed, *_ = looks(passes, now=NOW)
    assert fresh == (NOW - FRESH_MS, NOW + 500)
    assert missed[0] < LONG_AGO and missed[1] == NOW - FRESH_MS
    assert not passes.is_behind(FIRST, now=NOW)


def test_calls_that_follow_each_other_leave_no_gap() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    for now in (NOW + 90, NOW + 700, NOW + 700 + NEAR_MS):
        before = passes._lanes[FIRST].upto[0]
        assert looks(passes, now=now)[0] == (before, now + 500)


def test_a_cut_look_is_followed_by_looks_at_what_is_fresh_and_then_at_what_it_left() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    cut = (NOW - FRESH_MS + 1, b"a")
    spans = looks(passes, now=NOW + 900, last=cut)
    just = NOW + 900 - FRESH_MS
    assert spans == [(NOW - FRESH_MS, NOW + 1_400), (just, NOW + 1_400), (cut[0], just)]
    assert not passes.is_behind(FIRST, now=NOW + 900) and passes.seen(FIRST, now=LONG_AGO) == just


def test_looks_at_what_is_fresh_follow_each_other_up_to_a_bound() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    begins = []
    for part in islice(passes.parts(FIRST, due_by=NOW + 500, now=NOW, looks=3, fresh=True), 100):
        begins.append(part.begin[0])
        part.reached((part.begin[0] + 10, b"a"))
    assert begins == [NOW - FRESH_MS + 10 * number for number in range(FRESH_LOOKS)]
    assert passes.seen(FIRST, now=LONG_AGO) == NOW - FRESH_MS


def found_by(passes: Passes, *, now: int, rows: list[int]) -> int | None:
    """The first of these due times that a call finds, with looks that reach everything."""
    for part in passes.parts(FIRST, due_by=now, now=now, looks=4):
        for row in rows:
            if part.begin[0] < row <= part.end:
                return row
        part.reached(None)
    return None


def test_what_lies_before_is_found_though_others_come_all_the_time() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    assert found_by(passes, now=NOW, rows=[LONG_AGO, NOW - 1]) == NOW - 1
    assert found_by(passes, now=NOW + 10, rows=[LONG_AGO, NOW + 9]) == LONG_AGO
    for now in range(NOW + 20, NOW + 100, 20):  # by turns, as long as something is found
        assert found_by(passes, now=now, rows=[LONG_AGO, now - 1]) == now - 1
        assert found_by(passes, now=now + 10, rows=[LONG_AGO, now + 9]) == LONG_AGO


def test_where_nothing_was_before_it_is_left_alone_for_a_while() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    assert found_by(passes, now=NOW + 10, rows=[NOW + 9]) == NOW + 9
    for now in range(NOW + 20, NOW + OWED_MS, 10):
        assert found_by(passes, now=now, rows=[now - 1, NOW - FRESH_MS]) == now - 1
    begins = [
        part.begin[0] for part in islice(passes.parts(FIRST, due_by=NOW + 50, now=NOW + 50, looks=1), 1)
    ]
    assert begins == [NOW - FRESH_MS]


def test_a_call_that_owes_what_lies_before_a_look_has_several_at_it() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    assert found_by(passes, now=NOW, rows=[NOW - 1]) == NOW - 1
    begins = []
    for number, part in enumerate(passes.parts(FIRST, due_by=NOW + 70, now=NOW + 70, looks=1)):
        begins.append(part.begin[0])
        part.reached((LONG_AGO + number, b"a") if part.end < NOW + 70 else None)
    assert begins[1:] == [*range(LONG_AGO, LONG_AGO + OWED_LOOKS - 1), NOW + 70 - FRESH_MS]


def fresh_begins(passes: Passes, *, now: int, last: int | None) -> list[int]:
    """Where the looks of a call for what is fresh begin; each ends a millisecond further, as far as `last`."""
    begins = []
    for part in passes.parts(FIRST, due_by=now + 500, now=now, looks=1, fresh=True):
        begins.append(part.begin[0])
        part.reached(None if last is None or part.begin[0] >= last else (part.begin[0] + 1, b"a"))
    return begins


def test_calls_soon_after_a_cut_look_go_on_near_its_end_and_read_all_again_after_a_while() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    just = NOW - FRESH_MS
    assert fresh_begins(passes, now=NOW, last=just + 2) == [just, just + 1, just + 2]
    for now in range(NOW + 20, NOW + WHOLE_MS, 20):
        assert fresh_begins(passes, now=now, last=None) == [now - 20 - COMMIT_MS]
    assert fresh_begins(passes, now=NOW + WHOLE_MS, last=None) == [just]
    assert fresh_begins(passes, now=NOW + WHOLE_MS + 20, last=None) == [just + WHOLE_MS]  # no look was cut


def test_all_that_is_fresh_is_read_again_though_each_call_has_looks_cut() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    for now in range(NOW, NOW + WHOLE_MS, 50):
        fresh_begins(passes, now=now, last=now)
    assert fresh_begins(passes, now=NOW + WHOLE_MS, last=None) == [NOW - FRESH_MS]


def test_calls_soon_after_a_cut_look_go_back_to_what_has_become_ready() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    fresh_begins(passes, now=NOW, last=NOW - FRESH_MS + 1)
    passes.lower(NOW - 200)
    assert fresh_begins(passes, now=NOW + 20, last=None) == [NOW - 201]
    part = next(passes.parts(FIRST, due_by=NOW + 40, now=NOW + 40, looks=1, fresh=True))
    passes.lower(NOW - 300)
    part.reached(None)
    assert fresh_begins(passes, now=NOW + 60, last=None) == [NOW - 301]
    part = next(passes.parts(FIRST, due_by=NOW + 80, now=NOW + 80, looks=1, fresh=True))
    passes.lower(part.begin[0] + 9)
    part.reached(None)
    assert fresh_begins(passes, now=NOW + 100, last=None) == [part.begin[0] + 8]
    passes.lower(LONG_AGO)
    assert fresh_begins(passes, now=NOW + 120, last=None) == [NOW + 120 - FRESH_MS]


def test_calls_soon_after_a_cut_look_go_back_to_what_became_ready_between_two_of_their_looks() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    parts = passes.parts(FIRST, due_by=NOW + 520, now=NOW + 20, looks=1, fresh=True)
    next(parts).reached((NOW - 150, b"a"))
    passes.lower(NOW - 230)
    next(parts).reached(None)
    assert next(parts).begin == (NOW - 231, b"")  # at once
    passes.lower(NOW - 240)
    assert next(parts, None) is None  # once a call
    assert fresh_begins(passes, now=NOW + 40, last=None) == [NOW - 241]


def test_a_transaction_that_has_ended_brings_calls_soon_after_a_cut_look_back_as_far_as_commits_take() -> (
    None
):
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    fresh_begins(passes, now=NOW, last=NOW - FRESH_MS + 1)
    passes.ended(NOW - LATE_MS + 1)
    assert passes.seen(FIRST, now=NOW + 20) == NOW - COMMIT_MS
    assert fresh_begins(passes, now=NOW + 20, last=None) == [NOW - COMMIT_MS]
    looks(passes, now=NOW + 2_000)
    passes.ended(NOW + 1_000)
    assert fresh_begins(passes, now=NOW + 2_001, last=None) == [NOW + 999]


def test_notes_tell_of_rows_before_the_place_at_which_the_next_call_begins() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    fresh_begins(passes, now=NOW, last=NOW - FRESH_MS + 1)
    fresh_begins(passes, now=NOW + 20, last=None)
    assert passes.seen(FIRST, now=NOW + 40) == NOW + 20 - COMMIT_MS
    assert passes.seen(FIRST, now=NOW + WHOLE_MS) == NOW - FRESH_MS


def test_a_bound_that_ends_a_call_for_what_is_fresh_is_where_the_next_goes_on() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    begins = fresh_begins(passes, now=NOW, last=NOW)
    assert len(begins) == FRESH_LOOKS
    assert fresh_begins(passes, now=NOW + 1, last=None) == [begins[-1] + 1]


def test_the_pass_goes_on_though_others_come_all_the_time() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    later = NOW + 3_000
    assert found_by(passes, now=later, rows=[LONG_AGO, later - 1]) == later - 1
    again = later + OWED_MS
    assert found_by(passes, now=again, rows=[LONG_AGO, again - 1]) == LONG_AGO


def test_what_becomes_ready_between_two_looks_of_a_call_is_looked_at_next() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    parts = passes.parts(FIRST, due_by=NOW + 90, now=NOW + 90, looks=1)
    next(parts).reached((NOW + 1, b"a"))
    second = next(parts)
    passes.lower(LONG_AGO)
    second.reached(None)
    assert next(parts).begin == (LONG_AGO - 1, b"")


def test_what_fell_due_while_nobody_looked_is_looked_at_with_many_looks_until_the_call_has_caught_up() -> (
    None
):
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    later = NOW + 60_000
    place = (NOW + 1_000, b"a")
    spans = looks(passes, now=later, looks=1, last=place)
    assert spans == [(later - FRESH_MS, later + 500), (NOW - FRESH_MS, later - FRESH_MS)]
    assert passes.is_behind(FIRST, now=later)
    assert looks(passes, now=later, looks=3)[1] == (place[0], later - FRESH_MS)
    assert not passes.is_behind(FIRST, now=later)


def test_rows_that_became_ready_are_looked_for_from_their_instant_on() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    passes.lower(LONG_AGO)
    assert looks(passes, now=NOW + 50)[1] == (LONG_AGO - 1, NOW + 50 - FRESH_MS)


def test_what_a_claim_of_everybody_has_taken_is_not_looked_at_again() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    passes.taken(FIRST, NOW - FRESH_MS)
    assert looks(passes, now=NOW)[0] == (NOW - FRESH_MS, NOW + 500)
    assert passes.is_behind(RETRY, now=NOW)
    passes.taken(FIRST, LONG_AGO)
    assert not passes.is_behind(FIRST, now=NOW)


def test_a_call_for_what_is_fresh_leaves_what_was_missed_to_the_next() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    place = (LONG_AGO, b"z")
    for now in (NOW, NOW + 50):
        (part,) = passes.parts(FIRST, due_by=now + 500, now=now, looks=3, fresh=True)
        assert (part.begin[0], part.end) == (now - FRESH_MS, now + 500)
        part.reached(place)
    assert looks(passes, now=NOW + 100)[1][0] < LONG_AGO


def test_a_call_that_has_caught_up_goes_on_with_the_pass() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    place = (LONG_AGO, b"z")
    assert looks(passes, now=NOW + 2_000, last=place)[-1][0] < LONG_AGO
    assert looks(passes, now=NOW + 2_050)[-1] == (LONG_AGO, NOW + 2_050 - FRESH_MS)


def test_what_becomes_ready_behind_a_look_that_is_under_way_is_looked_at_next() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    for now in (NOW + 90, NOW + 60_000):
        begun = list(looks_under_way(passes, now=now))
        passes.lower(LONG_AGO)
        begun[-1].reached(None)
        assert passes.seen(FIRST, now=LONG_AGO) < LONG_AGO
        looks(passes, now=now)
        assert not passes.is_behind(FIRST, now=now)


def test_what_becomes_ready_within_a_look_that_is_under_way_is_looked_at_next() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    begun = list(looks_under_way(passes, now=NOW + 60_000))
    passes.lower(NOW + 30_000)
    begun[-1].reached(None)
    assert passes.seen(FIRST, now=LONG_AGO) == NOW + 29_999


def test_a_clock_that_goes_back_takes_the_place_with_it() -> None:
    passes = Passes(owed_looks=OWED_LOOKS)
    looks(passes, now=NOW)
    looks(passes, now=LONG_AGO)
    assert passes.seen(FIRST, now=LONG_AGO) == LONG_AGO - FRESH_MS


def looks_under_way(passes: Passes, *, now: int) -> Iterator[DueRange]:
    """The parts of a call up to the first that follows on all that was looked at: it has not ended."""
    for part in passes.parts(FIRST, due_by=now, now=now, looks=1):
        yield part
        if part.begin <= passes._lanes[FIRST].upto:
            return
