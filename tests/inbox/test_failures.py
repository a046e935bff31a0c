"""The six failures that a receiver of signing events must survive, with processes that are killed where it hurts.

Crash after the event is stored and before the answer, a sender that times out after the receiver has committed, a duplicate, a
wrong order, an old event after the end, a malformed body.

All of them run on every database, by the kind of driver that is usual there. The crashes run by the other kind as well: what a
killed process leaves open (a connection in the middle of a transaction, a claimed run) is made by the driver. What the other
scenarios add to a crash, duplicates and orders, is decided above the store, and test_inbox.py has it for all kinds in one process.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from surehook.verify import sign
from tests.inbox.house import SECRET, House, message, partner
from tests.inbox.programs.table import STORY

FIRST_PORT, LAST_PORT = 23_850, 23_999
START_S = 20.0  # a Python process with SQLAlchemy on a busy machine
WAIT_S = 15.0

USUAL = [("sqlite", "sync"), ("postgresql", "async"), ("mariadb", "sync")]
OTHER = [("sqlite", "async"), ("postgresql", "sync"), ("mariadb", "async")]

pytestmark = pytest.mark.slow


def on(*grounds: tuple[str, str]) -> pytest.MarkDecorator:
    """Run once for each of these databases and kinds of inbox."""
    return pytest.mark.parametrize("ground", grounds, indirect=True, ids="-".join)


class Receiver:
    """The process, started again after each death."""

    def __init__(self, kind: str, url: str, folder: Path, port: int, crash: str = "") -> None:
        self.once = folder / f"crashed-{crash}"
        self._command = [
            sys.executable, "-m", "tests.inbox.programs.receiver", kind, url, str(port), crash, str(self.once),
        ]  # fmt: skip
        self.port = port
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *, waits: bool = True) -> None:
        self.process = subprocess.Popen(self._command, cwd=Path(__file__).parents[2])
        if not waits:
            return
        end = time.monotonic() + START_S
        while True:
            try:
                self.post("nobody", b"", {})
                return
            except OSError:
                assert time.monotonic() < end and self.process.poll() is None, "the receiver did not start"
                time.sleep(0.05)

    def died(self) -> None:
        """Wait until it has killed itself."""
        assert self.process is not None
        assert self.process.wait(WAIT_S) == -signal.SIGKILL

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def post(
        self, source: str, body: bytes, headers: dict[str, str], timeout: float = WAIT_S
    ) -> tuple[int, bytes]:
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            wire.request("POST", f"/hooks/{source}", body, headers)
            answer = wire.getresponse()
            return answer.status, answer.read()
        finally:
            wire.close()

    def deliver(self, event_id: str, type: str = "document.sent", /, **data: Any) -> int:
        _, body = message(event_id, type, **data)
        return self.post("partner", body, sign(SECRET, event_id, body))[0]


@pytest.fixture
def place(ground: tuple[str, str], runner: asyncio.Runner, tmp_path: Path) -> Iterator[tuple[House, Any]]:
    """A prepared database, and a maker of receivers on it."""
    kind, url = ground
    house = House(kind, url, runner, sources=[partner()]).prepare()
    made: list[Receiver] = []
    port = FIRST_PORT + (os.getpid() * 7) % (LAST_PORT - FIRST_PORT)

    def start(crash: str = "", *, waits: bool = True) -> Receiver:
        made.append(Receiver(kind, url, tmp_path, port, crash))
        made[-1].start(waits=waits)
        return made[-1]

    yield house, start
    for receiver in made:
        receiver.kill()
    house.close()


def until(what: Any) -> None:
    end = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)


@on(*USUAL, *OTHER)
def test_a_receiver_killed_at_every_step_of_an_event_loses_nothing_and_applies_nothing_twice(place):
    house, start = place
    event = {"document": "doc_1", "n": 1}
    receiver = start("persisted")
    with pytest.raises((OSError, http.client.HTTPException)):
        receiver.deliver("evt_1", **event)
    receiver.died()
    assert (house.states(), house.effects()) == ({"evt_1": "accepted"}, [])
    start("handled", waits=False).died()  # with the event that the one before it has left
    assert (house.states(), house.effects()) == ({"evt_1": "accepted"}, [])
    start("settled", waits=False).died()  # the same, when the lease of the dead has lapsed
    assert (house.states(), house.effects()) == ({"evt_1": "finalized"}, ["evt_1"])
    receiver = start()
    assert receiver.deliver("evt_1", **event) == 200  # the sender heard nothing, and asks once more
    assert receiver.deliver("evt_2", "document.viewed", document="doc_1", n=2) == 200
    until(lambda: house.effects() == ["evt_1", "evt_2"])
    assert house.sql("select state from surehook_inbox_documents") == [("viewed",)]


@on(*USUAL)
def test_a_sender_that_timed_out_after_the_commit_may_repeat(place):
    house, start = place
    receiver = start()
    assert receiver.deliver("evt_1", document="doc_1", n=1) == 200  # its answer was lost on the way
    until(lambda: house.effects() == ["evt_1"])
    assert receiver.deliver("evt_1", document="doc_1", n=1) == 200
    assert receiver.deliver("evt_2", "document.viewed", document="doc_1", n=2) == 200
    until(lambda: house.effects() == ["evt_1", "evt_2"])
    assert len(house.events()) == 2


@on(*USUAL)
def test_duplicates_wrong_order_late_events_and_malformed_bodies_under_kills(place):
    house, start = place
    receiver = start()
    numbers = [4, 2, 1, 2, 3, 1, 4]
    for turn, n in enumerate(numbers):
        if turn in (2, 5):
            receiver.kill()
            receiver.start()
        assert receiver.deliver(f"evt_{n}", STORY[n - 1], document="doc_1", n=n) == 200
    until(lambda: house.effects() == ["evt_1", "evt_2", "evt_3", "evt_4"])
    assert receiver.deliver("old", "document.viewed", document="doc_1", n=2) == 200
    until(lambda: house.states()["old"] in ("ignored", "rejected"))
    assert house.sql("select state from surehook_inbox_documents") == [("completed",)]
    assert house.effects() == ["evt_1", "evt_2", "evt_3", "evt_4"]
    for body in (b"{", b'{"type":"a","type":"b"}', b"\xff\xfe", b"[" * 100_000):
        status, said = receiver.post("partner", body, sign(SECRET, "evt_9", body))
        assert (status, json.loads(said)["retryable"]) == (422, False)
    assert "evt_9" not in house.states()
