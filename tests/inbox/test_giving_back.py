"""What a stop gives back: each worker's work by itself, whatever another one's waits for."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import text

from surehook.inbox import Rules
from tests.inbox.house import House
from tests.inbox.test_hanging import PATIENCE_S, until

NAMES = [*(f"locked_{n}" for n in range(6)), "free"]
WAITS = text("update cache set id = id + 1")
pytestmark = pytest.mark.slow


@pytest.fixture(params=["mariadb-sync"])
def house(ground_of, runner):
    house = House("sync", ground_of("mariadb", "sync")[1], runner, rules=Rules(stop_s=0.1, batch=1)).prepare()
    house.sql("create table cache (id int)")
    house.sql("insert into cache values (1)")
    yield house
    house.close()


def test_one_whose_row_is_locked_keeps_no_other_from_being_given_back(house):
    """Its statement waits in the server, which does not know that its client is gone, and holds its run's row."""
    begun, go = list[str](), threading.Event()

    @house.inbox.on("partner")
    def waits(event, tx):
        begun.append(event.id)
        if event.id != "free":
            tx.execute(WAITS)
        go.wait(PATIENCE_S)

    with house.inbox.store.engine.connect() as other:
        other.execute(WAITS)
        house.inbox.start(len(NAMES))
        for name in NAMES:
            house.receive(name)
        until(lambda: set(begun) == set(NAMES))
        house.inbox.stop()
        rows = house.sql(
            "select r.lease is null, r.attempts from surehook_inbox_runs r"
            " join surehook_inbox_events e on e.id = r.event where e.event_id = 'free'"
        )
        other.rollback()
    go.set()
    assert rows == [(1, 0)]
