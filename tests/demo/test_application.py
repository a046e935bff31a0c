"""The receiving application, and what is read from its database: right with the inbox, and found wrong without it."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from surehook.demo import application
from surehook.demo.children import Application
from surehook.demo.kept import DatabaseContent, applied, look
from surehook.demo.memory import ReceiverMemory, Sight
from surehook.demo.plan import SOURCE, STEPS
from surehook.demo.process import DemoError
from surehook.demo.tally import Totals, tally
from surehook.inbox import Inbox
from surehook.inbox.receive import IncomingRequest
from surehook.verify import sign
from tests.demo.test_tally import delivery

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
EVENTS = {f"e{n}": type for n, type in enumerate(STEPS, 1)}


class Move(NamedTuple):
    before: str
    after: str


class Again(NamedTuple):
    """An event as a handler gets it that nobody protects from repeats."""

    id: str
    body: Any
    change: Move


def call(event: str) -> IncomingRequest:
    """One step of a document, as the server sends it."""
    place = int(event[1:])
    body = json.dumps(
        {"id": event, "type": EVENTS[event], "subject": "doc_1", "sequence": place, "data": {"signer": "ana"}}
    ).encode()
    headers = [*sign(SECRET, event, body).items()]
    return IncomingRequest(
        method="POST", source=SOURCE, query="", url="http://x/", headers=headers,
        peer="127.0.0.1", body=body,
    )  # fmt: skip


def counted(kept: DatabaseContent) -> Totals:
    """The count, where the server says that all four events were delivered."""
    deliveries = [delivery(f"d{event}", "delivered", event) for event in EVENTS]
    seen = ReceiverMemory(seen={f"d{event}": Sight(1, True) for event in EVENTS})
    return tally(dict.fromkeys(EVENTS, 1), deliveries, [seen], kept, "ep")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "application.db"


def received(inbox: Inbox, *events: str) -> None:
    for event in events:
        assert inbox.receive(call(event)).status == 200
    inbox.work()


def test_each_event_takes_effect_once_in_whatever_order_and_however_often_it_comes(database: Path) -> None:
    inbox = application.make(str(database), SECRET)
    received(inbox, "e1", "e3", "e1", "e4")
    assert applied(database) == 1
    received(inbox, "e2", "e3", "e2")
    inbox.close()
    kept = look(database)
    assert kept.effects == dict.fromkeys(EVENTS, 1)
    assert (kept.early, kept.documents) == (2, {"completed": 1})
    totals = counted(kept)
    assert (totals.lost, totals.applied, totals.applied_twice, totals.is_good) == (0, 4, 0, True)


def test_what_is_on_disk_is_read_while_the_application_runs_and_after_it_died(database: Path) -> None:
    inbox = application.make(str(database), SECRET)
    received(inbox, *EVENTS)
    assert applied(database) == 4  # its connections are open, its log is not merged
    before = look(database)
    inbox.close()
    assert look(database) == before


def test_a_receiver_that_answers_before_it_commits_is_found_out(database: Path) -> None:
    inbox = application.make(str(database), SECRET)
    received(inbox, "e1", "e2", "e3")
    inbox.close()  # e4 was answered, and the process died with it in memory
    totals = counted(look(database))
    assert (totals.lost, totals.is_good) == (1, False)


def test_a_handler_that_is_run_for_every_request_is_found_out(database: Path) -> None:
    inbox = application.make(str(database), SECRET)
    received(inbox, *EVENTS)
    (handler,) = inbox.handlers.fitting(SOURCE, "document.viewed")
    with inbox.store.engine.begin() as tx:
        handler.function(Again("e2", {"subject": "doc_1"}, Move("sent", "viewed")), tx)
    inbox.close()
    totals = counted(look(database))
    assert (totals.applied, totals.applied_twice, totals.is_good) == (4, 1, False)


def test_an_event_that_the_inbox_forgot_to_apply_is_found_out(database: Path) -> None:
    inbox = application.make(str(database), SECRET)
    received(inbox, *EVENTS)
    with inbox.store.engine.begin() as tx:
        tx.exec_driver_sql("delete from effects where event_id = 'e3'")
    inbox.close()
    assert (counted(look(database)).lost, counted(look(database)).applied) == (1, 3)


def test_a_move_that_does_not_follow_from_the_one_before_it_is_found_out(database: Path) -> None:
    inbox = application.make(str(database), SECRET)
    received(inbox, *EVENTS)
    assert look(database).unordered == 0
    with inbox.store.engine.begin() as tx:
        tx.exec_driver_sql("update effects set rowid = rowid + 10 where event_id = 'e2'")
    inbox.close()
    totals = counted(look(database))
    assert (totals.unordered, totals.is_good) == (2, False)


@pytest.mark.slow
def test_an_application_whose_port_is_taken_says_so(tmp_path: Path) -> None:
    child = Application(tmp_path)
    child.know(SECRET)
    try:
        with socket.socket() as other:
            other.bind(("127.0.0.1", child.port))
            with pytest.raises(
                DemoError, match=r"the application ended while starting:(?s:.*)address already in use"
            ):
                child.start()
        assert child.start() > 0
    finally:
        child.stop()
