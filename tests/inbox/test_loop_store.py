"""Batches of an event loop on SQLite: who writes, who commits, and that the loop waits for nobody."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import create_engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from surehook.inbox import Inbox
from surehook.inbox.group_commit import TURNS
from surehook.inbox.sql import engines
from surehook.inbox.sql.loop_store import REST_S, SLOW_S
from tests.inbox.house import Clock, call, message, partner

HERE = threading.current_thread().name
ELSEWHERE = "surehook-inbox_0"


class Place:
    """An inbox on a file, and which threads wrote rows and committed."""

    def __init__(self, url: str) -> None:
        self.file = url.removeprefix("sqlite:///")
        self.clock = Clock()
        self.inbox = Inbox(engines.engine(url, durable=False), [partner()], clock=self.clock)
        self.watch(self.inbox)

    def watch(self, inbox: Inbox) -> None:
        """Another inbox on the same file, perhaps."""
        self.inbox = inbox
        inbox.create_tables()
        self.wrote: list[str] = []
        self.committed: list[str] = []
        engine = inbox.store.engine
        event.listen(engine, "before_cursor_execute", self._wrote)
        event.listen(engine, "commit", lambda _: self.committed.append(threading.current_thread().name))

    def _wrote(self, connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("PRAGMA busy"):
            self.waits = statement
        if statement.startswith("INSERT INTO surehook_inbox_events"):
            self.wrote.append(threading.current_thread().name)

    async def receive(self, event_id: str, **data: Any) -> int:
        return (await self.inbox.receive_async(call(*message(event_id, **data), at=self.clock.at))).status

    def stored(self) -> int:
        with closing(sqlite3.connect(self.file)) as looking:
            return looking.execute("select count(*) from surehook_inbox_events").fetchone()[0]


@pytest.fixture
def place(tmp_path):
    made = Place(f"sqlite:///{tmp_path / 'inbox.db'}")
    yield made
    made.inbox.close()


def test_the_loop_writes_rows_and_a_thread_commits(place):
    async def go():
        return await asyncio.gather(*(place.receive(f"evt_{n}") for n in range(100)))

    assert set(asyncio.run(go())) == {200}
    assert place.stored() == 100
    assert set(place.wrote) == {HERE} and set(place.committed) == {ELSEWHERE}


def test_a_repeat_and_another_body_are_told_apart_in_the_loop(place):
    async def go():
        first = await asyncio.gather(place.receive("evt_1"), place.receive("evt_1"))
        return [
            *first,
            await place.receive("evt_1"),
            await place.receive("evt_1", n=2),
            await place.receive("evt_2"),
        ]

    assert asyncio.run(go()) == [200, 200, 200, 409, 200]
    assert place.stored() == 2 and set(place.wrote) == {HERE}


async def coming(place: Place, count: int) -> list[Any]:
    """One request in each turn of the loop."""
    tasks = []
    for n in range(count):
        tasks.append(asyncio.ensure_future(place.receive(f"evt_{n}")))
        await asyncio.sleep(0)
    return tasks


def test_what_is_ready_meanwhile_shares_a_batch(place):
    async def go():
        await place.receive("first")
        place.committed.clear()
        await asyncio.gather(*await coming(place, TURNS))
        return len(place.committed)

    assert asyncio.run(go()) == 1
    assert place.stored() == TURNS + 1


def test_a_batch_does_not_wait_for_a_stream_without_end(place):
    async def go():
        await place.receive("first")
        tasks = await coming(place, TURNS + 3)
        begun = len(place.wrote)
        await asyncio.gather(*tasks)
        return begun

    assert asyncio.run(go()) > 1


@pytest.mark.parametrize("holder", ["another process", "a worker of this one"])
def test_while_somebody_else_writes_the_loop_goes_on_and_a_thread_waits(place, holder):
    async def go():
        await place.receive("evt_1")
        with closing(sqlite3.connect(place.file, isolation_level=None)) as other:
            if holder == "another process":
                other.execute("begin immediate")
            else:
                place.inbox.store.turn.acquire()
            waiting = asyncio.ensure_future(place.receive("evt_2"))
            await turns()
            assert not waiting.done()
            if holder == "another process":
                other.execute("rollback")
            else:
                place.inbox.store.turn.release()
            assert await waiting == 200
        assert await place.receive("evt_3") == 200

    asyncio.run(go())
    assert place.wrote == [HERE, ELSEWHERE, HERE] and place.stored() == 3
    assert place.waits == "PRAGMA busy_timeout=0"  # else the loop would have stood still for ten seconds


def test_rows_that_were_slow_are_a_threads_for_a_while(place):
    def slow(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("INSERT") and threading.current_thread().name == HERE:
            place.clock.passes(SLOW_S * 2)

    event.listen(place.inbox.store.engine, "before_cursor_execute", slow)

    async def go():
        for n, passes in enumerate((0, 0, REST_S / 2, REST_S)):
            place.clock.passes(passes)
            await place.receive(f"evt_{n}")

    asyncio.run(go())
    assert place.wrote == [HERE, ELSEWHERE, ELSEWHERE, HERE] and place.stored() == 4


def test_what_could_not_be_written_or_committed_is_not_said_to_be_stored(place):
    fails = {"INSERT"}

    def full(*_: Any) -> None:
        raise OperationalError("", None, sqlite3.OperationalError("database or disk is full"))

    def writing(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if "INSERT" in fails and statement.startswith("INSERT"):
            full()

    def committing(connection: Any) -> None:
        if "COMMIT" in fails:
            full()

    event.listen(place.inbox.store.engine, "before_cursor_execute", writing)
    event.listen(place.inbox.store.engine, "commit", committing)

    async def go():
        said = [await place.receive("evt_1")]
        fails.clear()
        said.append(await place.receive("evt_2"))
        fails.add("COMMIT")
        said.append(await place.receive("evt_3"))
        assert place.stored() == 1
        fails.clear()
        said.append(await place.receive("evt_4"))
        assert place.stored() == 2
        return [*said, await place.receive("evt_3")]

    assert asyncio.run(go()) == [503, 200, 503, 200, 200]
    assert place.stored() == 3 and place.wrote[-1] == HERE


def test_a_connection_that_cannot_be_set_up_is_not_left_behind(place):
    engine, opened, closed = place.inbox.store.engine, [], []
    fails = [True]

    def setting(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("PRAGMA busy") and fails.pop():
            fails.append(False)
            raise OperationalError("", None, sqlite3.OperationalError("disk I/O error"))

    event.listen(engine, "before_cursor_execute", setting)
    event.listen(engine, "connect", lambda connection, _: opened.append(connection))
    event.listen(engine, "close_detached", closed.append)
    engine.dispose()

    async def go():
        return [await place.receive("evt_1"), await place.receive("evt_1")]

    assert asyncio.run(go()) == [503, 200]
    assert len(opened) == 2 and closed == opened[:1] and place.wrote == [HERE]


class Busy:
    """The one thread, busy until `free()`."""

    def __init__(self, inbox: Inbox) -> None:
        self._held = threading.Event()
        inbox._executor.submit(self._held.wait, 10)

    def free(self) -> None:
        self._held.set()


async def turns(loops: int = 100) -> None:
    """Let the loop do what it can."""
    for _ in range(loops):
        await asyncio.sleep(0)


def test_a_commit_happens_though_the_loop_ends_before_it_begins(place):
    async def left():
        await place.receive("evt_1")
        busy = Busy(place.inbox)
        asyncio.ensure_future(place.receive("evt_2"))  # noqa: RUF006 (it is to be cancelled with the loop)
        await turns()
        assert place.wrote == [HERE, HERE]
        return busy

    busy = asyncio.run(left())
    assert place.stored() == 1
    busy.free()
    assert asyncio.run(place.receive("evt_3")) == 200
    assert place.stored() == 3


class Turn:
    """A lock for which threads that wait are slow: they come to it only after `hurry`."""

    def __init__(self) -> None:
        self._lock, self.hurry, self.waited = threading.Lock(), threading.Event(), threading.Event()

    def acquire(self, blocking: bool = True, timeout: float = 10) -> bool:
        if blocking:
            self.waited.set()
            self.hurry.wait(10)
        return self._lock.acquire(blocking, timeout if blocking else -1)

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:
        assert self.acquire()

    def __exit__(self, *_: Any) -> None:
        self.release()


def test_the_loop_takes_no_turn_from_a_batch_that_nobody_waits_for_any_more(place):
    """Its commit would wait for the one thread, and that for the turn."""
    turn = Turn()

    async def left():
        await place.receive("evt_1")
        place.inbox.store.turn = turn
        turn.acquire(False)
        asyncio.ensure_future(place.receive("evt_2"))  # noqa: RUF006 (it is to be cancelled with the loop)
        await asyncio.to_thread(turn.waited.wait, 10)

    async def late():
        waiting = asyncio.ensure_future(place.receive("evt_3"))
        await turns()
        turn.hurry.set()
        return await waiting

    asyncio.run(left())
    turn.release()
    assert asyncio.run(late()) == 200
    assert place.stored() == 3 and place.wrote == [HERE, ELSEWHERE, ELSEWHERE]


def test_no_connection_of_the_pool_is_kept(tmp_path):
    url = f"sqlite:///{tmp_path / 'inbox.db'}"
    engine = create_engine(url, pool_size=1, max_overflow=0, pool_timeout=0.1)
    with engine.connect() as connection:
        connection.exec_driver_sql("pragma journal_mode=wal")
    place = Place(url)
    place.inbox.close()
    place.watch(Inbox(engine, [partner()], clock=place.clock))
    assert asyncio.run(place.receive("evt_1")) == 200
    with engine.connect() as connection:
        assert connection.exec_driver_sql("select count(*) from surehook_inbox_events").scalar() == 1
    assert place.wrote == [HERE]
    place.inbox.close()


@pytest.mark.parametrize("kind", ["no WAL", "no pool", "one thread each"])
def test_where_it_cannot_be_shared_a_thread_does_all(kind, tmp_path):
    url = f"sqlite:///{tmp_path / 'inbox.db'}"
    options: dict[str, Any] = {"no pool": {"poolclass": NullPool}}.get(kind, {})
    if kind == "one thread each":
        options["connect_args"] = {"check_same_thread": True}
    engine = create_engine(url, **options)
    if kind == "one thread each":
        with engine.connect() as connection:
            connection.exec_driver_sql("pragma journal_mode=wal")
        engine.dispose()
    place = Place(url)
    place.inbox.close()
    if kind == "no WAL":
        with closing(sqlite3.connect(place.file)) as file:
            file.execute("pragma journal_mode=delete")
    place.watch(Inbox(engine, [partner()], clock=place.clock))
    engine.dispose()

    async def go():
        return [await place.receive(f"evt_{n}") for n in range(3)]

    assert asyncio.run(go()) == [200, 200, 200]
    assert place.wrote == [ELSEWHERE] * 3 and place.stored() == 3
    place.inbox.close()
