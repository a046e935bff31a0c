"""What nobody can handle waits, and somebody is told: no event is swallowed for a name that was misspelt."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from surehook.core.errors import SettingsError
from surehook.inbox import AsyncInbox, Inbox, operations, sources, unhandled_events
from surehook.inbox.running import until_stopped
from surehook.inbox.workflow import SIGNING
from tests.inbox.house import NOW, SECRET, message, partner

LATER_S = unhandled_events.PASS_MS / 1000


def lines(caplog: Any) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


def test_an_event_without_a_handler_waits_and_its_attempt_is_not_counted(house):
    house.on(pattern="invoice.*")
    house.receive("evt_1")
    house.work()
    (event,) = house.events()
    assert (event.state, event.code, event.attempts, event.due_at) == ("parked", "no_handler", 0, None)


def test_it_is_told_once_a_minute_for_each_type(house, caplog):
    for n in range(6):
        house.receive(f"evt_{n}", ("document.signed", "document.viewed")[n % 2])
    house.work()
    assert [line.partition(":")[0] for line in lines(caplog)] == [
        "no handler fits document.signed of partner",
        "no handler fits document.viewed of partner",
    ]
    assert house.events(type="document.signed")[-1].ref in lines(caplog)[0]
    house.clock.passes(61)
    house.receive("evt_9")
    house.work()
    assert len(lines(caplog)) == 3


def test_whoever_has_a_handler_takes_it_up(house, houses):
    """An old process and a new one, as during a deployment."""
    house.receive("evt_1", "document.signed")
    house.receive("evt_2", "document.viewed")
    house.work()
    assert set(house.states().values()) == {"parked"}
    new = house.twin()
    new.on(pattern="document.signed")
    new.work()
    assert house.states() == {"evt_1": "finalized", "evt_2": "parked"}
    assert house.effects() == ["evt_1"]
    house.receive("evt_3", "document.signed")
    house.work()
    new.work()
    assert house.states()["evt_3"] == "parked", "it looks again in a while"
    house.clock.passes(LATER_S)
    new.work()
    assert house.states()["evt_3"] == "finalized"
    assert house.events(id="evt_3")[0].attempts == 1
    new.close()


def test_a_pass_goes_over_all_that_is_parked_some_rows_at_a_time(house, monkeypatch):
    monkeypatch.setattr(unhandled_events, "ROWS", 4)
    for n in range(10):
        house.receive(f"evt_{n}", "document.signed" if n > 7 else "document.viewed")
    house.work()
    house.on(pattern="document.signed")
    house.clock.passes(LATER_S)
    for _ in range(3):
        house.work()
        house.clock.passes(unhandled_events.STEP_MS / 1000)
    house.work()
    assert house.effects() == ["evt_8", "evt_9"]


def test_what_a_source_does_not_want_is_ignored(houses):
    house = houses(sources=[partner(ignore=["document.viewed", "invoice.*"])])
    house.on(pattern="invoice.paid")
    for n, type in enumerate(("document.viewed", "invoice.sent", "invoice.paid", "document.signed")):
        house.receive(f"evt_{n}", type)
    house.work()
    found = {one.id: (one.state, one.code) for one in house.events()}
    assert found == {
        "evt_0": ("ignored", "not_wanted"),
        "evt_1": ("ignored", "not_wanted"),
        "evt_2": ("finalized", None),
        "evt_3": ("parked", "no_handler"),
    }


def test_what_is_not_wanted_any_more_leaves_the_parked(house):
    house.receive("evt_1")
    house.work()
    new = house.twin(sources=[partner(ignore=["document.*"])])
    new.work()
    assert house.states() == {"evt_1": "ignored"}
    new.close()


def test_an_event_of_a_source_that_a_process_does_not_know_waits_for_one_that_does(house, caplog):
    house.on()
    house.receive("evt_1")
    old = house.twin(sources=[sources.named("standard", name="other", secret=SECRET)])
    old.work()
    (event,) = house.events()
    assert (event.state, event.code, event.attempts) == ("parked", "unknown_source", 0)
    assert "no source 'partner' is defined here" in lines(caplog)[0]
    assert "sources: other" in lines(caplog)[0]
    house.work()
    assert house.states() == {"evt_1": "finalized"}
    old.close()


def test_what_waits_for_a_handler_is_not_unparked_with_schema_versions(houses):
    place = sources.Field("schema_version")
    house = houses(sources=[partner(schema_version=place, schema_versions=["1"], unknown_schema="park")])
    house.send(*message("evt_1", schema_version="1"))
    house.work()
    assert house.do(house.inbox.unpark("partner")) == 0
    assert house.states() == {"evt_1": "parked"}


def test_what_waits_for_a_schema_version_is_unparked_in_portions(houses, monkeypatch):
    monkeypatch.setattr(operations, "PARKED", 2)
    place = sources.Field("schema_version")
    choices = {"schema_version": place, "unknown_schema": "park"}
    old = houses(sources=[partner(schema_versions=["1"], **choices)])
    for n in range(9):
        old.send(*message(f"evt_{n}", schema_version=str(1 + n % 3)))
    old.on()
    old.work()
    assert sorted(old.states().values()) == ["finalized"] * 3 + ["parked"] * 6
    new = old.twin(sources=[partner(schema_versions=["1", "3"], **choices)])
    assert new.do(new.inbox.unpark("partner")) == 3
    assert new.do(new.inbox.unpark("partner")) == 0
    assert {id for id, state in new.states().items() if state == "parked"} == {"evt_1", "evt_4", "evt_7"}
    new.close()


# -- definitions ----------------------------------------------------------------------------------------------


@pytest.fixture(params=[Inbox, AsyncInbox])
def inbox(request, tmp_path) -> Any:
    driver = "" if request.param is Inbox else "+aiosqlite"
    return request.param(
        f"sqlite{driver}:///{tmp_path / 'inbox.db'}", [sources.named("yousign", secret=SECRET)]
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [("yousing", "did you mean 'yousign'?"), ("stripe", "sources: yousign"), ("", "sources: yousign")],
)
def test_a_source_that_is_not_there_is_refused_where_a_handler_is_defined(inbox, name, hint):
    for define in (lambda: inbox.on(name, "a.b"), lambda: inbox.follow(SIGNING, name)):
        with pytest.raises(SettingsError, match="has no source") as caught:
            define()
        assert caught.value.hint == hint


def test_an_inbox_without_sources_says_that_they_come_first(tmp_path):
    with pytest.raises(SettingsError) as caught:
        Inbox(f"sqlite:///{tmp_path / 'inbox.db'}").on("partner")
    assert "add(source) comes first" in str(caught.value)


def few(event):
    """Forgets `tx`."""


def many(event, tx, more):
    """Wants more than there is."""


def named_only(*, event, tx):
    """Takes nothing by place."""


def enough(event, tx, more=None, *rest, **others):
    """Is called with two."""


def test_a_function_that_cannot_be_called_with_event_and_tx_is_refused(inbox):
    for function in (few, many, named_only, lambda: None):
        with pytest.raises(SettingsError, match=r"handler\(event, tx\)"):
            inbox.on("yousign")(function)
    for function in (enough, lambda *all: None, max):
        inbox.on("yousign")(function)


def test_workers_from_outside_do_not_begin_without_a_handler(inbox):
    with pytest.raises(SettingsError, match="has no handler") as caught:
        until_stopped(inbox, 1, lambda: pytest.fail("it is said to begin"))
    assert "module" in (caught.value.hint or "")
    inbox.follow(SIGNING, "yousign")
    assert not inbox.handles_nothing


def test_a_list_of_types_is_no_single_word():
    for wrong in ("invoice.paid", ["in*voice"]):
        with pytest.raises(sources.SourceError, match="ignore"):
            partner(ignore=wrong)


def test_the_time_of_a_seldom_word_is_counted_by_key_and_bounded(monkeypatch):
    from surehook.inbox import log_limits

    monkeypatch.setattr(log_limits, "KEYS_MOST", 2)
    now = [NOW / 1000]
    words = log_limits.OncePer(lambda: now[0], 60)
    assert [words.may(key) for key in "aabbccdd"] == [True, False, True, False, True, False, False, False]
    now[0] += 60
    assert [words.may(key) for key in "cda"] == [True, True, True]
    assert len(words._said) <= 3


def test_a_body_of_another_shape_is_unreadable_and_does_not_wait_for_a_source(house, caplog):
    """As where the source was one of batches when it was stored."""
    house.on()
    house.receive("evt_1")
    house.sql("update surehook_inbox_events set item = 0")
    house.work()
    (event,) = house.events()
    assert (event.state, event.code, event.error) == ("accepted", "unreadable", "KeyError: 0")
    assert not any("no source" in line for line in lines(caplog))
