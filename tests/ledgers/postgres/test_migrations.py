"""The schema on its way: from nothing, from the version before, by several processes at once, and never backwards."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest
from alembic.script import ScriptDirectory

from surehook.core.errors import SettingsError
from surehook.delivery.loading import read_all
from surehook.ledgers.migrations.head import HEAD
from surehook.ledgers.migrations.script import config, script
from surehook.ledgers.postgres.ledger import PostgresLedger
from surehook.ledgers.postgres.opening import MIGRATION_LOCK
from tests.ledgers import older
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW, Maker

REVISIONS = [one.revision for one in ScriptDirectory.from_config(config()).walk_revisions()][::-1]
# The whole way is the oldest one's, and most who upgrade come from the newest. Those between are parts of that way.
EARLIER = [
    pytest.param(one, marks=[] if one in (REVISIONS[0], REVISIONS[-2]) else pytest.mark.slow)
    for one in REVISIONS[:-1]
]


async def shape(url: str) -> list[Any]:
    """Tables and columns as they are."""
    connection = await asyncpg.connect(url)
    try:
        return [
            tuple(row)
            for row in await connection.fetch(
                "select table_name, column_name, data_type, is_nullable, column_default from information_schema.columns "
                "where table_schema = 'public' and table_name not like '%\\_day\\_%' order by 1, 2"
            )
        ]
    finally:
        await connection.close()


async def open_once(url: str) -> None:
    ledger = PostgresLedger(url)
    await ledger.open(now=NOW)
    await ledger.close()


async def run_all(url: str, statements: tuple[str, ...]) -> None:
    connection = await asyncpg.connect(url)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


@pytest.mark.parametrize("revision", EARLIER)
def test_every_earlier_version_becomes_this_one(
    runner: asyncio.Runner, place: str, database: str, revision: str
) -> None:
    runner.run(run_all(database, script(None, dialect="postgresql", to=revision)))
    runner.run(open_once(database))
    assert runner.run(shape(database)) == runner.run(shape(place))


@pytest.mark.parametrize("revision", [None, *EARLIER])
def test_processes_that_start_together_migrate_once(
    runner: asyncio.Runner, place: str, database: str, revision: str | None
) -> None:
    if revision is not None:
        runner.run(run_all(database, script(None, dialect="postgresql", to=revision)))

    async def all_at_once() -> None:
        await asyncio.gather(*(open_once(database) for _ in range(4)))

    runner.run(all_at_once())
    assert runner.run(shape(database)) == runner.run(shape(place))


def test_a_start_waits_for_the_migration_of_another(
    runner: asyncio.Runner, place: str, database: str
) -> None:
    async def wait() -> None:
        other = await asyncpg.connect(database)
        transaction = other.transaction()
        await transaction.start()
        await other.fetch("select pg_advisory_xact_lock($1)", MIGRATION_LOCK)
        opening = asyncio.create_task(open_once(database))
        while not await other.fetchval(
            "select exists (select 1 from pg_locks where not granted and locktype = 'advisory')"
        ):
            assert not opening.done()
        for statement in script(None, dialect="postgresql"):
            await other.execute(statement)
        await transaction.commit()
        await opening
        await other.close()

    runner.run(wait())
    assert runner.run(shape(database)) == runner.run(shape(place))


def test_a_newer_schema_is_refused(runner: asyncio.Runner, place: str) -> None:
    runner.run(run_all(place, ("update alembic_version set version_num = '9999'",)))
    with pytest.raises(
        SettingsError, match=r"revision 9999, which this version does not know.*\n.*newer version"
    ):
        runner.run(open_once(place))


def test_another_programs_database_is_refused(runner: asyncio.Runner, database: str) -> None:
    runner.run(run_all(database, ("create table theirs (n int)",)))
    with pytest.raises(SettingsError, match="another program's"):
        runner.run(open_once(database))


def test_a_process_of_this_version_works_on_a_schema_with_more_in_it(
    runner: asyncio.Runner, place: str
) -> None:
    """As after the migration of the next version, which only adds."""

    async def work() -> None:
        ledger = PostgresLedger(place)
        await ledger.open(now=NOW)
        desk = await Desk(ledger, Maker()).begin()
        held = await desk.hold_one()
        await run_all(place, (
            "alter table event add column more text", "alter table attempt add column more int default 0",
            "alter table delivery add column more text", "alter table endpoint add column more text default ''",
            "create table news (id bytea primary key)", "update alembic_version set version_num = '9999'",
        ))  # fmt: skip
        await desk.record(desk.make.delivered(held))
        endpoint = await desk.new_endpoint()
        assert await ledger.endpoint(endpoint) is not None
        assert (await read_all(ledger)).endpoints
        await desk.publish_one(endpoint)
        assert len(await desk.claim()) == 1
        assert await desk.state(held) == "delivered"
        await ledger.close()

    runner.run(work())


def test_rows_of_the_version_before_are_read_by_this_one(runner: asyncio.Runner, database: str) -> None:
    before = script(None, dialect="postgresql", to=older.BEFORE)
    runner.run(run_all(database, (*before, *older.statements(r"'\x{}'::bytea"))))
    runner.run(older.upgraded(PostgresLedger(database)))


def test_the_head_is_the_newest_revision() -> None:
    assert REVISIONS[-1] == HEAD


def test_a_schema_changes_beside_a_dump_and_the_version_before_and_no_statement_fails(
    runner: asyncio.Runner, database: str
) -> None:
    """Who waits for an exclusive lock makes everybody wait behind it: so nobody waits for longer than a moment."""
    before = "0002"  # what follows adds a column to the table that every delivery touches
    slowest_s = 0.0

    async def load(stop: asyncio.Event) -> int:
        """The version before: reads and writes of a delivery, each with the deadline of a heartbeat."""
        nonlocal slowest_s
        connection, done = await asyncpg.connect(database), 0
        await connection.execute("set statement_timeout = 2000")
        while not stop.is_set():
            began = asyncio.get_running_loop().time()
            await connection.fetch("select * from delivery where holder is not null")
            await connection.execute("update delivery set attempt = attempt + 1 where id = $1", b"0" * 16)
            slowest_s = max(slowest_s, asyncio.get_running_loop().time() - began)
            done += 1
        await connection.close()
        return done

    async def story() -> None:
        await run_all(database, script(None, dialect="postgresql", to=before))
        dump = await asyncpg.connect(database)
        held = dump.transaction()
        await held.start()
        await dump.execute("lock table delivery, endpoint, event, attempt in access share mode")
        stop = asyncio.Event()
        loads = [asyncio.create_task(load(stop)) for _ in range(3)]
        opening = asyncio.create_task(open_once(database))
        for _ in range(3):  # it tries, and gives up, while the dump goes on
            while not await dump.fetchval(WAITS_FOR_A_LOCK):
                assert not opening.done() and not any(each.done() for each in loads)
            while await dump.fetchval(WAITS_FOR_A_LOCK):
                assert not opening.done() and not any(each.done() for each in loads)
        await held.commit()
        await dump.close()
        await opening
        stop.set()
        assert all(done > 0 for done in await asyncio.gather(*loads))

    runner.run(story())
    assert slowest_s < 1.5  # 0.1 s by itself; the machine of a test may be busy


WAITS_FOR_A_LOCK = "select exists (select 1 from pg_locks where not granted and mode = 'AccessExclusiveLock')"
