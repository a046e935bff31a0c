"""Attempts to undo a move are counted, noted before they begin, and wait by their number."""

import pytest

from surehook.core.workflow import undo_attempts
from surehook.core.workflow.decide import Document, OperatorCommand

NOW = 1_800_000_000_000


def document(*words: OperatorCommand) -> Document:
    return Document(state="signed", words=words or (OperatorCommand(what="undo", at=NOW),))


def test_waits_double_up_to_an_hour_by_the_number_of_attempts():
    one, waits = document(), []
    for _ in range(16):
        one = undo_attempts.failed(undo_attempts.begun(one, NOW))
        waits.append(undo_attempts.wait_ms(one) / 1000)
    assert waits == [*(2**doubling for doubling in range(12)), 3_600, 3_600, 3_600, 3_600]


@pytest.mark.parametrize("passed_ms", [0, 520_000, -520_000, 10**9])
def test_a_clock_that_was_set_changes_no_wait(passed_ms):
    """A failure noted while the clock was minutes ahead was taken for minutes of failing."""
    one = undo_attempts.failed(undo_attempts.begun(document(), NOW))
    one = undo_attempts.failed(undo_attempts.begun(one, NOW + passed_ms))
    assert undo_attempts.wait_ms(one) == 2_000


def test_nothing_is_tried_before_the_wait_of_an_attempt_without_outcome():
    one = document()
    assert undo_attempts.may_try_at(one, NOW) == NOW
    for wait_s in (10, 20, 40):
        one = undo_attempts.begun(one, NOW)
        assert (undo_attempts.without_outcome(one), undo_attempts.may_try_at(one, NOW + 5)) == (
            NOW,
            NOW + wait_s * 1000,
        )


def test_an_attempt_that_another_clock_noted_ahead_of_now_waits_from_now():
    one = undo_attempts.begun(document(), NOW + 10**9)
    assert undo_attempts.may_try_at(one, NOW) == NOW + 10_000


def test_a_failure_ends_an_attempt_and_is_counted_once_whether_or_not_it_was_noted():
    noted, unnoted = (
        undo_attempts.failed(undo_attempts.begun(document(), NOW)),
        undo_attempts.failed(document()),
    )
    assert noted == unnoted
    assert undo_attempts.without_outcome(noted) is None
    assert undo_attempts.may_try_at(noted, NOW) == NOW


def test_other_commands_are_left_as_they_are_and_a_further_undo_takes_the_count_over():
    release = OperatorCommand(what="release", at=NOW)
    one = undo_attempts.failed(document(OperatorCommand(what="undo", at=NOW), release))
    assert one.words[1] == release
    further = document(*one.words, OperatorCommand(what="undo", at=NOW + 1))
    assert [word.tries for word in undo_attempts.begun(further, NOW).words] == [2, 0, 2]
