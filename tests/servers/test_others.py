"""The private Redis, RabbitMQ and PgBouncer, and what becomes of servers when their run is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import PgBouncer, Postgres, Rabbits, Redis, sql
from tests.servers.folder import VARIABLE
from tests.servers.rabbitmq import VHOSTS
from tests.servers.watchdog import working_in

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def test_redis_forgets_at_a_restart_and_keeps_its_port(redis: Redis):
    redis.ask("SET", "key", "value")
    assert redis.ask("GET", "key") == b"value"
    redis.restart(immediate=True)
    assert redis.ask("KEYS", "*") == []
    redis.kill()
    assert not redis.ready()


def test_a_redis_that_keeps_remembers_after_a_stop():
    redis = Redis.new(keeping=True)
    redis.ask("SET", "key", "value")
    redis.restart()
    assert redis.ask("GET", "key") == b"value"
    redis.close()


def test_pgbouncer_gives_two_sessions_one_connection(postgres: Postgres, database: str):
    bouncer = PgBouncer.new(postgres)
    name = bouncer.through(database).rpartition("/")[2]
    first = sql.ask(bouncer.port, "select pg_backend_pid()", database=name)
    assert sql.ask(bouncer.port, "select pg_backend_pid()", database=name) == first
    bouncer.close()


def test_a_broker_has_a_virtual_host_for_each_test(rabbitmq: Rabbits):
    names = [rabbitmq.vhost().rpartition("/")[2] for _ in range(VHOSTS + 1)]  # more than are made at a time
    assert len(set(names)) == len(names)
    for name in (names[0], names[-1]):
        assert "guest" in rabbitmq.nodes[0].ctl("list_permissions", "-p", name)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_run_that_is_killed_leaves_its_logs_and_no_process(frozen: bool):
    program = (
        "import sys, signal\n"
        "from tests.servers import Postgres, Redis, run_folder\n"
        "for server in (Postgres.new(), Redis.new()):\n"
        f"    {'server.freeze()' if frozen else 'assert server.ready()'}\n"
        "print(run_folder(), flush=True)\n"
        "signal.pause()\n"
    )
    env = {name: value for name, value in os.environ.items() if name != VARIABLE}
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        folder = Path(run.stdout.readline().strip())
        assert working_in(folder)
        run.send_signal(signal.SIGKILL)
        run.stdout.read()  # to its end, which is when nobody holds the pipe any more: the watchdog has done its work
    assert working_in(folder) == []
    kept = [path for path in folder.rglob("*") if path.is_file()]
    assert kept
    assert {path.suffix for path in kept} == {".log"}
    shutil.rmtree(folder)
