"""What became of each attempt of an event, for whoever asks why it failed."""

from __future__ import annotations

import json

from surehook.inbox import Backoff
from surehook.inbox.handlers import Later
from surehook.inbox.sql.tables import MESSAGE_CHARS
from surehook.inbox.sql.tries import TRIES
from tests.inbox.house import House

QUICK = Backoff(first_s=1, factor=1, attempts=3, jitter=0)


class Unpaid(Exception):
    pass


def shown(house: House, event_id: str = "evt_1"):
    (event,) = house.events(id=event_id)
    return house.do(house.inbox.show(event.ref))


def fail_until_dead(house: House, attempts: int = 3) -> None:
    for _ in range(attempts):
        house.work()
        house.clock.passes(2)


def test_each_failed_attempt_is_kept_with_its_time_its_handler_and_its_error(houses):
    house = houses(backoff=QUICK)
    says = iter([KeyError("contract"), Unpaid("not yet"), None])

    def handle(event):
        if (error := next(says)) is not None:
            raise error

    house.on(handle, name="shop.moved")
    house.receive("evt_1")
    fail_until_dead(house)
    found = shown(house)
    assert found.event.state == "finalized"
    assert [
        (one.at, one.attempt, one.replay, one.code, one.handler, one.error, one.message)
        for one in found.tries
    ] == [
        ("2025-11-24T16:00:00.000Z", 1, 0, "handler_failed", "shop.moved", "KeyError", "'contract'"),
        ("2025-11-24T16:00:02.000Z", 2, 0, "handler_failed", "shop.moved", "Unpaid", "not yet"),
    ]


def test_of_several_handlers_the_one_that_failed_is_named(houses):
    house = houses(backoff=QUICK)
    house.on(name="first")
    house.on(lambda event: 1 / 0, name="second")
    house.receive("evt_1")
    house.work()
    (one,) = shown(house).tries
    assert one.handler == "second"


def test_how_an_event_came_is_shown_until_its_retention_ends(house):
    body = b'{"type" : "document.signed",  "n": 1.0}'
    house.send("evt_1", body)
    found = shown(house)
    assert (found.body, found.tries) == (body, [])
    assert "webhook-signature" in dict(found.headers)
    house.on()
    house.work()
    house.clock.passes(40 * 86_400)
    house.do(house.inbox.prune())
    found = shown(house)
    assert (found.event.state, found.url, found.headers, found.body) == ("finalized", None, None, None)


def test_an_event_that_is_not_there_is_none(house):
    house.receive("evt_1")
    ref = house.events()[0].ref
    house.on()
    house.work()
    house.clock.passes(100 * 86_400)
    house.do(house.inbox.prune())
    assert house.do(house.inbox.show(ref)) is None


def test_what_a_handler_says_is_no_failed_attempt(house):
    def later(event):
        raise Later("30s")

    house.on(later)
    house.receive("evt_1")
    house.work()
    assert shown(house).tries == []


def test_attempts_that_ended_with_their_process_are_told_at_the_end(houses):
    house = houses(backoff=QUICK)
    house.on()
    house.receive("evt_1")
    house.sql("update surehook_inbox_runs set attempts = 3")
    house.work()
    found = shown(house)
    assert found.event.state == "dead"
    assert [(one.code, one.handler, one.error) for one in found.tries] == [("attempts_exhausted", None, None)]


def test_a_replay_adds_to_the_history_and_only_the_last_attempts_are_kept(houses):
    house = houses(backoff=Backoff(first_s=1, factor=1, attempts=TRIES + 5, jitter=0))
    house.on(lambda event: 1 / 0)
    house.receive("evt_1")
    house.receive("evt_2")
    fail_until_dead(house, TRIES + 5)
    house.do(house.inbox.replay(reason="again", id="evt_1"))
    fail_until_dead(house, 1)
    for event_id, last in (("evt_1", (1, 1)), ("evt_2", (0, TRIES + 5))):
        tries = shown(house, event_id).tries
        assert len(tries) == TRIES
        assert (tries[-1].replay, tries[-1].attempt) == last
        assert [one.at for one in tries] == sorted(one.at for one in tries)


def test_a_long_message_is_cut_and_a_strange_one_is_stored(houses):
    house = houses(backoff=QUICK)
    says = iter(["é" * 10_000, "nul \0 and half a pair \ud800", ""])

    def handle(event):
        raise Unpaid(next(says))

    house.on(handle)
    house.receive("evt_1")
    fail_until_dead(house)
    assert [one.message for one in shown(house).tries] == [
        "é" * MESSAGE_CHARS,
        "nul ␀ and half a pair ?",
        "",
    ]


def test_the_history_goes_with_its_event(houses):
    house = houses(backoff=QUICK)
    house.on(lambda event: 1 / 0)
    house.receive("evt_1")
    fail_until_dead(house)
    house.clock.passes(100 * 86_400)
    house.do(house.inbox.prune())
    assert house.sql("select count(*) from surehook_inbox_tries") == [(0,)]


def test_a_history_that_the_version_before_left_behind_goes_when_its_event_would_have(houses):
    house = houses(backoff=QUICK)
    house.on(lambda event: 1 / 0)
    for n in range(3):
        house.receive(f"evt_{n}")
    house.work()
    house.sql("delete from surehook_inbox_events where event_id <> 'evt_2'")
    house.clock.passes(89 * 86_400)
    house.do(house.inbox.prune())
    assert house.sql("select count(*) from surehook_inbox_tries") == [(3,)], "it might be on its way"
    house.clock.passes(2 * 86_400)
    house.do(house.inbox.prune(limit=1))
    assert house.sql("select count(*) from surehook_inbox_tries") == [(2,)], "some at a time"
    house.do(house.inbox.prune())
    assert house.sql("select count(*) from surehook_inbox_tries") == [(1,)], "that of what is open stays"


def test_an_error_that_takes_no_marks_is_kept_without_its_handler_s_mark(houses):
    class Plain(Exception):
        def __setattr__(self, name, value):
            if "surehook" in name:
                raise AttributeError(name)
            super().__setattr__(name, value)

    def handle(event):
        raise Plain("no")

    house = houses(backoff=QUICK)
    house.on(handle, name="one")
    house.receive("evt_1")
    house.work()
    (one,) = shown(house).tries
    assert (one.handler, one.error, one.message) == ("one", "Plain", "no")


def test_an_error_whose_words_fail_is_kept_all_the_same(houses):
    class Mute(Exception):
        def __str__(self):
            raise ValueError("no words")

    def handle(event):
        raise Mute

    house = houses(backoff=QUICK)
    house.on(handle)
    house.receive("evt_1")
    house.work()
    (one,) = shown(house).tries
    assert (one.error, one.message) == ("Mute", "it cannot say what it is")


def test_the_command_shows_an_event_with_its_failures(tmp_path, monkeypatch, capsys):
    import sys

    from surehook.cli.main import run

    (tmp_path / "failing_inbox.py").write_text(
        "from surehook.inbox import Inbox\n"
        "from tests.inbox.house import call, message, partner\n"
        f"inbox = Inbox('sqlite:///{tmp_path / 'inbox.db'}', [partner()])\n"
        "inbox.create_tables()\n"
        "inbox.on('partner', name='shop.moved')(lambda event, tx: {}['contract'])\n"
        "inbox.receive(call(*message('evt_1', word='one'), at=inbox.clock.now()))\n"
        "inbox.work()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "failing_inbox", raising=False)
    place = "failing_inbox:inbox"
    assert run(["inbox", "events", place, "--json"]) == 0
    ref = json.loads(capsys.readouterr().out)["data"][0]["ref"]
    assert run(["inbox", "show", place, ref]) == 0
    said = capsys.readouterr().out
    assert "shop.moved" in said and "KeyError" in said and "webhook-signature" in said
    assert run(["inbox", "show", place, ref, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["tries"][0]["error"] == "KeyError"
    assert told["body"].startswith('{"type": "document.signed"')
    assert told["others"] == []
    assert run(["inbox", "show", place, "inb_" + "0" * 26]) == 4


def test_a_sender_s_words_do_nothing_to_a_terminal():
    from surehook.cli.inbox_output import harmless

    assert harmless("a\x1b[31m\tb\nc\x9bé") == "a\\x1b[31m\tb\nc\\x9bé"
