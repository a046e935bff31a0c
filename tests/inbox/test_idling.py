"""A transaction in which nothing is asked for is ended by the database, whatever a worker was doing in it."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, event
from sqlalchemy.ext.asyncio import create_async_engine

from surehook.inbox import AsyncInbox, Inbox, Rules
from surehook.inbox.runs_in_hand import Waking
from surehook.inbox.sql import engines
from tests.inbox.house import NOW, House, partner

POSTGRESQL = "select current_setting('idle_in_transaction_session_timeout')"
MARIADB = "select @@session.idle_transaction_timeout"
TOKEN = b"t" * 16


def asked(house, works, question=POSTGRESQL):
    """What the bound is at the end of each of these transactions."""

    def then_ask(work):
        def both(transaction):
            work(transaction)
            return transaction._connection.exec_driver_sql(question).scalar()

        return both

    return [house.do(house.inbox.store.run(then_ask(work))) for work in works]


@pytest.fixture
def house(request, ground_of, runner):
    database, kind = request.param
    kind, url = ground_of(database, kind)
    rules = Rules(lease_ms=60_000)
    if kind == "django":
        from tests.inbox import djangos

        with djangos.at(url):
            house = djangos.DjangoHouse(runner, rules=rules).prepare()
            yield house
            house.close()
    else:
        house = House(kind, url, runner, rules=rules).prepare()
        yield house
        house.close()


def of(*pairs):
    return pytest.mark.parametrize("house", pairs, ids="-".join, indirect=True)


ON_POSTGRESQL = of(("postgresql", "sync"), ("postgresql", "async"), ("postgresql", "django"))
ON_MARIADB = of(("mariadb", "sync"), ("mariadb", "async"), ("mariadb", "django"))


def claimed(house):
    """A run in the hands of a worker, and what each transaction of a worker does with it."""
    steps, run = house.inbox.transactions, []

    def claim(transaction):
        run.extend(steps.claim_work(TOKEN)(transaction).runs)

    return [
        claim,
        lambda transaction: steps.process_work([], TOKEN, {("signing", "", "doc_1"): Waking(NOW, None)})(
            transaction
        ),
        lambda transaction: steps.fail_work(run[0], TOKEN, RuntimeError("in vain"))(transaction),
        lambda transaction: steps.release_work([run[0].id], TOKEN, NOW)(transaction),
        lambda transaction: transaction.take_up([run[0].id], now=NOW),
        lambda transaction: transaction.prune(bodies_before=0, events_before=0, limit=1),
        lambda transaction: (
            transaction.hold([b"x" * 16], TOKEN) or transaction.settle([]) or transaction.counts()
        ),
    ]


@ON_POSTGRESQL
def test_each_transaction_of_a_worker_is_bounded(house) -> None:
    house.on()
    house.receive("e0")
    works = claimed(house)
    assert asked(house, works) == ["30s"] * len(works)
    assert house.sql(POSTGRESQL) == [("0",)], "and no transaction of anybody else"


@ON_MARIADB
def test_each_transaction_of_a_worker_is_bounded_on_mariadb(house) -> None:
    house.on()
    house.receive("e0")
    works = claimed(house)
    assert asked(house, works, MARIADB) == [30] * len(works)


@of(("postgresql", "django"))
def test_a_handler_of_django_is_bounded(house) -> None:
    seen = []

    @house.inbox.on("partner")
    def ask(event, tx):
        with tx.cursor() as cursor:
            cursor.execute(POSTGRESQL)
            seen.append(cursor.fetchone()[0])

    for number in range(2):
        house.receive(f"e{number}")
    house.work()
    assert seen == ["30s"] * 2


@of(("postgresql", "django"))
def test_a_transaction_of_the_applications_own_is_not_bounded(house) -> None:
    from django.db import transaction

    with transaction.atomic():
        house.inbox.counts()
        assert house.sql(POSTGRESQL) == [("0",)]


@of(("postgresql", "sync"))
def test_the_bound_of_what_is_claimed_and_held_is_no_statement_of_its_own(house) -> None:
    said = []
    house.on()
    house.work()  # the version of the tables has been looked at then
    house.receive("e0")
    event.listen(house.inbox.store.engine, "before_cursor_execute", lambda *given: said.append(given[2]))
    assert house.turn(house.inbox.worker()) is None
    assert house.effects() == ["e0"]
    assert not [statement for statement in said if statement.startswith("SET")]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("database", ["mariadb"])
def test_a_connection_of_the_application_goes_back_to_it_as_it_was(database, kind, ground_of, runner) -> None:
    _, url = ground_of(database, kind)
    place = engines._url(url, kind == "async")
    make = create_engine if kind == "sync" else create_async_engine
    engine = make(place, pool_size=1, max_overflow=0)
    house = House(kind, url, runner)
    house.close()
    house.inbox = (Inbox if kind == "sync" else AsyncInbox)(engine, [partner()], clock=house.clock)
    house.prepare()
    before = house.sql(MARIADB)
    seen = []

    def ask(event, tx):
        seen.append(tx.exec_driver_sql(MARIADB).scalar())

    async def ask_and_wait(event, tx):
        seen.append((await tx.exec_driver_sql(MARIADB)).scalar())

    house.inbox.on("partner")(ask if kind == "sync" else ask_and_wait)
    for number in range(2):
        house.receive(f"e{number}")
        house.work()
        assert house.sql(MARIADB) == before
    assert seen == [30, 30]
    house.close()


@of(("mariadb", "django"))
def test_a_connection_of_django_goes_back_to_it_as_it_was(house) -> None:
    before = house.sql(MARIADB)
    house.on()
    house.receive("e0")
    house.work()
    assert house.effects() == ["e0"]
    assert house.sql(MARIADB) == before
