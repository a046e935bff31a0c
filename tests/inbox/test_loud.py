"""What fails is said aloud, with what to do, and never as a flood."""

from __future__ import annotations

import itertools
import logging
import sqlite3
import traceback
from functools import partial
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import make_url

from surehook.core.errors import SettingsError
from surehook.inbox import AsyncInbox, Backoff, Ignore, Inbox, Later, Refuse, anomalies, failures, trouble
from surehook.inbox.log_limits import LinesPerSecond
from surehook.inbox.testing import HandlerFailed, Trial
from surehook.inbox.trouble import Away, Trouble, cure
from surehook.inbox.trying import trying
from surehook.ports.inbox import StoreError, StoreUnavailable
from tests import servers
from tests.inbox.house import Clock, call, message, partner

TWICE = Backoff(first_s=10, attempts=2, jitter=0)
MISSING = StoreError("UndefinedTable: relation surehook_inbox_runs does not exist")


@pytest.fixture
def told(caplog) -> Any:
    caplog.set_level(logging.INFO, "surehook.inbox")
    return lambda: [
        (one.levelname, one.getMessage()) for one in caplog.records if one.name == "surehook.inbox"
    ]


# -- handlers -------------------------------------------------------------------------------------------------


def test_a_failed_attempt_is_a_warning_and_the_last_one_an_error(houses, told, caplog):
    house = houses(backoff=TWICE)
    house.on(lambda event: 1 / 0, name="shop.done")
    house.receive("evt_1")
    house.work()
    (level, said), ref = told()[0], house.events()[0].ref
    assert level == "WARNING"
    first = said.splitlines()[0]
    assert first == (
        f"{ref} document.signed of partner: attempt 1 failed (handler_failed), again at 2025-11-24T16:00:10.000Z; "
        "shop.done: ZeroDivisionError: division by zero"
    )
    assert "Traceback" in said and said.endswith("ZeroDivisionError: division by zero")
    assert caplog.records[0].__dict__["event_id"] == "evt_1", "for those who log JSON"
    house.clock.passes(11)
    house.work()
    level, said = told()[1]
    assert level == "ERROR"
    assert "attempt 2 failed (handler_failed), it is given up" in said and "ZeroDivisionError" in said


def test_what_a_handler_says_is_no_failure(house, told):
    says = iter([Later("30s"), Ignore("no"), Refuse("never")])

    def say(event):
        raise next(says)

    house.on(say)
    for n in range(3):
        house.receive(f"evt_{n}")
    house.work()
    assert told() == []


def test_many_failures_are_ten_lines_a_second_and_a_number(house, told):
    house.on(lambda event: 1 / 0)
    for n in range(25):
        house.receive(f"evt_{n}")
    house.work()
    assert len(told()) == failures.LINES_S
    house.clock.passes(1)
    house.receive("evt_99")
    house.work()
    assert "; 15 failures before it were not written" in told()[10][1]


@pytest.mark.parametrize("then", ["it is idle", "it stops"])
def test_the_number_of_those_left_out_is_told_though_nothing_fails_any_more(houses, told, then):
    house = houses(backoff=Backoff(attempts=1))
    house.on(lambda event: 1 / 0)
    for n in range(25):
        house.receive(f"evt_{n}")
    house.work()
    house.work()
    assert len(told()) == failures.LINES_S, "within the same second, another line may tell it"
    if then == "it is idle":
        house.clock.passes(1)
        house.work()
    else:
        house.do(house.inbox.stop())
    further = (
        "WARNING",
        "15 further failures were not written: their events have them (surehook inbox list)",
    )
    assert told()[10:] == [further]
    house.do(house.inbox.stop())
    house.work()
    assert told()[10:] == [further]


def test_the_number_of_conflicts_left_out_is_told_though_none_comes_any_more(houses, told):
    house = houses(sources=[partner(on_conflict="accept")])
    for n in range(25):
        house.receive("evt_1", n=n)
    house.do(house.inbox.stop())
    assert told()[10:] == [("WARNING", "14 further bodies under known ids were not written")]


def test_who_asked_hears_of_the_dead_after_the_commit(houses, told):
    house = houses(backoff=TWICE)
    heard = []

    @house.inbox.on_dead
    def tell(failure):
        heard.append((failure.event_id, failure.attempt, failure.code))
        raise ValueError("cannot be told")

    house.on(lambda event: 1 / 0)
    house.receive("evt_1")
    house.work()
    assert heard == []
    house.clock.passes(11)
    house.work()
    assert heard == [("evt_1", 2, "handler_failed")]
    assert house.states() == {"evt_1": "dead"}
    here = "tests.inbox.test_loud.test_who_asked_hears_of_the_dead_after_the_commit.<locals>.tell"
    assert told()[-1][1] == f"a hook of the inbox failed, {here}; it goes on"


class Telling:
    def __call__(self, one):
        raise ValueError("cannot be told")


@pytest.mark.parametrize("asks", ["observe", "on_dead"])
def test_hooks_that_fail_are_told_once_a_minute_each_and_how_often(houses, told, asks):
    house = houses(backoff=Backoff(attempts=1))
    first, second, calls = Telling(), Telling(), []
    for hook in (first, second, calls.append):
        getattr(house.inbox, asks)(hook)
    house.on(lambda event: 1 / 0)
    for n in range(9):
        house.receive(f"evt_{n}")
    house.work()
    assert len(calls) == 9, "others go on"

    def failed():
        return [said for _, said in told() if "of the inbox failed" in said]

    assert [said.partition("failed, ")[2] for said in failed()] == [
        "tests.inbox.test_loud.Telling; it goes on"
    ] * 2
    house.clock.passes(61)
    house.receive("evt_99")
    house.work()
    assert [said.partition("it goes on")[2] for said in failed()[2:]] == [
        " (8 failures of it before this one were not written)"
    ] * 2


def tells(where, one):
    raise ValueError(f"cannot be told {where}")


def test_a_hook_made_of_a_function_and_its_first_arguments_has_the_functions_name(houses, told):
    house = houses()
    house.inbox.observe(partial(partial(tells), "here"))
    house.on()
    house.receive("evt_1")
    house.work()
    assert "of the inbox failed, tests.inbox.test_loud.tells; it goes on" in told()[-1][1]


def test_a_sender_s_words_cannot_make_a_line_of_the_log(house, told):
    house.on(lambda event: 1 / 0)
    house.receive("evt_1", "paid of bank: attempt 1")
    house.work()
    assert told()[0][1].partition(" ")[2].startswith('"paid of bank: attempt 1" of partner: attempt 1')


def test_a_trial_raises_what_a_handler_raised(tmp_path):
    with Trial(f"sqlite:///{tmp_path / 'trial.db'}", sources=[partner()]) as trial:
        trial.on("partner", "document.*")(lambda event, tx: {}["contract"])
        for _ in range(2):
            trial.send(trial.sign("partner", "document.signed", {}))
        with pytest.raises(HandlerFailed, match=r"evt_1 \(document.signed\) of partner") as caught:
            trial.work()
        assert "KeyError: 'contract'" in str(caught.value) and "1 more" in str(caught.value)
        assert [one.event_id for one in caught.value.failures] == ["evt_1", "evt_2"]
        trial.clock.passes(60)
        trial.work(raises=False)
        assert {one.attempts for one in trial.events()} == {2}


# -- what is odd and no failure -----------------------------------------------------------------------------------


def test_many_conflicts_are_ten_lines_a_second_and_a_number(houses, told):
    house = houses(sources=[partner(on_conflict="accept")])
    for n in range(25):
        house.receive("evt_1", n=n)
    assert len(told()) == anomalies.LINES_S
    house.clock.passes(1)
    house.receive("evt_1", n=99)
    ref = house.events()[0].ref
    assert told()[10:] == [
        (
            "WARNING",
            f"another body under a known id of partner: kept as a conflict of {ref} (14 lines before this one were not written)",
        )
    ]


def test_many_replays_with_another_result_are_ten_lines_a_second_and_a_number(house, told):
    results = itertools.count()
    house.on(lambda event: next(results))
    for n in range(25):
        house.receive(f"evt_{n}")
    house.work()
    house.do(house.inbox.replay(reason="again", source="partner"))
    house.work()
    assert len(told()) == anomalies.LINES_S
    house.clock.passes(1)
    house.do(house.inbox.replay(reason="again", id="evt_1"))
    house.work()
    assert told()[10][1].endswith("see handler_version (15 lines before this one were not written)")


# -- what is refused ------------------------------------------------------------------------------------------


def test_a_flood_of_one_refusal_hides_no_other_and_its_number_is_told(house, told):
    forged = "whsec_" + "A" * 43 + "="
    for n in range(50):
        house.send(f"evt_{n}", b"{}", secret=forged)
    house.do(house.inbox.receive(call("evt_old", b"{}", at=house.clock.at - 3_600_000)))
    house.clock.passes(2)
    house.send("evt_50", b"{}", secret=forged)
    said = [said for _, said in told()]
    assert [one.partition(" (")[0] for one in said] == [
        "refused a message of partner: bad_signature",
        "refused a message of partner: too_old",
        "refused a message of partner: bad_signature",
    ]
    assert [one.endswith("; 49 more like it were not written") for one in said] == [False, False, True]


def test_the_number_of_refusals_left_out_is_told_at_the_end(house, told):
    for n in range(50):
        house.send(f"evt_{n}", b"{}", secret="whsec_" + "A" * 43 + "=")
    house.do(house.inbox.stop())
    assert [said for _, said in told()][1:] == ["refused 49 further messages of partner: bad_signature"]


@pytest.mark.parametrize(
    ("headers", "length", "status", "words"),
    [
        (
            [],
            1_000_000_000,
            413,
            "too_large (its body is larger than the source takes: body_bytes= allows more)",
        ),
        ([("content-encoding", "gzip")], 10, 415, "unsupported_encoding (its body is compressed"),
        ([(f"x-{n}", "") for n in range(101)], 10, 431, "headers_too_large (more than 100 headers"),
    ],
)
def test_what_is_refused_by_its_head_is_told_once_a_minute(house, told, headers, length, status, words):
    request = structs.replace(call("evt_1", b"{}", at=house.clock.at), headers=headers)
    for _ in range(10):
        assert house.inbox.receiver.before_body(request, length).status == status
    assert len(told()) == 1 and told()[0][1].startswith(f"refused a message of partner: {words}")
    house.clock.passes(61)
    house.inbox.receiver.before_body(request, length)
    assert len(told()) == 2


def test_a_signature_header_that_cannot_be_read_is_not_blamed_on_the_secret(house, told):
    signed = call("evt_1", b"{}", at=house.clock.at)
    for value in ("hex0123", dict(signed.headers)["webhook-signature"].partition(",")[2]):
        headers = [(name, value if name == "webhook-signature" else one) for name, one in signed.headers]
        reply = house.do(house.inbox.receive(structs.replace(signed, headers=headers)))
        assert (reply.status, "bad_signature" in reply.body.decode()) == (401, True)
    assert "webhook-signature has nothing that can be read; `v1,` and the HMAC in base64" in told()[0][1]


# -- the database ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_what_a_person_can_mend_is_raised_at_the_start_without_its_causes(kind, tmp_path, runner):
    """They were more than a hundred lines before the sentence."""
    inbox = (Inbox if kind == "sync" else AsyncInbox)(f"sqlite:///{tmp_path}/missing/inbox.db")

    def made() -> None:
        result = inbox.create_tables()
        if result is not None:
            runner.run(result)

    with pytest.raises(StoreError, match="its folder is missing") as caught:
        made()
    assert len("".join(traceback.format_exception(caught.value)).splitlines()) < 60
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_a_file_that_may_not_be_written_is_not_blamed_on_rights_of_a_server():
    assert "may not write the file" in cure(
        StoreError("OperationalError: attempt to write a readonly database")
    )
    assert "standby" in cure(StoreError("cannot execute INSERT in a read-only transaction"))
    assert "SELECT, INSERT" in cure(StoreError("permission denied for table surehook_inbox_events"))


def test_trouble_is_told_once_a_minute_and_when_it_is_over(told):
    clock = Clock()
    trouble = Trouble(clock.boot)
    away = Away(trouble)
    for _ in range(50):
        assert away.wait_s(MISSING) <= 10
        trouble.unstored(MISSING)
        clock.passes(1)
    assert [level for level, _ in told()] == ["ERROR"]
    assert "create_tables() makes them" in told()[0][1]
    clock.passes(11)
    trouble.met(MISSING)
    assert told()[1][1].endswith("(for 61 s)")
    away.over()
    away.over()
    again = "the inbox can use its database again to process, after 61 s"
    assert told()[2:] == [("WARNING", again)], "nothing has been stored since"
    trouble.over()
    assert told()[3:] == [("WARNING", again.replace("process", "store what arrives"))]
    clock.passes(2)
    trouble.met(MISSING)
    assert "create_tables() makes them" in told()[4][1], "another trouble is told at once"


def test_trouble_that_comes_and_goes_is_told_twice_and_over_once_a_minute(told):
    clock = Clock()
    trouble = Trouble(clock.boot)
    for _ in range(590):
        trouble.met(StoreUnavailable("locked"))
        trouble.over()
        clock.passes(0.1)
    assert [said.partition(" use ")[0] for _, said in told()] == [
        "the inbox cannot", "the inbox can", "the inbox cannot",
    ]  # fmt: skip
    clock.passes(2)
    trouble.over()
    assert told()[3:] == [
        ("WARNING", "the inbox can use its database again to store what arrives, after 61 s")
    ]


def test_who_works_says_nothing_of_a_table_that_takes_no_rows(house, told):
    house.on()
    house.receive("evt_1")
    house.sql("alter table surehook_inbox_requests rename to elsewhere")
    away = Away(house.inbox.trouble)
    for n in range(20):
        assert house.receive(f"evt_1{n}").status == 503
        house.do(house.inbox.depth())
        house.do(house.inbox._look_for_workers())
        away.over()
        house.clock.passes(1)
    house.sql("alter table elsewhere rename to surehook_inbox_requests")
    assert [level for level, _ in told()] == ["ERROR"]
    house.receive("evt_2")
    assert told()[1][1] == "the inbox can use its database again to store what arrives, after 20 s"


def test_workers_on_tables_of_another_version_are_one_line(house, told):
    house.sql("drop table surehook_inbox_tries")
    work, away = house.inbox.transactions.claim_work(b"t" * 16), Away(house.inbox.trouble)
    for n in range(9):
        assert house.receive(f"evt_{n}").status == 200
        with pytest.raises(StoreError) as caught:
            house.do(house.inbox.store.run(work))
        away.wait_s(caught.value)
        house.clock.passes(1)
    assert [level for level, _ in told()] == ["ERROR"]


def test_what_nobody_knows_is_told_with_its_traceback(told, caplog):
    trouble = Trouble(Clock().boot)
    try:
        raise KeyError("a defect")
    except KeyError as error:
        trouble.met(error)
    assert caplog.records[0].exc_info is not None
    assert caplog.records[0].levelname == "ERROR"


def test_steady_says_how_many_it_left_out():
    clock = Clock()
    lines = LinesPerSecond(clock.boot, 2)
    assert [lines.may() for _ in range(5)] == [0, 0, None, None, None]
    clock.passes(1)
    assert [lines.may() for _ in range(3)] == [3, 0, None]


def tables_of(url: str) -> Inbox:
    inbox = Inbox(url, [partner()])
    inbox.create_tables()
    inbox.close()
    return inbox


def drops(url: str) -> str:
    return url


def no_database(url: str) -> str:
    return url.rpartition("/")[0] + "/nowhere"


@pytest.mark.parametrize(
    ("database", "broken", "words"),
    [
        ("sqlite", drops, "create_tables() makes them"),
        ("postgresql", drops, "create_tables() makes them"),
        ("mariadb", drops, "create_tables() makes them"),
        ("postgresql", no_database, "create it, or correct the URL"),
        ("mariadb", no_database, "create it, or correct the URL"),
    ],
)
def test_what_a_person_can_mend_says_how_in_one_line(database, broken, words, ground_of, told):
    _, url = ground_of(database, "sync")
    inbox = Inbox(broken(url), [partner()])
    inbox.on("partner")(lambda event, tx: None)
    for n in range(5):
        assert inbox.receive(call(*message(f"evt_{n}"), at=inbox.clock.now())).status == 503
    inbox.close()
    ((level, said),) = told()
    assert level == "ERROR"
    assert words in said and "\n" not in said


def test_a_file_that_may_not_be_written_says_so(tmp_path, told):
    path = tmp_path / "inbox.db"
    tables_of(f"sqlite:///{path}")
    inbox = Inbox(f"sqlite:///file:{path}?mode=ro&uri=true", [partner()])
    inbox.receive(call(*message("evt_1"), at=inbox.clock.now()))
    inbox.close()
    assert "this process may not write the file, or files beside it in its folder" in told()[0][1]


def test_a_role_without_rights_is_told_which_it_needs(ground_of, told):
    _, url = ground_of("postgresql", "sync")
    tables_of(url)
    servers.postgres().ask("drop role if exists poor; create role poor login")
    poor = make_url(url).set(username="poor", password=None)
    inbox = Inbox(poor.render_as_string(hide_password=False), [partner()])
    inbox.receive(call(*message("evt_1"), at=inbox.clock.now()))
    inbox.close()
    assert "SELECT, INSERT, UPDATE and DELETE" in told()[0][1]


def test_a_closed_port_asks_whether_it_is_running(told):
    inbox = Inbox("postgresql://127.0.0.1:1/app", [partner()])
    inbox.receive(call(*message("evt_1"), at=inbox.clock.now()))
    inbox.close()
    ((level, said),) = told()
    assert (level, "is it running" in said) == ("WARNING", True)


def test_words_of_drivers_that_say_what_is_wrong():
    assert cure(sqlite3.OperationalError("no such table: surehook_inbox_runs"))
    assert cure(ValueError("anything else")) is None


@pytest.mark.parametrize("name", ["on_dead", "observe"])
def test_a_hook_that_nobody_would_await_is_refused(house, name):
    async def hook(one):
        pass

    with pytest.raises(SettingsError, match="nobody would await"):
        getattr(house.inbox, name)(hook)


class Mute(Exception):
    """An error that cannot be written or looked at."""

    def __str__(self):
        raise SystemExit(3)

    def __getattr__(self, name):
        raise KeyError(name)


class LaterMute(Later):
    def __str__(self):
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("error", "code"), [(Mute("x"), "handler_failed"), (LaterMute("1s"), "later")], ids=["any", "later"]
)
def test_an_error_that_cannot_be_written_is_a_failure_like_others(house, error, code):
    def fails(event):
        if event.id == "evt_1":
            raise error

    house.on(fails)
    house.receive("evt_1")
    house.receive("evt_2")
    try:
        house.work()
    except Exception as escaped:  # which nobody could show
        raised = type(escaped).__name__
    else:
        raised = None
    assert raised is None
    assert (house.effects(), house.states()) == (["evt_2"], {"evt_1": "accepted", "evt_2": "finalized"})
    one = house.events(id="evt_1")[0]
    assert one.code == code and "it cannot say what it is" in one.error


def test_a_chore_whose_savepoint_fails_says_so():
    class Lost:
        def savepoint(self):
            raise OSError("the connection is gone")

    noted = []
    with pytest.raises(OSError, match="gone"), trying(Lost(), noted.append):
        pass
    assert noted == []


@pytest.mark.parametrize(
    "said", ["(2006, 'MySQL server has gone away')", "Got a packet bigger than 'max_allowed_packet' bytes"]
)
def test_a_server_that_hangs_up_on_large_messages_is_told_of(said):
    assert "max_allowed_packet, which should be twice" in (trouble.next_step(said) or "")
