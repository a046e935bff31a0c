"""A handler that closes its transaction: that is refused, nothing of it is kept, and no other transaction knows of it."""

from __future__ import annotations

from typing import Any

import pytest

from surehook.inbox import Backoff
from tests.inbox.house import House, call, message

ONCE = Backoff(attempts=1)


@pytest.fixture
def made(ground_of, runner):
    houses: list[House] = []

    def make(database: str, kind: str, **options: Any) -> House:
        house = House(kind, ground_of(database, kind)[1], runner, **options).prepare()
        houses.append(house)
        return house

    yield make
    for house in houses:
        house.close()


class Closed(Exception):
    """What a handler raises after it has closed its transaction."""


def closes(house, then):
    """A handler for the first event that writes, closes its transaction, and goes on."""

    def blocking(event, tx):
        house.write(tx, event.id)
        connection = tx.connection() if house.inbox.store.sessions else tx
        if then == "by with":
            with connection:
                pass
        if then == "at once":
            connection.close()
        try:
            connection.close()
        except Exception:
            if then == "raises":
                raise Closed from None

    async def waiting(event, tx):
        await house.write(tx, event.id)
        connection = await tx.connection() if house.inbox.store.sessions else tx
        if then == "at once":
            await connection.close()
        try:
            await connection.close()
        except Exception:
            if then == "raises":
                raise Closed from None

    house.inbox.on("partner", "document.*")(blocking if house.kind == "sync" else waiting)


@pytest.mark.parametrize("sessions", [False, True], ids=["connection", "session"])
@pytest.mark.parametrize("then", ["by with", "at once", "returns", "raises"])
@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("database", ["sqlite", "postgresql", "mariadb"])
def test_it_fails_and_the_next_to_have_its_connection_do_not(made, database, kind, then, sessions):
    if kind == "async" and then == "by with":
        pytest.skip("an AsyncConnection that has begun cannot be entered")
    house = made(database, kind, sessions=sessions)
    closes(house, then)
    house.on(pattern="invoice.*", retry=ONCE)
    house.receive("evt_1")
    house.work()
    for number in range(2, 5):
        house.receive(f"evt_{number}", "invoice.paid")
        house.work()
    ends = {one.id: (one.state, one.code) for one in house.events()}
    assert ends.pop("evt_1") == ("accepted", "commit_failed")
    assert set(ends.values()) == {("finalized", None)}
    assert house.effects() == ["evt_2", "evt_3", "evt_4"]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("database", ["postgresql", "mariadb"])
def test_who_has_its_connection_while_it_goes_on_may_commit(made, database, kind):
    """The connection is back in its pool, and the handler is not done."""
    house = made(database, kind)
    answers = []

    def blocking(event, tx):
        try:
            tx.close()
        except Exception:
            answers.append(house.receive("evt_2"))

    async def waiting(event, tx):
        try:
            await tx.close()
        except Exception:
            answers.append(await house.inbox.receive(call(*message("evt_2"), at=house.clock.at)))

    house.inbox.on("partner")(blocking if kind == "sync" else waiting)
    house.receive("evt_1")
    house.work()
    assert {one.status for one in answers} == {200}
