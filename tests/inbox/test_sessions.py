"""Handlers with an ORM session: what they do stands or falls with the event, however they end the session."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from tests.inbox.house import House
from tests.inbox.test_ended_by_handler import STATEMENTS

DATABASES = list(STATEMENTS)


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[str] = mapped_column(primary_key=True)


@pytest.fixture
def made(ground_of, runner):
    houses: list[House] = []

    def make(database: str, kind: str) -> House:
        house = House(kind, ground_of(database, kind)[1], runner, sessions=True).prepare()
        house.sql("create table orders (id varchar(40) primary key)")
        house.sql("insert into orders values ('old')")
        house.sql("create table cache (id int)")
        houses.append(house)
        return house

    yield make
    for house in houses:
        house.close()


async def writes(tx, id="new"):
    tx.add(Order(id=id))
    await tx.flush()


async def enters(tx):
    async with tx:
        await writes(tx)


async def enters_and_does_not_flush(tx):
    async with tx:
        tx.add(Order(id="new"))


async def closes(tx):
    await writes(tx)
    await tx.close()


async def rolls_back(tx):
    await writes(tx)
    await tx.rollback()


async def resets(tx):
    await writes(tx)
    await tx.reset()


async def goes_on_after_a_failed_flush(tx):
    await writes(tx)
    try:
        await writes(tx, "old")
    except IntegrityError:
        await tx.rollback()
    await writes(tx, "newer")


async def begins_and_fails(tx):
    try:
        async with tx.begin():
            await writes(tx)
            await writes(tx, "old")
    except IntegrityError:
        pass


async def rolls_back_after_a_commit(tx):
    await writes(tx)
    await tx.commit()
    await writes(tx, "newer")
    await tx.rollback()


async def rolls_back_from_a_savepoint(tx):
    await writes(tx)
    await tx.begin_nested()
    await tx.rollback()


LOSING = [
    enters, enters_and_does_not_flush, closes, rolls_back, resets, goes_on_after_a_failed_flush, begins_and_fails,
    rolls_back_after_a_commit, rolls_back_from_a_savepoint,
]  # fmt: skip


async def closes_what_it_has_not_used(tx):
    async with tx:
        pass
    await tx.close()
    await tx.rollback()
    await writes(tx)


async def commits(tx):
    await tx.begin_nested()
    await writes(tx)
    await tx.commit()
    await tx.rollback()
    await tx.close()


async def begins(tx):
    async with tx.begin():
        await writes(tx)


async def enters_and_commits(tx):
    async with tx:
        await writes(tx)
        await tx.commit()


async def has_a_savepoint_for_what_fails(tx):
    await writes(tx)
    try:
        async with tx.begin_nested():
            await writes(tx, "old")
    except IntegrityError:
        pass


KEEPING = [closes_what_it_has_not_used, commits, begins, enters_and_commits, has_a_savepoint_for_what_fails]


class Waiting:
    """A session or savepoint that blocks, for handlers that are written as coroutines: nothing in them waits."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        does = getattr(self._own, name)
        if name == "add":
            return does
        return lambda *given: Waited(does, given)

    async def __aenter__(self) -> None:
        self._own.__enter__()

    async def __aexit__(self, *error: Any) -> None:
        self._own.__exit__(*error)


class Waited:
    """A call of it, begun as it is awaited or entered."""

    def __init__(self, does: Any, given: Any) -> None:
        self._does, self._given = does, given

    def __await__(self) -> Any:
        return self._does(*self._given)
        yield

    async def __aenter__(self) -> None:
        self._entered = self._does(*self._given)
        self._entered.__enter__()

    async def __aexit__(self, *error: Any) -> None:
        self._entered.__exit__(*error)


def defined(house, pattern, does):
    """A handler that does this with its session."""

    def blocking(event, tx):
        with suppress(StopIteration):
            does(Waiting(tx)).send(None)

    async def waiting(event, tx):
        await does(tx)

    house.inbox.on("partner", pattern)(blocking if house.kind == "sync" else waiting)


def orders(house):
    return sorted(row[0] for row in house.sql("select id from orders where id <> 'old'"))


@pytest.mark.parametrize("does", LOSING, ids=lambda one: one.__name__)
@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("database", DATABASES)
def test_an_event_whose_handler_loses_its_work_fails_and_keeps_nothing(made, database, kind, does):
    house = made(database, kind)
    defined(house, "document.*", does)
    house.on(pattern="invoice.*")
    house.receive("evt_0", "invoice.paid")
    house.receive("evt_1")
    house.receive("evt_2", "invoice.paid")
    house.work()
    assert (orders(house), house.effects()) == ([], ["evt_0", "evt_2"])
    lost = next(one for one in house.events() if one.id == "evt_1")
    assert (lost.state, lost.code) == ("accepted", "commit_failed")
    assert "rolled back or closed its session" in lost.error and "tx.begin_nested()" in lost.error


@pytest.mark.parametrize("does", KEEPING, ids=lambda one: one.__name__)
@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("database", DATABASES)
def test_what_a_handler_commits_is_kept_and_what_it_does_not_use_it_may_close(made, database, kind, does):
    house = made(database, kind)
    defined(house, "*", does)
    house.receive("evt_1")
    house.work()
    assert (orders(house), house.states()) == (["new"], {"evt_1": "finalized"})


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("database", DATABASES)
def test_what_a_handler_commits_is_undone_if_it_fails(made, database, kind):
    async def fails(tx):
        await writes(tx)
        await tx.commit()
        raise ValueError("after it")

    house = made(database, kind)
    defined(house, "*", fails)
    house.receive("evt_1")
    house.work()
    assert (orders(house), house.states()) == ([], {"evt_1": "accepted"})


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("database", ["sqlite", "mariadb"])
def test_one_that_ended_the_transaction_before_is_dead_at_once(made, database, kind):
    """What it did stands, and each attempt would do it once more."""

    async def ends_it(tx):
        await writes(tx)
        await tx.execute(text(STATEMENTS[database]))
        try:
            await tx.rollback()
        except Exception:
            await tx.close()

    house = made(database, kind)
    defined(house, "*", ends_it)
    house.receive("evt_1")
    house.work()
    assert orders(house) == ["new"]
    assert [(one.state, one.code) for one in house.events()] == [("dead", "handler_commits")]


async def flushes(tx):
    with suppress(IntegrityError):
        await writes(tx, "old")


async def executes(tx):
    with suppress(IntegrityError):
        await tx.execute(text("insert into orders values ('old')"))


async def flushes_and_goes_on(tx):
    await flushes(tx)
    await tx.execute(text("select 1"))


@pytest.mark.parametrize("does", [flushes, executes, flushes_and_goes_on], ids=lambda one: one.__name__)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_an_error_that_was_caught_without_a_savepoint_names_the_handler_and_the_next_step(
    made, kind, does, caplog
):
    house = made("postgresql", kind)
    defined(house, "document.*", does)
    house.receive("evt_1")
    house.work()
    (one,) = house.events()
    assert (one.state, house.effects()) == ("accepted", [])
    assert "PendingRollbackError" in (one.error or "")
    assert "hint: " in (one.error or "") and "before this one has failed, and that was caught" in (
        one.error or ""
    )
    assert "Put tx.begin_nested() around what may fail" in (one.error or "")
    assert "PendingRollbackError" in caplog.text.splitlines()[0]
    assert one.handler is not None and f"; {one.handler}: " in caplog.text.splitlines()[0]
