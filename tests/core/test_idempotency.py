"""New, repeat or conflict."""

import pytest

from surehook.core import ids
from surehook.core.errors import Problem
from surehook.core.idempotency import check_event_id, check_key, conflict, id_conflict, judge

DAY_MS = 86_400_000
NOW = 1_700_000_000_000


def test_the_same_digest_is_a_repeat_another_one_a_conflict():
    assert judge(None, b"a" * 32) == "new"
    assert judge(b"a" * 32, b"a" * 32) == "repeat"
    assert judge(b"a" * 32, b"b" * 32) == "conflict"


@pytest.mark.parametrize("key", ["k", "!", "~", "order:42/#1", "x" * 255])
def test_a_key_is_visible_ascii(key):
    assert check_key(key) == key


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "a\n", "a\x00", "\x7f", "é", " a", "\ud800"])
def test_other_keys_are_refused(key):
    with pytest.raises(Problem) as caught:
        check_key(key, field="idempotency_key")
    assert (caught.value.code, caught.value.field) == ("invalid_idempotency_key", "idempotency_key")


@pytest.mark.parametrize(
    ("at", "code"),
    [
        (NOW, None),
        (NOW + 300_000, None),
        (NOW + 300_001, "event_id_ahead"),
        (NOW - 30 * DAY_MS, None),
        (NOW - 30 * DAY_MS - 1, "event_id_too_old"),
    ],
)
def test_an_id_whose_repeats_could_not_be_told_is_refused(at, code):
    event = ids.uuid7(at, bytes(10))
    if code is None:
        check_event_id(event, now_ms=NOW, retention_ms=30 * DAY_MS)
    else:
        with pytest.raises(Problem) as caught:
            check_event_id(event, now_ms=NOW, retention_ms=30 * DAY_MS)
        assert (caught.value.code, caught.value.field) == (code, "id")


def test_conflicts_are_409():
    assert (conflict("k").code, conflict("k").status) == ("idempotency_conflict", 409)
    assert (id_conflict().code, id_conflict().status) == ("event_id_conflict", 409)
