"""What the checkers say of a probe where the policy was changed while the breaker stood open."""

from __future__ import annotations

import hashlib
from typing import Any, cast

import pytest

from lab.sim.book import Book
from lab.sim.checkers import ACCEPT_S, Checkers, Sender
from lab.sim.clock import EPOCH_MS, SimClock
from lab.sim.loop import SimLoop
from lab.sim.receivers import Seen
from surehook.core import ids
from surehook.core.errors import LedgerUnavailable
from surehook.core.model import BreakerRow, Delivery, Event
from surehook.ports.ledger import Recorded

NODE, EVENT, ENDPOINT = b"n" * 16, b"e" * 16, b"p" * 16
URL = "https://r0.example/hook"
SOON: Any = {"profile": "standard", "breaker": {"probe_after": 5}}
# It opened at 100 s by a policy that asks after 300 s, and the policy is changed ten seconds later.
OPENED_S, CHANGED_S, PROBE_S = 100.0, 110.0, 400.0


class World:
    """One node, which sends through a breaker that stands open in the ledger."""

    def __init__(self) -> None:
        self.now = 0.0
        self.book = Book(self.time)
        self.checkers = Checkers(self.book)
        self.checkers.know(ENDPOINT, "t", URL, "standard")
        self.clock = SimClock(cast(SimLoop, self))  # which it asks for the time, and for nothing else
        self.checkers.senders["n0.1"] = Sender("n0.1", [NODE], self.clock)
        self.book.entered(NODE)
        self.book.events[EVENT] = Event(
            id=EVENT, tenant="t", type="a", schema_version="1", subject=None, sequence=None, workflow_version=None,
            correlation_id=None, causation_id=None, source=None, occurred_at=None, accepted_at=0, body=b"{}",
            digest=b"", fan_out=1,
        )  # fmt: skip

    def time(self) -> float:
        return self.now

    def open(self) -> None:
        self.now = OPENED_S
        at = self.clock.now()
        opened = BreakerRow(
            tenant="t", key=URL, state="open", reason="failures", opened_at=at, probe_at=at + 300_000,
            failures=20, calls=20, generation=at,
        )  # fmt: skip
        self.book.recorded([], NODE, Recorded([], []), [opened])

    def change(self, policy: Any, *, at: float) -> None:
        self.now = at
        with self.checkers.other_policy(ENDPOINT, policy, self.time):
            pass

    def send(self, *, at: float) -> list[str]:
        """What is found wrong once one more delivery has been sent."""
        self.now = at
        row = bytes([len(self.book.rows)]) * 16
        delivery = Delivery(
            id=row, event=EVENT, endpoint=ENDPOINT, tenant="t", type="a", lane=0, attempt=1, due_at=EPOCH_MS,
            born_at=0, body=b"{}", held=True, parked=None,
        )  # fmt: skip
        self.book.add(delivery, NODE)
        wall = self.clock.now()
        self.checkers.arrived(
            Seen(
                at=at, receiver="r0.example", sender="n0.1", wrote_at=at, wrote_wall=wall, wrote_step=0, path="/hook",
                event=ids.text(ids.EVENT, EVENT), delivery=ids.text(ids.DELIVERY, row), attempt=1, retry_count=0,
                replay=False, stamp=wall // 1000, digest=hashlib.sha256(b"{}").hexdigest(), genuine=True,
                treated="errors",
            )
        )  # fmt: skip
        return self.book.findings


@pytest.fixture
def world() -> World:
    world = World()
    world.open()
    return world


def test_a_probe_before_its_time_is_seen(world: World) -> None:
    assert "before the probe" in world.send(at=PROBE_S - 1)[0]


def test_a_shorter_wait_holds_for_what_stands_open(world: World) -> None:
    world.change(SOON, at=CHANGED_S)
    assert world.send(at=CHANGED_S + 5) == []


def test_a_probe_before_the_shorter_wait_is_over_is_seen(world: World) -> None:
    world.change(SOON, at=CHANGED_S)
    assert "before the probe" in world.send(at=CHANGED_S + 4)[0]


def test_a_wait_as_long_as_before_shortens_nothing(world: World) -> None:
    world.change("yousign", at=CHANGED_S)
    assert "before the probe" in world.send(at=PROBE_S - 1)[0]


def test_the_second_probe_comes_after_the_shorter_wait(world: World) -> None:
    world.change(SOON, at=CHANGED_S)
    world.send(at=CHANGED_S + 5)
    assert world.send(at=CHANGED_S + 10) == []
    assert "second probe" in world.send(at=CHANGED_S + 14)[0]


def test_a_change_without_an_answer_may_hold(world: World) -> None:
    world.now = CHANGED_S
    with pytest.raises(LedgerUnavailable), world.checkers.other_policy(ENDPOINT, SOON, world.time):
        raise LedgerUnavailable("no answer")
    assert world.send(at=CHANGED_S + 5) == []


def test_a_policy_that_was_replaced_long_before_it_opened_says_nothing() -> None:
    world = World()
    world.change(SOON, at=OPENED_S - ACCEPT_S - 20)
    world.change("standard", at=OPENED_S - ACCEPT_S - 10)
    world.open()
    assert "before the probe" in world.send(at=PROBE_S - 1)[0]


def test_who_mends_an_endpoint_hastens_it_where_a_move_without_an_answer_may_have_brought_it(
    world: World,
) -> None:
    world.checkers.know(ENDPOINT, "t", "https://r0.example/before", "standard")
    world.now = OPENED_S - 2 * ACCEPT_S
    with (
        pytest.raises(LedgerUnavailable),
        world.checkers.hastening(ENDPOINT, world.time, moves_to=URL),
    ):
        raise LedgerUnavailable("no answer")
    world.now = CHANGED_S
    with world.checkers.hastening(ENDPOINT, world.time):
        pass
    assert world.send(at=CHANGED_S + 1) == []
