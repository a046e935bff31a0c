"""A coroutine that holds the event loop for longer than half a lease: the database has ended its transaction meanwhile."""

from __future__ import annotations

import threading

import pytest

from surehook.inbox import Rules
from tests.inbox.house import House

LEASE_S = {"sqlite": 2, "postgresql": 2, "mariadb": 3}  # MariaDB counts whole seconds


@pytest.mark.parametrize("writes", ["before", "after"])
@pytest.mark.parametrize(
    "leases",
    [pytest.param(0.8, id="within its lease"), pytest.param(1.1, id="for longer", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("database", list(LEASE_S))
def test_it_has_had_its_time(ground_of, runner, database, leases, writes):
    lease_s = LEASE_S[database]
    rules = Rules(lease_ms=lease_s * 1000, timeout_s=lease_s / 2)
    house = House("async", ground_of(database, "async")[1], runner, rules=rules).prepare()

    @house.inbox.on("partner")
    async def blocks(event, tx):
        if writes == "before":
            await house.write(tx, event.id)
        threading.Event().wait(leases * lease_s)  # the database has no clock that a test could move
        house.clock.passes(leases * lease_s)
        if writes == "after":
            await house.write(tx, event.id)

    house.receive("evt_1")
    house.work()
    late, effects = house.events()[0], house.effects()
    house.close()
    assert (late.state, late.code, effects) == ("accepted", "handler_timeout", [])
    assert "blocks was not done after" in late.error and "\n" not in late.error
