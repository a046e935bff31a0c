"""Handlers that are tried again in a way of their own."""

from __future__ import annotations

import pytest

from surehook.core.errors import SettingsError
from surehook.inbox import Backoff, Rules

INBOX = Backoff(first_s=1, factor=1, attempts=5, jitter=0)
SLOW = Backoff(first_s=60, factor=2, attempts=3, jitter=0)


def fails(event):
    raise ValueError("no")


def waits(house) -> list[float]:
    """The seconds that `evt_1` waits after each attempt, until it is dead."""
    found = []
    while True:
        house.work()
        (event,) = house.events(id="evt_1")
        if event.due_at is None:
            return found
        due_at = house.sql("select due_at from surehook_inbox_runs")[0][0]
        found.append((due_at - house.clock.at) / 1000)
        house.clock.passes(found[-1])


def test_a_handler_s_own_back_off_says_how_long_and_how_often(houses):
    house = houses(backoff=INBOX)
    house.on(fails, retry=SLOW)
    house.receive("evt_1")
    assert waits(house) == [60, 120]
    assert house.events()[0].attempts == 3


def test_others_go_on_by_the_inbox_s(houses):
    house = houses(backoff=INBOX)
    house.on(fails, "document.signed")
    house.on(fails, "document.viewed", retry=SLOW)
    house.receive("evt_1")
    assert waits(house) == [1, 1, 1, 1]


def test_of_several_handlers_it_is_the_one_that_failed_that_says(houses):
    house = houses(backoff=INBOX)
    turns = iter([ValueError, None, None])

    def first(event):
        if error := next(turns):
            raise error

    house.on(first, name="quick")
    house.on(fails, name="slow", retry=SLOW)
    house.receive("evt_1")
    assert waits(house) == [1, 120]


def test_crashes_count_by_the_most_patient_of_an_event_s_handlers(houses):
    house = houses(backoff=Backoff(attempts=2))
    house.on(retry=SLOW)
    house.receive("evt_1")
    house.sql("update surehook_inbox_runs set attempts = 2")
    house.work()
    assert house.states() == {"evt_1": "finalized"}
    house.receive("evt_2")
    house.sql("update surehook_inbox_runs set attempts = 3 where state = 'accepted'")
    house.work()
    assert house.events(id="evt_2")[0].code == "attempts_exhausted"


def test_a_commit_that_fails_is_tried_again_by_the_handler_s_own(ground_of, runner):
    from tests.inbox.house import House

    kind, url = ground_of("postgresql", "sync")
    house = House(kind, url, runner, backoff=INBOX).prepare()
    house.sql("alter table effects add constraint once unique (word) deferrable initially deferred")
    house.sql("insert into effects values ('before', 'same')")
    house.on(retry=SLOW)
    house.receive("evt_1", word="same")
    assert waits(house) == [60, 120]
    assert house.events()[0].code == "commit_failed"
    house.close()


def test_what_is_no_back_off_is_refused_at_once(house):
    with pytest.raises(SettingsError, match="retry: a int is no Backoff"):
        house.on(retry=5)


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("version", 3, "version: a int is no str"),
        ("name", b"invoices", "name: a bytes is no str"),
        ("final", "no", "final: a str is no bool"),
        ("informational", 1, "informational: a int is no bool"),
    ],
)
def test_an_option_of_another_kind_is_refused_at_once(house, option, value, told):
    """`final="no"` was taken for True."""
    with pytest.raises(SettingsError, match=f"^{told}") as refused:
        house.on(**{option: value})
    assert refused.value.hint.startswith(f"{option}=")


@pytest.mark.parametrize(
    ("make", "field", "said"),
    [
        (lambda: Backoff(attempts=0), "attempts", "1 to 1,000 attempts, and not 0"),
        (lambda: Backoff(attempts=2.5), "attempts", "a whole number"),  # type: ignore[arg-type]
        (lambda: Backoff(first_s=-5), "first_s", "0 to 2,592,000 seconds, and not -5"),
        (lambda: Backoff(factor=1e10, attempts=50), "factor", "1 to 1,000 times as long"),
        (lambda: Backoff(max_s=float("inf")), "max_s", "0 to 2,592,000 seconds"),
        (lambda: Backoff(jitter=float("nan")), "jitter", "0 to 1 of a wait"),
        (lambda: Backoff(first_s="1"), "first_s", "and not '1'"),  # type: ignore[arg-type]
        (lambda: Rules(batch=0), "batch", "1 to 1,000 runs, and not 0"),
        (lambda: Rules(batch=1.5), "batch", "a whole number"),  # type: ignore[arg-type]
        (lambda: Rules(batch_s=-1), "batch_s", "0 to 60 seconds"),
        (lambda: Rules(lease_ms=0), "lease_ms", "100 to 86,400,000 milliseconds, and not 0"),
        (lambda: Rules(idle_s=-1), "idle_s", "0.001 to 3,600 seconds"),
        (lambda: Rules(stop_s=-1), "stop_s", "0 to 3,600 seconds"),
    ],
)
def test_what_makes_no_sense_is_refused_as_it_is_written_down(make, field, said):
    with pytest.raises(SettingsError) as caught:
        make()
    text = str(caught.value)
    assert field in text and said in text and ("Rules(" in text or "Backoff(" in text)


def test_the_most_that_may_be_said_is_a_number():
    most = Backoff(first_s=2_592_000, factor=1_000, max_s=2_592_000, attempts=1_000, jitter=1)
    assert most.wait_ms(999, 0.999) == 5_181_408_000
