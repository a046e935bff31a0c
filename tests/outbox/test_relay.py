"""A relay publishes what is committed, in order and once, whatever the server answers and whoever dies."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import create_engine

from surehook.core import ids
from surehook.core.outbox import COLUMNS, OutboxCount, OutboxFigures, OutboxRow
from surehook.core.outbox_answers import TAKEN, RowAnswer
from surehook.outbox import running as running_module
from surehook.outbox import stores as stores_module
from surehook.outbox.relay import AWAY_FIRST_S, COUNT_S, ROWS, SILENT_S, TOLD_MOST, FlushGivenUp, Relay
from surehook.outbox.stores import RowsInDatabase, RowsInThread
from surehook.ports.outbox import NotPublished, RowsAway
from tests.outbox.conftest import DRIVERS, OutboxDatabase, database_of

DATABASES = ["sqlite", pytest.param("postgresql"), pytest.param("mariadb", marks=pytest.mark.slow)]


@pytest.fixture(params=DATABASES)
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OutboxDatabase]:
    yield from database_of(request.param, tmp_path)


@pytest.fixture
def stores(db: OutboxDatabase) -> Iterator[Callable[[], RowsInDatabase]]:
    made: list[RowsInDatabase] = []

    def make() -> RowsInDatabase:
        engine = create_engine(db.url.replace(f"{db.name}://", f"{DRIVERS[db.name]}://"))
        made.append(RowsInDatabase(engine, clock=lambda: 1_800_000_000.0))
        return made[-1]

    yield make
    for store in made:
        store.close()


def insert(db: OutboxDatabase, *rows: tuple[str, str]) -> None:
    """Rows of (tenant, payload), with ids by their place."""
    from sqlalchemy import text

    with db.engine.begin() as connection:
        for number, (tenant, payload) in enumerate(rows):
            connection.execute(
                text(
                    "INSERT INTO surehook_outbox (id, aggregatetype, aggregateid, type, payload, tenant, created_at) "
                    "VALUES (:id, 'a', 'a', 'a', :payload, :tenant, 5)"
                ),
                {
                    "id": ids.text(ids.EVENT, ids.counted_uuid7(5, number, bytes(8))),
                    "payload": payload,
                    "tenant": tenant,
                },
            )


class Server:
    """A server that keeps what it is sent, with refusals by payload and trouble by request."""

    def __init__(self) -> None:
        self.requests: list[list[Any]] = []
        self.refusals: dict[Any, RowAnswer] = {}
        self.troubles: list[Exception] = []

    async def post(self, rows: list[OutboxRow]) -> list[RowAnswer]:
        found = [msgspec.json.decode(row.payload) for row in rows]
        self.requests.append(found)
        if self.troubles:
            raise self.troubles.pop(0)
        return [self.refusals.get(data, TAKEN) for data in found]


class Clock:
    """Time that passes where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self._more = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        self._more.set()
        await asyncio.sleep(0)

    async def has_slept(self, times: int) -> None:
        """Wait until somebody has slept so often from now on."""
        for _ in range(times):
            self._more.clear()
            await self._more.wait()


class Desk:
    def __init__(self, store: RowsInDatabase, *, counts: bool = False) -> None:
        self.server, self.clock, self.told = Server(), Clock(), list[str]()
        self.relay = Relay(
            RowsInThread(store, sleep=self.clock.sleep), self.server.post,
            sleep=self.clock.sleep, monotonic=lambda: self.clock.now, tell=self.told.append,
            counts=counts,
        )  # fmt: skip

    async def run(self) -> None:
        await self.relay.flush(patience_s=60)


@pytest.fixture
def desk(stores: Callable[[], RowsInDatabase]) -> Desk:
    return Desk(stores())


@asynccontextmanager
async def running(relay: Relay) -> AsyncIterator[None]:
    """A relay that runs meanwhile; what hangs fails."""
    task = asyncio.ensure_future(relay.run())
    async with asyncio.timeout(20):
        yield
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()


def waiting(db: OutboxDatabase) -> int:
    return int(db.ask("SELECT count(*) FROM surehook_outbox")[0][0])


async def test_rows_are_published_in_order_and_removed(db: OutboxDatabase, desk: Desk) -> None:
    insert(db, *(("acme", str(number)) for number in range(ROWS + 7)))
    await desk.run()
    assert desk.server.requests == [list(range(ROWS)), list(range(ROWS, ROWS + 7))]
    assert (waiting(db), desk.relay.published, desk.told) == (0, ROWS + 7, [])


async def test_a_row_that_no_server_takes_is_put_aside_and_holds_nobody_up(
    db: OutboxDatabase, desk: Desk
) -> None:
    desk.server.refusals[1] = RowAnswer(422, "unknown_tenant", "no such tenant")
    insert(db, ("acme", "0"), ("acme", "1"), ("acme", "{"), ("acme", "3"))
    await desk.run()
    assert (waiting(db), desk.relay.published, desk.relay.refused) == (0, 2, 2)
    found = db.ask("SELECT payload, code, reason, refused_at FROM surehook_outbox_refused ORDER BY position")
    assert found[0] == ("1", "unknown_tenant", "no such tenant", 1_800_000_000_000)
    assert found[1][:2] == ("{", "invalid_json")
    assert len(desk.told) == 2 and "unknown_tenant" in "".join(desk.told)


async def test_many_rows_that_are_put_aside_are_told_of_in_few_lines(db: OutboxDatabase, desk: Desk) -> None:
    insert(db, *[("acme", "{")] * 30)
    await desk.run()
    assert (desk.relay.refused, len(desk.told), desk.told[-1]) == (30, TOLD_MOST + 1, "put aside: 20 more")


async def test_a_tenant_that_rests_again_and_again_is_told_of_once(db: OutboxDatabase, desk: Desk) -> None:
    desk.server.refusals[0] = RowAnswer(503, "overloaded", "later")
    insert(db, ("slow", "0"), ("acme", "1"))
    work = asyncio.ensure_future(desk.relay.run())
    await desk.clock.has_slept(20)
    insert(db, ("acme", "2"))
    await desk.clock.has_slept(20)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert desk.told == ["rows of tenant slow wait, overloaded: later"]
    assert len(desk.server.requests) > 4


async def test_while_the_server_is_away_everything_waits(db: OutboxDatabase, desk: Desk) -> None:
    desk.server.troubles = [
        NotPublished("away"), NotPublished("full", RowAnswer(503, "overloaded", "full")),
        NotPublished("no key", RowAnswer(401, "unauthorized", "no key")),
    ]  # fmt: skip
    insert(db, ("acme", "0"), ("acme", "1"))
    await desk.run()
    assert desk.server.requests == [[0, 1]] * 4
    assert desk.clock.slept[:3] == [AWAY_FIRST_S, 2 * AWAY_FIRST_S, 4 * AWAY_FIRST_S]
    assert desk.told == ["rows wait: away", "rows wait: full", "rows wait: no key", "publishing again"]
    assert waiting(db) == 0


async def test_a_tenant_whose_rows_are_to_come_later_rests_and_others_do_not(
    db: OutboxDatabase, desk: Desk
) -> None:
    desk.server.refusals[0] = RowAnswer(429, "tenant_overloaded", "later")
    insert(db, ("slow", "0"), ("acme", "1"))

    async def post(rows: list[OutboxRow]) -> list[RowAnswer]:
        answers = await Server.post(desk.server, rows)
        if len(desk.server.requests) == 1:
            insert(db, ("slow", "2"), ("acme", "3"))
        elif len(desk.server.requests) == 2:
            desk.server.refusals.clear()
        return answers

    desk.relay._publish = post
    await desk.run()
    assert desk.server.requests == [[0, 1], [3], [0, 2]]
    assert desk.told == ["rows of tenant slow wait, tenant_overloaded: later"]
    assert waiting(db) == 0


async def test_a_request_that_is_refused_as_a_whole_is_halved_until_the_row_is_found(
    db: OutboxDatabase, desk: Desk
) -> None:
    async def post(rows: list[OutboxRow]) -> list[RowAnswer]:
        answers = await Server.post(desk.server, rows)
        if 2 in desk.server.requests[-1]:
            raise NotPublished("too large", RowAnswer(413, "body_too_large", "too large"))
        return answers

    desk.relay._publish = post
    insert(db, *(("acme", str(number)) for number in range(5)))
    await desk.run()
    assert [data for request in desk.server.requests for data in request if 2 not in request] == [0, 1, 3, 4]
    assert db.ask("SELECT payload, code FROM surehook_outbox_refused") == [("2", "body_too_large")]


async def test_a_flush_gives_up_where_nothing_can_be_published(db: OutboxDatabase, desk: Desk) -> None:
    desk.server.troubles = [NotPublished("away")] * 100
    insert(db, ("acme", "0"))
    with pytest.raises(FlushGivenUp, match="away"):
        await desk.run()
    assert (waiting(db), len(desk.told)) == (1, 1)
    assert 60 < desk.clock.now < 90


async def test_a_relay_that_waits_finds_what_is_written(db: OutboxDatabase, desk: Desk) -> None:
    work = asyncio.ensure_future(desk.relay.run())
    await desk.clock.has_slept(5)
    insert(db, ("acme", "0"))
    await desk.clock.has_slept(10)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (waiting(db), desk.relay.published) == (0, 1)


async def test_one_relay_reads_at_a_time_and_another_goes_on_when_it_ends(
    db: OutboxDatabase, stores: Callable[[], RowsInDatabase]
) -> None:
    insert(db, ("acme", "0"))
    first, second = stores(), stores()
    rows = first.take(10, 1000, ())
    assert rows is not None and len(rows) == 1
    assert second.take(10, 1000, ()) is None
    first.close()  # as though it had died
    # A server learns of the end of a connection a moment later.
    rows = next(rows for _ in range(10_000) if (rows := second.take(10, 1000, ())) is not None)
    assert [row.payload for row in rows] == ["0"]
    second.settle([rows[0].position], ())
    assert waiting(db) == 0


async def test_a_flush_beside_another_reader_ends_when_nothing_waits(
    db: OutboxDatabase, stores: Callable[[], RowsInDatabase]
) -> None:
    insert(db, ("acme", "0"))
    reader, desk = stores(), Desk(stores())
    rows = reader.take(10, 1000, ())
    assert rows is not None
    flush = asyncio.ensure_future(desk.run())
    await desk.clock.has_slept(2)
    assert not flush.done()
    reader.settle([rows[0].position], ())
    await flush
    assert desk.relay.published == 0
    reader.release()


async def test_the_figures_of_a_relay(db: OutboxDatabase, stores: Callable[[], RowsInDatabase]) -> None:
    desk = Desk(stores(), counts=True)
    figures = lambda: desk.relay.figures(2_005)  # noqa: E731
    desk.server.refusals = {1: RowAnswer(422, "bad", "bad")}
    insert(db, ("acme", "0"), ("acme", "1"))
    desk.server.troubles = [NotPublished("the server is away")]
    async with running(desk.relay):
        await desk.clock.has_slept(1)
        assert figures() == OutboxFigures(0, 0, waiting=2, aside=0, lag_s=2.0, is_troubled=True)
        await desk.clock.has_slept(1)  # published, and nothing is left; counted as before
        assert figures() == OutboxFigures(1, 1, waiting=2, aside=0, lag_s=0.0, is_troubled=False)
        desk.clock.now += COUNT_S
        await desk.clock.has_slept(1)
        assert figures() == OutboxFigures(1, 1, waiting=0, aside=1, lag_s=0.0, is_troubled=False)


class Uncountable(RowsInDatabase):
    """More rows than can be counted in time."""

    counts = 0

    def count(self) -> OutboxCount:
        Uncountable.counts += 1
        raise RowsAway("canceling statement due to statement timeout")


async def test_rows_that_cannot_be_counted_are_published(db: OutboxDatabase) -> None:
    engine = create_engine(db.url.replace(f"{db.name}://", f"{DRIVERS[db.name]}://"))
    desk = Desk(Uncountable(engine), counts=True)
    insert(db, ("acme", "0"))
    Uncountable.counts = 0
    await desk.run()
    assert (waiting(db), Uncountable.counts) == (0, 1)
    assert desk.told == ["rows cannot be counted: canceling statement due to statement timeout"]


async def test_who_waits_while_another_reads_is_as_late_as_the_oldest_row_that_was_counted(
    db: OutboxDatabase, stores: Callable[[], RowsInDatabase]
) -> None:
    insert(db, ("acme", "0"))
    reader, desk = stores(), Desk(stores(), counts=True)
    assert reader.take(10, 1000, ())
    async with running(desk.relay):
        await desk.clock.has_slept(1)
        assert desk.relay.figures(2_005).lag_s == 2.0
    reader.release()


async def test_others_go_on_behind_any_number_of_tenants_that_rest(db: OutboxDatabase, desk: Desk) -> None:
    """Each of them has more than one request takes, and a request takes longer than a rest."""
    monkey = [f"slow{n}" for n in range(40)]
    insert(
        db, *((tenant, f'"{tenant} {n}"') for tenant in monkey for n in range(3)), *[("well", '"well"')] * 3
    )
    sent: list[int] = []

    async def post(rows: list[OutboxRow]) -> list[RowAnswer]:
        sent.append(len(rows))
        desk.clock.now += 0.4
        return [
            TAKEN if row.tenant == "well" else RowAnswer(429, "tenant_overloaded", "full", 0.1)
            for row in rows
        ]

    desk.relay._publish, desk.relay._limit = post, 3
    async with running(desk.relay):
        while desk.relay.published < 3:
            await desk.clock.has_slept(1) if len(sent) > 100 else await asyncio.sleep(0)
    assert len(sent) < 100


class Unremovable(RowsInDatabase):
    """A database that gives rows and takes no change: a replica, or a role without the right to delete."""

    def settle(self, published: object, refused: object) -> None:
        self.release()
        raise RowsAway("permission denied")


async def test_rows_that_cannot_be_removed_are_published_again_less_and_less_often(
    db: OutboxDatabase,
) -> None:
    desk = Desk(Unremovable(create_engine(db.url.replace(f"{db.name}://", f"{DRIVERS[db.name]}://"))))
    insert(db, ("acme", "0"))
    async with running(desk.relay):
        await desk.clock.has_slept(6)
    assert desk.clock.slept[:6] == [AWAY_FIRST_S * 2**n for n in range(6)]
    assert desk.told == ["the database cannot be asked: permission denied"]


async def test_a_flush_behind_a_lock_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()

    class Locked:
        def take(self, limit: int, size: int, resting: object) -> None:
            answers.wait()

        def waiting(self, limit: int) -> None:
            answers.wait()

        def close(self) -> None:
            """It is not reached while `take` waits."""

    monkeypatch.setattr(stores_module, "CLOSE_S", 0.01)
    locked: Any = Locked()
    clock = Clock()
    relay = Relay(
        RowsInThread(locked, sleep=clock.sleep), Server().post,
        sleep=clock.sleep, monotonic=lambda: clock.now, tell=print,
    )  # fmt: skip
    with pytest.raises(FlushGivenUp, match="does not answer"):
        await relay.flush(patience_s=0.01)
    monkeypatch.setattr(running_module, "LOOK_S", 0.01)
    monkeypatch.setattr(running_module, "PATIENCE_S", 0.01)
    with pytest.raises(FlushGivenUp, match="does not answer"):
        await running_module.publish(locked, "http://127.0.0.1:9", None, until_empty=True, tell=print)
    answers.set()


@pytest.mark.parametrize("column", ["fields", "subject"])
async def test_a_blob_without_a_byte_is_put_aside_and_holds_nobody_up(tmp_path: Path, column: str) -> None:
    for db in database_of("sqlite", tmp_path):
        insert(db, ("acme", "0"), ("acme", "1"))
        db.ask(f"UPDATE surehook_outbox SET {column} = x'' WHERE payload = '0'")
        desk = Desk(RowsInDatabase(create_engine(db.url)))
        await desk.run()
        assert (desk.relay.published, desk.relay.refused) == (1, 1)


def test_the_lock_beside_a_database_is_of_who_owns_that(tmp_path: Path) -> None:
    for db in database_of("sqlite", tmp_path):
        (tmp_path / "app.db").chmod(0o660)
        store = RowsInDatabase(create_engine(db.url))
        store.take(1, 1, ())
        lock = tmp_path / "app.db-outbox"
        assert lock.stat().st_mode & 0o777 == 0o660
        assert lock.stat().st_uid == (tmp_path / "app.db").stat().st_uid
        store.close()


@pytest.mark.parametrize("written", ["'yesterday'", "1e400", "-5", str(2**62)])
async def test_a_time_that_is_none_breaks_nothing(tmp_path: Path, written: str) -> None:
    for db in database_of("sqlite", tmp_path):
        insert(db, ("acme", "0"))
        db.ask(f"UPDATE surehook_outbox SET created_at = {written}")
        store = RowsInDatabase(create_engine(db.url))
        assert store.count() == OutboxCount(1, 0, None)
        assert [row.created_at for row in store.waiting(1)] == [None]
        desk = Desk(store)
        await desk.run()
        assert desk.relay.published == 1


async def test_a_closed_store_says_so(stores: Callable[[], RowsInDatabase]) -> None:
    store = RowsInThread(stores())
    await store.close()
    await store.close()
    with pytest.raises(RowsAway, match="closed"):
        await store.count()


async def test_a_database_that_does_not_answer_holds_no_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    taking, answers = threading.Event(), threading.Event()

    class Frozen:
        def take(self, limit: int, size: int, resting: object) -> None:
            taking.set()
            answers.wait()

        def count(self) -> OutboxCount:
            return OutboxCount(0, 0, None)

        def close(self) -> None:
            """It is not reached while `take` waits."""

    monkeypatch.setattr(stores_module, "CLOSE_S", 0.01)
    frozen: Any = Frozen()
    clock = Clock()
    relay = Relay(
        RowsInThread(frozen, sleep=clock.sleep), Server().post,
        sleep=clock.sleep, monotonic=lambda: clock.now, tell=print,
    )  # fmt: skip
    async with running(relay):
        await asyncio.get_running_loop().run_in_executor(None, taking.wait)
        assert not relay.figures(0).is_troubled
        clock.now += SILENT_S + 1
        assert relay.figures(0).is_troubled
    answers.set()


async def test_what_is_given_back_is_taken_again(
    db: OutboxDatabase, stores: Callable[[], RowsInDatabase]
) -> None:
    insert(db, ("acme", "0"), ("slow", "1"))
    store = stores()
    assert [row.payload for row in store.take(10, 1000, ()) or ()] == ["0", "1"]
    store.release()
    assert [row.payload for row in store.take(10, 1000, ("slow",)) or ()] == ["0"]
    store.release()


async def test_a_round_is_bounded_by_the_size_of_its_payloads(
    db: OutboxDatabase, stores: Callable[[], RowsInDatabase]
) -> None:
    insert(db, *(("acme", f'"{"x" * 98}"') for _ in range(5)))
    store = stores()
    assert len(store.take(10, 250, ()) or ()) == 3
    store.release()
    assert len(store.take(10, 1, ()) or ()) == 1
    store.release()


async def test_what_was_put_aside_is_published_again_or_deleted(
    db: OutboxDatabase, stores: Callable[[], RowsInDatabase]
) -> None:
    store, desk = stores(), Desk(stores())
    desk.server.refusals = {0: RowAnswer(422, "unknown_tenant", "none"), 1: RowAnswer(422, "bad", "bad")}
    insert(db, ("acme", "0"), ("acme", "1"))
    assert store.count() == OutboxCount(2, 0, 5)
    assert [row.payload for row in store.waiting(1)] == ["0"]
    await desk.run()
    assert [(row.payload, code) for row, code, *_ in store.aside(5)] == [
        ("0", "unknown_tenant"),
        ("1", "bad"),
    ]
    assert store.retry(1) == 1
    assert store.count() == OutboxCount(1, 1, 5)
    assert store.prune(1_800_000_000_000) == 0
    assert store.prune(1_800_000_000_001) == 1
    desk.server.refusals.clear()
    again = Desk(stores())
    await again.run()
    assert (again.relay.published, waiting(db)) == (1, 0)


async def test_a_row_that_cannot_be_read_is_put_aside_and_holds_nobody_up(
    db: OutboxDatabase, stores: Callable[[], RowsInDatabase]
) -> None:
    insert(
        db, ("acme", "0"), ("acme", "1"), ("acme", "2"), ("acme", '"' + "x" * 300_000 + '"'), ("acme", "4")
    )
    if db.name == "sqlite":  # which keeps in any column whatever it is given
        db.ask("UPDATE surehook_outbox SET payload = x'ff' WHERE position = 1")
        db.ask("UPDATE surehook_outbox SET payload = CAST(x'22ff22' AS TEXT) WHERE position = 2")
        db.ask("UPDATE surehook_outbox SET fields = 7 WHERE position = 3")
        db.ask("UPDATE surehook_outbox SET id = CAST(x'ff' AS TEXT) WHERE position = 2")
    desk = Desk(stores())
    await desk.run()
    assert "put aside: " in "".join(desk.told).encode().decode()  # whatever stood there, it can be logged
    codes = [code for _, code, *_ in stores().aside(9)]
    assert codes == (
        ["wrong_type", "bad_text", "invalid_json", "body_too_large"]
        if db.name == "sqlite"
        else ["body_too_large"]
    )
    assert (waiting(db), desk.server.requests[0][-1]) == (0, 4)


async def test_a_position_that_comes_again_is_put_aside_beside_the_older_row(
    db: OutboxDatabase, desk: Desk
) -> None:
    """A table that was emptied may number its rows from the beginning."""
    from sqlalchemy import text

    desk.server.refusals[0] = RowAnswer(422, "bad", "bad")
    insert(db, ("acme", "0"))
    with db.engine.begin() as connection:
        connection.execute(
            text(
                f"INSERT INTO surehook_outbox_refused (position, {', '.join(COLUMNS)}, code, reason, refused_at) "
                f"SELECT position, {', '.join(COLUMNS)}, 'older', '', 1 FROM surehook_outbox"
            )
        )
    await desk.run()
    assert db.ask("SELECT code FROM surehook_outbox_refused ORDER BY number") == [("older",), ("bad",)]


async def test_trouble_of_the_database_ends_when_it_answers(db: OutboxDatabase, desk: Desk) -> None:
    db.ask("ALTER TABLE surehook_outbox RENAME TO elsewhere")
    work = asyncio.ensure_future(desk.relay.run())
    await desk.clock.has_slept(3)
    db.ask("ALTER TABLE elsewhere RENAME TO surehook_outbox")
    await desk.clock.has_slept(3)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert len(desk.told) == 2 and desk.told[0].startswith("the database cannot be asked")
    assert desk.told[1] == "publishing again"
