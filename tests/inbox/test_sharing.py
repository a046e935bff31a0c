"""Connections that several have: threads and tasks of one process, or a process and its children."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import StaticPool

from surehook.core.errors import SettingsError
from surehook.inbox import AsyncInbox, Inbox
from tests.inbox.house import Clock, House, call, message, partner

POSTGRESQL = ("postgresql+psycopg://nobody@localhost/none", "postgresql+asyncpg://nobody@localhost/none")


def test_what_a_task_stores_in_memory_is_not_undone_with_anothers_transaction(runner):
    """They have one connection: a rollback of the one would be the other's."""
    house = House("async", "sqlite://", runner, clock=Clock()).prepare()

    async def fails(began):
        def work(transaction):
            began.set()
            transaction.wait(asyncio.sleep(0.05))
            raise RuntimeError("in vain")

        with pytest.raises(RuntimeError):
            await house.inbox.store.run(work)

    async def both():
        began = asyncio.Event()
        failing = asyncio.create_task(fails(began))
        await began.wait()

        def work(transaction):
            requests = [
                house.inbox.receiver.judge(call(*message("evt_1"), at=house.clock.at), now=house.clock.at)
            ]
            transaction.persist([one.request for one in requests], careful=False)
            transaction.wait(asyncio.sleep(0.1))

        await house.inbox.store.run(work)
        await failing

    runner.run(both())
    assert list(house.states()) == ["evt_1"]
    house.close()


def test_a_database_in_memory_is_the_same_for_all_threads():
    inbox = Inbox("sqlite://", [partner()], clock=Clock())
    inbox.create_tables()
    answered = []
    thread = threading.Thread(
        target=lambda: answered.append(inbox.receive(call(*message("evt_1"), at=inbox.clock.now())).status)
    )
    thread.start()
    thread.join()
    assert answered == [200]
    assert [one.id for one in inbox.events()] == ["evt_1"]
    inbox.close()


def test_one_connection_for_all_is_refused_where_nobody_takes_turns():
    with pytest.raises(SettingsError, match="StaticPool gives one connection to all"):
        Inbox(create_engine(POSTGRESQL[0], poolclass=StaticPool))
    with pytest.raises(SettingsError, match="StaticPool gives one connection to all"):
        AsyncInbox(create_async_engine(POSTGRESQL[1], poolclass=StaticPool))


@pytest.mark.parametrize(
    "options", [{"isolation_level": "AUTOCOMMIT"}, {"execution_options": {"isolation_level": "AUTOCOMMIT"}}]
)
def test_an_engine_that_commits_each_statement_is_refused(options):
    with pytest.raises(SettingsError, match="AUTOCOMMIT"):
        Inbox(create_engine(POSTGRESQL[0], **options))
    with pytest.raises(SettingsError, match="AUTOCOMMIT"):
        AsyncInbox(create_async_engine(POSTGRESQL[1], **options))
    with pytest.raises(SettingsError, match="AUTOCOMMIT"):
        Inbox(create_engine("sqlite:///never-opened.db", **options))


FORKING = """
import os, sys
from surehook.host.entropy import SystemEntropy
from surehook.inbox.sql import engines

entropy, engine = SystemEntropy(), engines.engine(sys.argv[1])
entropy.bits(16)
with engine.connect():
    pass
child = os.fork()
os.write(1, f"{entropy.bits(16).hex()} {engine.pool.checkedin()}\\n".encode())  # whole, whoever else writes
if child:
    os.waitpid(child, 0)
"""


def test_a_child_process_shares_neither_connections_nor_randomness(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FORKING, f"sqlite:///{tmp_path / 'inbox.db'}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    (one, kept), (other, of_child) = sorted(
        (line.split() for line in done.stdout.splitlines()), key=lambda line: line[1], reverse=True
    )
    assert one != other
    assert (kept, of_child) == ("1", "0")
